"""What an entry names in so many words: another entry by its number, a topic by a wiki link or the path of its file.

A number alone is a room or an issue as often as an entry, so it takes a word before it that says what it does there;
where that is only `see`, both entries must have a word of their subjects in common, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from infinimem.plan.lexical.weigh import subject_terms

CUES = (
    ("contradicts", "contradicts|widerspricht|contredit|contradice"),
    ("supports", "supports|confirms|bestätigt|belegt|confirme"),
    ("explains", "explains|erklärt|explique"),
    ("example-of", "(?:an )?example of|(?:ein )?beispiel für|(?:un )?exemple de"),
    ("part-of", "(?:a )?part of|(?:ein )?teil von"),
    ("related", r"see(?: also)?|cf\.?|compare|siehe(?: auch)?|vgl\.?|voir(?: aussi)?|véase|参见|参考|见"),
)
"""Words before `#12` and what they say of it."""
NUMBERED = tuple(
    (relation, re.compile(rf"(?:(?<!\w)(?:{words})) ?(?:entry |seq[ =]|eintrag )?#(\d{{1,15}})(?!\w)", re.IGNORECASE))
    for relation, words in CUES
)
WIKI = re.compile(r"(?<!!)\[\[([^\[\]|#\n]+)(?:#[^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]")
FILE = re.compile(r"\]\((?:\.{1,2}/)*(?:topics/)?([^()\s:#]+)\.md(?:#[^()\s]*)?\)")


@dataclass(frozen=True, slots=True)
class Named:
    """A seq or a topic that an entry names, and in what relation to it."""

    relation: str
    seq: int = 0
    topic: str = ""


def named_in(text: str) -> tuple[Named, ...]:
    """What a text names, each once, in order."""
    return tuple(dict.fromkeys(_named_in(text)))


def _named_in(text: str) -> Iterator[Named]:
    if "#" in text:
        for relation, pattern in NUMBERED:
            yield from (Named(relation, seq=int(match[1])) for match in pattern.finditer(text))
    if "](" in text or "[[" in text:
        for pattern in (WIKI, FILE):
            for match in pattern.finditer(text):
                topic = match[1].strip().removeprefix("topics/").removesuffix(".md")
                if topic:
                    yield Named("related", topic=topic)


def share_a_subject(one: str, other: str) -> bool:
    """Whether two texts have a word of their subjects in common."""
    return not set(subject_terms(one)).isdisjoint(subject_terms(other))
