"""The log of recalls: what each question brought, and what was said of it. It holds seqs and digests, no words."""

from __future__ import annotations

import secrets
from datetime import datetime
from pathlib import Path

from infinimem.ask import Answer, Evidence
from infinimem.errors import BadInput, NotFound, StorageFailed
from infinimem.store.files import digest_of
from infinimem.store.usage import RECALLS, note_recall, read_recalls, why_unwritable
from infinimem.text.words import content_words, query_words

VERDICTS = ("good", "bad")


def note_ask(root: Path, question: str, answer: Answer, language: str, now: datetime) -> None:
    """Note which entries an answer showed and which it cited. Without a written answer nothing is cited."""
    if not answer.evidence:
        return
    cited = set(answer.citations) if answer.found and answer.text else set()
    note_recall(
        root,
        {
            "at": now.isoformat(timespec="milliseconds"),
            "id": secrets.token_hex(6),
            "asked": asked(question, language),
            "shown": [seen(piece) for piece in answer.evidence if piece.seqs],
            "cited": [seen(piece) for piece in answer.evidence if piece.seqs and piece.place in cited],
        },
    )


def seen(piece: Evidence) -> list[int | str]:
    """An entry as the log names it: its first seq, and a mark of its words."""
    return [piece.seqs[0], mark_of(piece.text)]


def mark_of(text: str) -> str:
    """A mark by which words are told from others: too short to find out from it what they are."""
    return digest_of(" ".join(text.split()).encode("utf-8", "surrogatepass"))[:6]


def asked(question: str, language: str) -> str:
    """A digest of what a question asks about: the same for the same words in another order or form."""
    terms = content_words(question, language) or query_words(question, language)
    return digest_of(" ".join(sorted(set(terms))).encode("utf-8", "surrogatepass"))[:16]


def note_verdict(root: Path, verdict: str, now: datetime) -> tuple[int, ...]:
    """Note what a person thinks of the last ask; gives the seqs that it showed."""
    if verdict not in VERDICTS:
        raise BadInput(f"a verdict is good or bad, not {verdict!r}")
    why_not = why_unwritable(root / RECALLS)
    if why_not:
        raise StorageFailed(f"{root / RECALLS} cannot be written: {why_not}; the verdict was not noted")
    last = next((row for row in reversed(read_recalls(root)) if row.get("asked") and row.get("id")), None)
    if last is None:
        raise NotFound("nothing was asked here yet (or ask.notes is `no`); ask first, then say whether it was good")
    note_recall(root, {"at": now.isoformat(timespec="milliseconds"), "of": last["id"], "verdict": verdict})
    shown = last.get("shown")
    rows = shown if isinstance(shown, list) else []
    return tuple(one[0] for one in rows if isinstance(one, list) and one and isinstance(one[0], int))
