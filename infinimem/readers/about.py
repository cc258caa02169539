"""Whether sources are about whom and what was asked: who speaks in them of whom, when, and whether it still holds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from infinimem.ask import Evidence
from infinimem.plan.lexical.weigh import is_person
from infinimem.plan.rules import FIRST_PERSON
from infinimem.readers.grounds import WORD, is_german, is_ordinary, plain_terms, source_terms, terms_of
from infinimem.readers.questions import kind_of
from infinimem.text.when import period
from infinimem.text.words import fold, is_date_term

SENTENCE = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？\n])")
VOCATIVE = re.compile(
    r"(?:(?<=^)|(?<=[.!?\n] )|(?<=[.!?\n]))(?:[^\W\d_]{2,}(?: [^\W\d_]{2,})? ?)?[,]? ?[A-ZÀ-ÞА-Я][^\W\d_]+(?=[!,])"
    r"|, [A-ZÀ-ÞА-Я][^\W\d_]+(?=[.!?…]|$)"
    r"|\b(?:Hi|Hey|Hello|Thanks|Hallo|Liebe[rs]?|Dear|Salut|Hola) [A-ZÀ-ÞА-Я][^\W\d_]+"
)
"""A name that is called, not told of: `Thanks, Caroline!`, `You did it, Mel.`"""
SECOND_PERSON = frozenset(
    "you your you're you've you'll you’re yours du dein deine dir dich euch tu ton ta tes toi tú tus ты твой".split()
)


def strays(words: str, question: str, pieces: Sequence[Evidence], at: Sequence[int]) -> str:
    """Why the cited pieces are about somebody else, or another time, than the question; "" when not seen to be."""
    sources = [pieces[one] for one in at]
    names = names_in(question, pieces)
    if names:
        whys = [about_another(piece, words, names, pieces) for piece in sources]
        if all(whys):
            return whys[0]
    return wrong_time(question, sources)


def about_another(piece: Evidence, words: str, names: set[str], pieces: Sequence[Evidence]) -> str:
    """Why a piece tells of somebody else than those named; "" when that is not seen.

    One who speaks tells of himself, of those he names, and of the one he says `you` to; to be called is not to be
    told of. What nobody by name has said (notes) may be about its writer, unless that is seen to be another.
    """
    speakers = {name for other in pieces if is_person(other.source) for name in words_of(other.source)}
    meant = {name for name in names if any(is_same(name, speaker) for speaker in speakers)}
    if any(is_same(name, word) for name in names for word in words_of(piece.source)):
        return ""
    named = words_of(VOCATIVE.sub(" ", piece.text))
    wanted = meant or names
    if any(is_same(name, word) for name in wanted for word in named):
        return ""
    who = min(wanted).title()
    if is_person(piece.source):
        if meant and not speaks_to_another(piece, words):
            return f"{piece.source} speaks there, not {who}, and not of {who}"
        if speaks_of_oneself(piece):
            return f"{piece.source} speaks of {piece.source}, not of {who}"
    if not names.isdisjoint(whole_words(piece)):
        return ""
    if is_person(piece.source) or all(is_another(name, pieces) for name in wanted):
        return f"the entry is not about {who}"
    return ""


def is_same(name: str, other: str) -> bool:
    """Whether two names are one, or one short for the other: Mel is Melanie, Ann is not Anna."""
    short, long = sorted((name, other), key=len)
    return name == other or (len(short) > 2 and len(long) - len(short) > 2 and long.startswith(short))


@lru_cache(maxsize=4096)
def words_of(text: str) -> frozenset[str]:
    """The words of a text as names are compared, with and without the s of a genitive."""
    words = {fold(word) for word in WORD.findall(text) if word[0].isupper()}
    return frozenset(words | {re.sub(r"['’]?s$", "", word) for word in words})


def speaks_to_another(piece: Evidence, words: str) -> bool:
    """Whether the sentences of a piece that a statement comes from say `you` and not `I`."""
    said = plain_terms(words)
    found = [sentence for sentence in SENTENCE.split(piece.text) if not said.isdisjoint(terms_of(sentence))]
    spoken = [set(WORD.findall(sentence.casefold())) for sentence in found]
    return any(not SECOND_PERSON.isdisjoint(one) and FIRST_PERSON.isdisjoint(one) for one in spoken)


def is_another(name: str, pieces: Sequence[Evidence]) -> bool:
    """Whether one named is seen not to be the writer of the notes: speaks by name, or is told of by an `I`."""
    for piece in pieces:
        told = words_of(piece.source) if is_person(piece.source) else words_of(VOCATIVE.sub(" ", piece.text))
        if any(is_same(name, word) for word in told) and (
            is_person(piece.source) or not FIRST_PERSON.isdisjoint(WORD.findall(piece.text.casefold()))
        ):
            return True
    return False


def names_in(question: str, pieces: Sequence[Evidence]) -> set[str]:
    """The people that a question names, as far as memory shows them to be some: they speak, or are named, in it."""
    speakers = {fold(word) for piece in pieces if is_person(piece.source) for word in WORD.findall(piece.source)}
    found = set()
    for number, match in enumerate(WORD.finditer(question)):
        word = match[0].removesuffix("'s").removesuffix("’s")
        if not word[0].isupper() or len(word) < 3:
            continue
        name = fold(word)
        if name in speakers or (number and not is_german(question) and not is_ordinary(word)):
            found.add(name)
    return found


def whole_words(piece: Evidence) -> set[str]:
    """The words of a piece, and of what it stands under, as they are compared with names; without a genitive's s."""
    parts = [piece.text, piece.source, *piece.headings, piece.topic.replace("-", " "), piece.library.replace("-", " ")]
    words = {fold(word) for part in parts for word in WORD.findall(part)}
    return words | {re.sub(r"['’]?s$", "", word) for word in words}


def speaks_of_oneself(piece: Evidence) -> bool:
    """Whether a person speaks in the first person."""
    return is_person(piece.source) and not FIRST_PERSON.isdisjoint(WORD.findall(piece.text.casefold()))


def wrong_time(question: str, sources: Sequence[Evidence]) -> str:
    """The question asks about a time before all that the sources tell of."""
    asked = [
        term for term in terms_of(question) if is_date_term(term) and term[0] in "dy" and not term.startswith("md")
    ]
    if not asked:
        return ""
    dates = [term[2:] if term.startswith("ym") else term[1:] for term in asked]
    ends = [days[1] for date in dates for days in [period(date)] if days is not None]
    if not ends or any(not set(asked).isdisjoint(source_terms(piece)) for piece in sources):
        return ""
    starts = [days[0] for piece in sources for days in [period(piece.time)] if days is not None]
    if len(starts) == len(sources) and min(starts) > max(ends):
        return f"the entry tells of {min(starts)}, later than was asked"
    return ""


def outdated(words: str, pieces: Sequence[Evidence], at: Sequence[int], question: str) -> str:
    """Why the cited pieces no longer hold where something newer is shown; "" when the past is meant."""
    if kind_of(question).history or kind_of(f". {words}").history:
        return ""
    newer = {(piece.library, seq) for piece in pieces if not piece.retired for seq in piece.seqs}
    if all(pieces[one].retired and (pieces[one].library, pieces[one].by) in newer for one in at):
        return "it was replaced by what is newer"
    return ""
