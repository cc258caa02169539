"""Whether a statement says what its sources say. Not understanding: words, numbers, dates, names, negation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from infinimem.ask import Evidence
from infinimem.plan.lexical.light import ENGLISH_SIGNS, GERMAN_SIGNS
from infinimem.plan.rules import NEGATIONS
from infinimem.text.when import WEEKDAYS, dates_meant, is_said, period
from infinimem.text.words import analyse, content_words, date_terms, fold, is_date_term

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
ENOUGH = 0.34
"""Share of a statement's content words, those of the question aside, that its sources must have."""
ALONE = 0.6
"""The same for a source that the model did not name, or for a clause that is repeated."""
RELATED = 0.34
"""Share of the question's content words that a source must have where the statement is a bare number or date."""
CLAUSE = re.compile(
    r"(?<=[.!?;:…])\s+|(?<=[。！？；，\n])|,\s+|\s+[–—-]\s+"
    r"|\b(?:but|because|although|aber|sondern|weil|mais|pero|sino)\b",
    re.IGNORECASE,
)
ONLY = re.compile(
    r"\b(?:only|except|instead|rather than|refused?|failed?|lost|nur|außer|statt|seulement|sauf|solo)\b|仅|只"
)
"""Words that deny something without a `not`."""
SURE_NAME = re.compile(
    r"\b(?:hei(?:ßt|ßen|sst)|hieß|namens|nennt sich|herrn?|frau|dr\.|onkel|tante|cousine|bruder|schwester)\s+$",
    re.IGNORECASE,
)
"""What a German name follows, and seldom another noun."""
DAY = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b|\b(?:am|vom|bis zum|ab dem) (\d{1,2})\.(?!\d)", re.IGNORECASE)
"""A day of a month that is not named."""
VERSION = re.compile(r"(?<![\w.])v?\d+(?:\.\d+){2,}(?!\w)")
TIME_WORDS = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday week weekend month year day hour minut second date clock "
    "a.m p.m am pm around about approxim earli late mid sinc until begin end percent "
    "montag dienstag mittwoch donnerstag freitag samstag sonntag woch monat jahr tag uhr prozent".split()
)
"""Words that say how a number or a date is meant, as stems."""


def unsupported(words: str, sources: Sequence[Evidence], question: str, count: int = 0) -> str:
    """What a statement says that its sources do not; "" when nothing is seen to be wrong."""
    said = set(terms_of(words))
    known = set(terms_of(question)).union(*(source_terms(piece) for piece in sources))
    wrong = bad_dates(said, known, sources) or bad_weekday(words, said, sources, question)
    wrong = wrong or bad_numbers(words, said, known, sources, count)
    wrong = wrong or bad_names(words, known, sources, question) or bad_negation(words, sources, question)
    if wrong:
        return wrong
    here = tongue(words)
    translated = any(here and there and here != there for there in (tongue(piece.text) for piece in sources))
    if not translated and overlap(words, sources, question) < ENOUGH:
        return "its words are not those of the entry it cites"
    return ""


def bad_dates(said: set[str], known: set[str], sources: Sequence[Evidence]) -> str:
    """A date that no source says, nor follows from one. Of 1 May 2026 the whole counts, not that it is in May."""
    dates = {term for term in said if is_date_term(term)}
    parts = {part for term in dates for part in parts_of(term)}
    for term in sorted(dates - parts - known):
        if not any(says_date(term, piece) for piece in sources):
            return f"no source says {iso_of(term)}"
    return ""


def parts_of(term: str) -> list[str]:
    """The date terms that a date term has in it."""
    if term.startswith("m"):
        return [f"m{term[2:4]}"] if term.startswith("md") else []
    return [part for part in date_terms(iso_of(term)) if part != term]


def iso_of(term: str) -> str:
    """A date term as an ISO date; a month or day of no year without one."""
    return term.lstrip("ymd")


def says_date(term: str, piece: Evidence) -> bool:
    """Whether a piece says a date, or one follows from its words and its time; of no year, that of any near one."""
    at = piece.time or piece.observed[:10]
    if term[0] == "d" or term.startswith("md"):
        month, day = term[-5:-3], int(term[-2:])
        if at[5:7] == month and any(int(found[1] or found[2]) == day for found in DAY.finditer(piece.text)):  # the 15th
            return True
    if not term.startswith("m"):
        return is_said(iso_of(term), piece.text, at)
    year = int(at[:4]) if at[:4].isdigit() else 0
    return any(is_said(f"{near:04}-{iso_of(term)}", piece.text, at) for near in (year, year - 1, year + 1) if near > 0)


def bad_weekday(words: str, said: set[str], sources: Sequence[Evidence], question: str) -> str:
    """A weekday that no source names, and that none of their dates nor of the statement's own falls on."""
    told = " ".join((question, *(piece.text for piece in sources))).casefold()
    days = [days[0] for piece in sources for days in [period(piece.time or piece.observed[:10])] if days is not None]
    days += [days[0] for term in said if term[0] == "d" for days in [period(iso_of(term))] if days is not None]
    for number, pattern in enumerate(WEEKDAYS):
        found = pattern.search(words.casefold())
        if found and not pattern.search(told) and not any(day.weekday() == number for day in days):
            return f"no source says {found[0].capitalize()}"
    return ""


def bad_numbers(words: str, said: set[str], known: set[str], sources: Sequence[Evidence], count: int) -> str:
    """A number that no source has; days and years of dates, and how many sources there are, are not meant."""
    parts = {str(int(term[-2:])) for term in said if re.fullmatch(r"m?d.*", term) and is_date_term(term)}
    allowed = known | parts | {str(len(sources)), str(count)}
    wrong = [term for term in said if term[0].isdigit() and term not in allowed and f"y{term}" not in said]
    told = " ".join(piece.text for piece in sources)
    wrong += [version for version in VERSION.findall(words) if version not in told]
    return f"no source says {min(wrong)}" if wrong else ""


def bad_names(words: str, known: set[str], sources: Sequence[Evidence], question: str) -> str:
    """A name that no source and not the question has. In German every noun is capital, so only some are sure."""
    german = is_german(words)
    whole = {fold(word) for piece in sources for word in WORD.findall(f"{piece.text} {piece.source} {piece.library}")}
    whole |= {fold(word) for word in WORD.findall(question)}
    first = True
    for match in WORD.finditer(words):
        name = match[0].removesuffix("'s").removesuffix("’s")
        opens = first or words[: match.start()].rstrip().endswith((".", "!", "?", ":", "“", '"'))
        first = False
        if not name[0].isupper() or len(name) < 2 or opens or is_ordinary(name):
            continue
        if german and not SURE_NAME.search(words[: match.start()]):
            continue
        if fold(name) not in whole and not known.intersection(analyse(name)) and analyse(name):
            return f"no source names {name}"
    return ""


def bad_negation(words: str, sources: Sequence[Evidence], question: str) -> str:
    """A "not" that no source has, or one that the clause has which the statement repeats without it."""
    if has_negation(question):
        return ""
    if has_negation(words):
        if any(has_negation(piece.text) or ONLY.search(piece.text.casefold()) or piece.retired for piece in sources):
            return ""
        return "it denies what no source denies"
    clauses = [clause for piece in sources for clause in CLAUSE.split(piece.text) if clause.strip()]
    said = plain_terms(words)
    shares = [(len(said.intersection(terms_of(clause))), has_negation(clause)) for clause in clauses]
    most = max((share for share, _ in shares), default=0)
    if most >= max(2, ALONE * len(said)) and all(denied for share, denied in shares if share == most):
        return "it leaves out the source's `not`"
    return ""


def has_negation(text: str) -> bool:
    """Whether a text says not, never, no, kein, ne … pas, 不 or the like."""
    words = {word.replace("’", "'") for word in WORD.findall(text.casefold())}
    return not NEGATIONS.isdisjoint(words) or any(sign in text for sign in "不没沒無")


def overlap(words: str, sources: Sequence[Evidence], question: str) -> float:
    """The share of a statement's content words that the sources have, those of the question aside.

    Where nothing is left but what the question says, numbers and dates: whether the sources have enough of its words.
    """
    known = set().union(*(source_terms(piece) for piece in sources))
    said = plain_terms(words)
    rest = said.difference(terms_of(question)) if question else said
    if rest:
        return len(rest & known) / len(rest)
    asked = plain_terms(question) if question else said
    return 1.0 if len(asked & known) >= RELATED * len(asked) else 0.0


def shares_nothing(words: str, piece: Evidence) -> bool:
    """Whether a piece says not one word, number or date of a statement. In another language it might, unseen."""
    here, there = tongue(words), tongue(piece.text)
    if here and there and here != there:
        return False
    said = set(content_words(words))
    if not plain_terms(words) or not piece.seqs:
        return source_terms(piece).isdisjoint(said) and not any(
            is_date_term(term) and says_date(term, piece) for term in said
        )
    meant = " ".join(date for _, date in dates_meant(piece.text, piece.time or piece.observed))
    return said.isdisjoint(terms_of(f"{piece.text} {piece.library} {piece.source} {meant}"))


@lru_cache(maxsize=4096)
def plain_terms(text: str) -> frozenset[str]:
    """The content words of a text that are no part of a number or a date: those are looked at by themselves."""
    months = {term for word in WORD.findall(text) if is_month(word) for term in analyse(word)}
    return frozenset(
        term
        for term in content_words(text)
        if not is_date_term(term) and not term[0].isdigit() and term not in TIME_WORDS and term not in months
    )


@lru_cache(maxsize=4096)
def is_month(word: str) -> bool:
    """Whether a word is the name of a month, in any of several languages."""
    return any(re.fullmatch(r"m\d\d", term) for term in analyse(f"1 {word} 2000"))


@lru_cache(maxsize=4096)
def terms_of(text: str) -> tuple[str, ...]:
    """The analysed words of a text."""
    return tuple(analyse(text))


def source_terms(piece: Evidence) -> set[str]:
    """What a piece says: text, who, when; of prose that nobody signed, also what it stands under.

    The headings over entries are the planner's, made of words of other entries.
    """
    about = " ".join((piece.library, piece.source, *(() if piece.seqs else piece.headings)))
    return {*terms_of(piece.text), *terms_of(about), *date_terms((piece.time or piece.observed)[:10])}


def is_german(text: str) -> bool:
    """Whether a text reads German rather than English."""
    return tongue(text) == "german"


def tongue(text: str) -> str:
    """Roughly which language a text is in: what is in another one has other words for the same."""
    if any("\u3040" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7af" for char in text):
        return "cjk"
    words = WORD.findall(text.casefold())
    german, english = (sum(word in signs for word in words) for signs in (GERMAN_SIGNS, ENGLISH_SIGNS))
    return "" if german == english else "german" if german > english else "english"


def is_ordinary(word: str) -> bool:
    """Whether a capital word is a month, a weekday or the like."""
    return any(is_date_term(term) for term in analyse(word)) or fold(word) in ORDINARY


ORDINARY = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday english german french spanish christmas easter".split()
)
