"""Marks for answers that need no model: the official deterministic ones of LoCoMo and MemoryAgentBench."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

CITATION = re.compile(r"\[[^\]\s]+:\d+(?:[-–]\d+)?\]")
_ARTICLES = re.compile(r"\b(?:a|an|the|and)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def plain(text: str) -> str:
    """An answer as LoCoMo compares it: lower case, no commas, punctuation or articles, single spaces."""
    lower = text.replace(",", "").lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", lower).split())


def without_citations(text: str) -> str:
    """The words of an answer alone."""
    return " ".join(CITATION.sub(" ", text).split())


def token_f1(said: str, expected: str) -> float:
    """LoCoMo's F1 over stemmed words (Porter; Snowball's implementation of it, NLTK's differs in rare words)."""
    import Stemmer

    stem = Stemmer.Stemmer("porter").stemWord
    own = [stem(word) for word in plain(said).split()]
    wanted = [stem(word) for word in plain(expected).split()]
    same = sum((Counter(own) & Counter(wanted)).values())
    return 2 * same / (len(own) + len(wanted)) if same else 0.0


def locomo_f1(said: str, answers: Sequence[str], category: str) -> float:
    """LoCoMo's mark: parts of a multi-hop answer apart, of an open-domain one what stands before the semicolon."""
    best = 0.0
    for expected in answers:
        if category == "multi-hop":
            parts = [part.strip() for part in expected.split(",")]
            tried = [part.strip() for part in said.split(",")]
            found = sum(max(token_f1(part, wanted) for part in tried) for wanted in parts) / len(parts)
        else:
            found = token_f1(said, expected.split(";")[0].strip() if category == "open-domain" else expected)
        best = max(best, found)
    return best


def exact(said: str, answers: Sequence[str]) -> bool:
    """Whether an answer is one of those expected, but for case, articles and punctuation."""
    return any(plain(said) == plain(expected) for expected in answers)


def holds(said: str, answers: Sequence[str]) -> bool:
    """MemoryAgentBench's SubEM: whether an expected answer stands in what was said, as whole words."""
    return any(plain(expected) and f" {plain(expected)} " in f" {plain(said)} " for expected in answers)
