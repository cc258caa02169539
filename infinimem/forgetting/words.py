"""What must be found nowhere once entries are forgotten: their statements, and words that nothing else says. Pure."""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from unicodedata import normalize

from infinimem.model import Entry
from infinimem.plan.lexical.weigh import light_terms
from infinimem.text.words import analyse, fold

TOKEN = re.compile(r"[^\W_]+")
UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
SENTENCE = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？\n])")
BARE_KEYS = frozenset("time observed expires supersedes links conf key rev at".split())
"""Fields that carry no words of an entry."""
OUR_OWN = frozenset(
    "seq rev event at by why high time observed source supersedes links conf expires ns type sensitivity label key "
    "retire unflush restore forget forgotten flush superseded duplicate expired deleted user ai hand file tool empty "
    "id summary token count created update log op create add merge split aux pinned former ids merged from "
    "undo infinimem yaml md format current evidence topics notes true false null".split()
)
"""Words that the files of a library hold whatever is written into it."""
STATEMENT = 3
"""Words from which on a statement is one that can be recognised."""
LONG_NUMBER = 6
"""Digits from which on a number stands for one thing."""
GLANCE = 200
"""Words up to which a text is first searched for each of them."""
CUT = 8
"""Characters of a word from which on its beginning gives it away: titles and ids are cut."""
Starts = Mapping[tuple[str, ...], Sequence[tuple[str, ...]]]
"""Statements by their first words."""


@dataclass(frozen=True)
class Words:
    """What to look for. `telling` are folded words and `grams` pieces of unspaced script that no kept entry says.

    `numbers` are telling in a title or an id only. `statements` are token sequences, a space between;
    `pattern` is what entries were chosen by.
    """

    telling: frozenset[str] = frozenset()
    grams: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    statements: tuple[str, ...] = ()
    pattern: Any = None

    @cached_property
    def starts(self) -> Starts:
        """The statements by their first words, so that a look takes as long as the text, however many there are."""
        return starts_of(self.statements)

    @cached_property
    def ordered(self) -> list[str]:
        """The telling words in order, for the same reason."""
        return sorted(self.telling)

    def __bool__(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self.telling or self.grams or self.numbers or self.statements or self.pattern is not None)

    def in_name(self, text: str) -> bool:
        """Whether a title, heading, id or summary was made from them: also by a number or the start of a word."""
        tokens = tokens_of(text)
        if not self.telling.isdisjoint(tokens) or not self.numbers.isdisjoint(tokens) or self.says(text):
            return True
        return any(self.begins_one(token) for token in tokens if len(token) >= CUT)

    def begins_one(self, token: str) -> bool:
        """Whether one of the telling words begins so."""
        at = bisect.bisect_left(self.ordered, token)
        return at < len(self.ordered) and self.ordered[at].startswith(token)

    def in_text(self, text: str) -> bool:
        """Whether a text holds any of them."""
        return not self.telling.isdisjoint(tokens_of(text)) or self.says(text)

    def says(self, text: str) -> bool:
        """Whether a text holds one of the statements, a piece of unspaced script, or matches the pattern."""
        if self.pattern is not None and matches(self.pattern, text):
            return True
        if self.grams and not self.grams.isdisjoint(grams_of(text)):
            return True
        return bool(self.starts) and any(True for _ in statements_in(tokens_of(text), self.starts))

    def may_stand_in(self, text: str) -> bool:
        """False where a glance tells that nothing of them is there: most files are passed over so."""
        if self.pattern is not None or len(self.telling) + len(self.grams) + len(self.statements) > GLANCE:
            return True
        needles = [*self.telling, *self.grams, *(max(one.split(" "), key=len) for one in self.statements)]
        folded = fold(text)
        return any(needle in folded for needle in needles)

    def places(self, text: str) -> Iterator[tuple[int, str]]:
        """The 1-based lines of a text on which they stand, each once, and what it is that stands there."""
        if not self.may_stand_in(text):
            return
        found: dict[int, str] = {}
        tokens: list[str] = []
        lines: list[int] = []
        for number, line in enumerate(text.split("\n"), 1):
            here = tokens_of(line)
            tokens += here
            lines += [number] * len(here)
            said = next((word for word in here if word in self.telling), "")
            if said:
                found.setdefault(number, said)
            elif self.grams and not self.grams.isdisjoint(grams_of(line)):
                found.setdefault(number, "its words")
            if self.pattern is not None and matches(self.pattern, line):
                found.setdefault(number, "the pattern")
        for at, statement in statements_in(tokens, self.starts):
            found.update(dict.fromkeys(lines[at : at + len(statement)], "its words"))
        yield from sorted(found.items())


def starts_of(statements: Iterable[str]) -> Starts:
    """Statements by their first words."""
    found: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for statement in statements:
        tokens = tuple(statement.split(" "))
        found.setdefault(tokens[:STATEMENT], []).append(tokens)
    return found


def statements_in(tokens: Sequence[str], starts: Starts) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The statements that stand among the words of a text, each with the place of its first word."""
    if not starts:
        return
    for at, first in enumerate(zip(*(tokens[at:] for at in range(STATEMENT)), strict=False)):
        for statement in starts.get(first, ()):
            if tuple(tokens[at : at + len(statement)]) == statement:
                yield at, statement


def matches(pattern: Any, text: str) -> bool:
    """Whether a compiled pattern is found in a text, however its accents are encoded."""
    forms = {text, *(normalize(form, text) for form in ("NFC", "NFD"))} if not text.isascii() else {text}
    return any(pattern.search(form.encode("utf-8", "replace")) is not None for form in forms)


def tokens_of(text: str) -> tuple[str, ...]:
    """The words of a text, folded, whatever stands between them."""
    return tuple(TOKEN.findall(fold(text)))


def words_of(gone: Sequence[Entry], kept: Iterable[Entry], pattern: Any = None) -> Words:
    """What entries say that none of the kept ones does."""
    rest = Kept()
    for entry in kept:
        rest.take(entry)
    return words_besides(gone, rest, pattern)


def words_besides(gone: Sequence[Entry], rest: Kept, pattern: Any = None) -> Words:
    """What entries say that is not said by the rest."""
    telling: set[str] = set()
    numbers: set[str] = set()
    grams: set[str] = set()
    for text in dict.fromkeys(text for entry in gone for text in (entry.text, *values_of(entry))):
        for token in tokens_of(text):
            if token in rest.tokens or UNSPACED.search(token):
                continue
            if token.isdecimal():
                (telling if len(token) >= LONG_NUMBER else numbers).add(token)
            elif token not in telling and is_telling(token, rest.terms):
                telling.add(token)
        grams.update(gram for gram in grams_of(text) if gram not in rest.grams)
    spoken = dict.fromkeys(one for entry in gone for one in statements_of(entry.text))
    said = rest.said_of(spoken)
    return Words(
        frozenset(telling),
        frozenset(grams),
        frozenset(number for number in numbers if len(number) > 1),
        tuple(statement for statement in spoken if statement not in said),
        pattern,
    )


class Kept:
    """What the entries say that stay."""

    def __init__(self) -> None:
        self.tokens: set[str] = set()
        self.terms: set[str] = set()
        self.grams: set[str] = set()
        self.texts: set[tuple[str, ...]] = set()
        self.seen: set[str] = set()

    def take(self, entry: Entry) -> None:
        """Note what an entry says."""
        for key, value in entry.signature.fields:
            if key != "links":  # which names topics, perhaps after what is gone
                self.tokens.update(tokens_of(value))
        self.texts.add(self.note(entry.text))
        for value in values_of(entry):
            self.note(value)

    def note(self, text: str) -> tuple[str, ...]:
        """Note the words of a text, and give them."""
        tokens = tokens_of(text)
        if text not in self.seen:
            self.seen.add(text)
            self.tokens.update(tokens)
            self.terms.update(analyse(text))
            self.grams.update(grams_of(text))
        return tokens

    def take_all(self, other: Kept) -> None:
        """Note what others noted."""
        self.tokens |= other.tokens
        self.terms |= other.terms
        self.grams |= other.grams
        self.texts |= other.texts
        self.seen |= other.seen

    def said_of(self, statements: Iterable[str]) -> set[str]:
        """Which statements one of them holds."""
        starts = starts_of(statements)
        return {" ".join(found) for text in self.texts for _, found in statements_in(text, starts)}


def is_telling(token: str, terms: Collection[str]) -> bool:
    """Whether a word names something: it is no everyday word, and the kept entries have it in no form."""
    if len(token) < 2 or token in OUR_OWN:
        return False
    if not token.isalpha():
        return True
    own = analyse(token)
    return any(term not in light_terms() for term in own) and not any(term in terms for term in own)


def values_of(entry: Entry) -> list[str]:
    """The field values of an entry that are words: who said it, its label, whatever was added."""
    return [value for key, value in entry.signature.fields if key not in BARE_KEYS]


def grams_of(text: str) -> Iterator[str]:
    """Pairs of characters of what is written without spaces."""
    for run in UNSPACED.findall(fold(text)):
        yield from (run[at : at + 2] for at in range(len(run) - 1))


def statements_of(text: str) -> list[str]:
    """The whole text and each of its sentences, as far as they are long enough to be known again."""
    pieces = [text, *SENTENCE.split(text)]
    spoken = [tokens_of(piece) for piece in pieces]
    return list(dict.fromkeys(" ".join(tokens) for tokens in spoken if len(tokens) >= STATEMENT))


def readable(content: bytes) -> str:
    """The bytes of any file as text, its escapes undone where it has any: `Z\\u00fcrich` is Zürich."""
    text = content.decode("utf-8", "replace")
    if b"\\" not in content:
        return text
    return text + "\n" + ESCAPE.sub(unescaped, text)


def is_plain(content: bytes) -> bool:
    """Whether bytes are text as we read it: packed or in UTF-16 they may hold any words unseen."""
    if b"\0" in content:
        return False
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


MEDIA = re.compile(
    rb"\x89PNG|\xff\xd8\xff|GIF8|BM....\0\0|II\*\0|MM\0\*"
    rb"|RIFF....(?:WEBP|WAVE|AVI )|....ftyp|ID3|\xff[\xe2-\xfb]|OggS|fLaC|\x1aE\xdf\xa3",
    re.DOTALL,
)


def is_media(content: bytes) -> bool:
    """Whether bytes begin as pictures, sounds and films do: words may be seen or heard in them, but not read."""
    return MEDIA.match(content) is not None


ESCAPE = re.compile(r'(?:\\u[0-9a-fA-F]{4})+|\\x[0-9a-fA-F]{2}|\\[nt"/]')


def unescaped(match: re.Match[str]) -> str:
    """What an escape of JSON or YAML stands for; line breaks as spaces, so that lines keep their numbers."""
    escape = match[0]
    if escape.startswith("\\x"):
        return chr(int(escape[2:], 16))
    try:
        plain = str(json.loads(f'"{escape}"'))
    except ValueError:
        return escape
    return plain.encode("utf-8", "replace").decode("utf-8").replace("\n", " ")
