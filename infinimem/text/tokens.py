"""How many tokens a text costs, roughly: cheap enough for every write, in any script."""

from __future__ import annotations

import re
from functools import lru_cache

# Kana, CJK ideographs, Hangul syllables, full-width forms.
CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f]")
LONGEST_REMEMBERED = 1 << 16
WORD_OR_MARK = re.compile(r"\w+|[^\w\s]")

KIND_OF = bytes(
    ord("w" if char.isalnum() or char == "_" else " " if char.isspace() else ".") for char in map(chr, range(256))
)
"""Each byte of ASCII text as part of a word, a space or a mark."""


def estimate(text: str) -> int:
    """The larger of UTF-8 bytes / 4 and a count of words and marks that weighs each CJK character 0.72.

    Against o200k it undercounts by more than 10 % in 4 of 699 measured blocks and overcounts Cyrillic
    and Devanagari: thresholds need a figure that is never far under, not an exact one.
    """
    return (counted if len(text) <= LONGEST_REMEMBERED else counted.__wrapped__)(text)


@lru_cache(maxsize=64)
def counted(text: str) -> int:
    """The figure itself: the same documents are weighed again and again while they are planned."""
    content = text.encode("utf-8", "surrogatepass")
    by_bytes = len(content) / 4
    if text.isascii():
        return max(1, round(max(by_bytes, count_ascii(content)))) if text else 0
    rest, cjk = CJK.subn(" ", text)
    by_words = len(WORD_OR_MARK.findall(rest)) + 0.72 * cjk
    return max(1, round(max(by_bytes, by_words)))


def count_ascii(content: bytes) -> int:
    """How many words and marks there are in ASCII text: what `WORD_OR_MARK` finds, at a twentieth of its cost."""
    kinds = content.translate(KIND_OF)
    return kinds.count(b".") + kinds.count(b" w") + kinds.count(b".w") + kinds.startswith(b"w")
