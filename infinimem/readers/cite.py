"""Whether a statement says what its sources say, and whether those are about what was asked. Pure, and careful.

Not understanding: words. A number, a date, a name or a "not" that no source has is not supported; a source in which
somebody else speaks of himself is no answer. Doubtful cases pass where a refusal would more often be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from infinimem.ask import Evidence
from infinimem.plan.lexical.light import ENGLISH_SIGNS, GERMAN_SIGNS
from infinimem.plan.rules import FIRST_PERSON, NEGATIONS, NOBODY
from infinimem.text.when import is_said, period
from infinimem.text.words import analyse, content_words, date_terms, fold, is_date_term

CITATION = re.compile(r"[\[【]\s*((?:[^\[\]【】\n]){1,160}?)\s*[\]】]")
NUMBERS = re.compile(r"#?\d{1,4}(?:\s*[-–]\s*#?\d{1,4})?(?:\s*[,;&]\s*#?\d{1,4}(?:\s*[-–]\s*#?\d{1,4})?)*")
END = re.compile(r"(?:[.!?…]+[\"'”’»)*_]*(?=\s|$)|[。！？]+[」』”]?|\n+)")
TRAILING = re.compile(r"(?:[^\S\n]*[\[【][^\[\]【】\n]{1,160}[\]】][.;]?)+")
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
ABBREVIATION = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|prof|st|hr|fr|nr|no|bzw|ca|vs|vgl|e\.g|i\.e|z\.b|d\.h|u\.a|etc|approx|jr|sr)|\b[^\W\d_]|\b\d{1,2})\.$",
    re.IGNORECASE,
)
NOT_THERE = re.compile(r"\W*(?:not|nicht) (?:in|im) (?:memory|gedächtnis)\b", re.IGNORECASE)
SHORT_SOURCE = 25
"""Words up to which an entry is one statement, so that its "not" belongs to all of it."""
ENOUGH = 0.34
"""Share of a statement's content words that its sources or the question must have."""
ALONE = 0.6
"""The same for a source that the model did not name."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A statement after the check: its text with `[topic:line]` citations, or why it has no support."""

    text: str
    citations: tuple[str, ...] = ()
    removed: int = 0
    why: str = ""


def statements(text: str) -> Iterator[tuple[str, int]]:
    """The statements of a text with their citations, each with where it ends; the last may be unfinished."""
    start = at = 0
    while match := END.search(text, at):
        at = match.end()
        if match[0].startswith(".") and ABBREVIATION.search(text[start : match.end()]):
            continue
        trailing = TRAILING.match(text, at)
        if trailing:
            at = trailing.end()
        if text[start:at].strip():
            yield text[start:at].strip(), at
        start = at
    if text[start:].strip():
        yield text[start:].strip(), len(text)


def finished(text: str) -> tuple[list[str], str]:
    """Of a text that is still being written: the statements that nothing can be added to, and the rest."""
    found = list(statements(text))
    done: list[str] = []
    end = 0
    for statement, stop in found[:-1]:  # a citation may still follow the last one
        if text[stop:].lstrip()[:1] in ("[", "【") and stop == found[-2][1]:  # or be on its way
            break
        done.append(statement)
        end = stop
    return done, text[end:]


def cited(statement: str, pieces: Sequence[Evidence]) -> tuple[list[int], int, str]:
    """The pieces that a statement cites, how many of its citations exist nowhere, and its words alone."""
    places = {piece.place.casefold(): at for at, piece in enumerate(pieces)}
    found: dict[int, None] = {}
    unknown = 0
    bare: list[str] = []
    last = 0
    for match in CITATION.finditer(statement):
        inside = match[1]
        if NUMBERS.fullmatch(inside):
            numbers = list(numbers_in(inside))
            found.update(dict.fromkeys(number - 1 for number in numbers if 1 <= number <= len(pieces)))
            unknown += sum(not 1 <= number <= len(pieces) for number in numbers)
        else:
            names = [name.strip().casefold() for name in re.split(r"[,;]\s+", inside)]
            known = [places[name] for name in names if name in places]
            if not known and ":" not in inside:
                continue  # brackets of the text's own
            found.update(dict.fromkeys(known))
            unknown += len(names) - len(known)
        bare.append(statement[last : match.start()])
        last = match.end()
    bare.append(statement[last:])
    words = " ".join("".join(bare).split())
    return list(found), unknown, re.sub(r"\s+([.,;:!?])", r"\1", words)


def numbers_in(text: str) -> Iterator[int]:
    """The numbers of `1, 3-5`; a range of more than a hundred is none."""
    for piece in re.split(r"[,;&]", text):
        ends = [int(number) for number in re.findall(r"\d+", piece)]
        if len(ends) == 2 and 0 <= ends[1] - ends[0] <= 100:
            yield from range(ends[0], ends[1] + 1)
        else:
            yield from ends


def check(
    statement: str,
    pieces: Sequence[Evidence],
    question: str,
    *,
    before: Sequence[int] = (),
    count: int = 0,
) -> tuple[Checked, list[int]]:
    """A statement held against the pieces that it cites; and the places of those, for the next one.

    One that cites nothing is held against what the statement before it cited (`before`), then against each piece
    alone: if one bears it out, the citation is added. `count` is how long a complete list is.
    """
    asked, removed, words = cited(statement, pieces)
    if not words.strip(" .,;:!?-*•"):
        return Checked("", removed=removed, why="it says nothing"), []
    if asked:
        why = unsupported(words, [pieces[at] for at in asked], question, count) or strays(question, pieces, asked)
        if why:
            # of several sources one may be wrong
            single = [at for at in asked if len(asked) > 1 and not fails(words, pieces, [at], question, count)]
            if not single:
                return Checked(words, removed=removed, why=why), []
            asked = single[:1]
    else:
        asked = found_for(words, pieces, question, before, count)
        if not asked:
            return Checked(words, removed=removed, why="it cites no entry"), []
    places = tuple(pieces[at].place for at in asked)
    marks = " ".join(f"[{place}]" for place in places)
    end = re.search(r"[.!?。！？…]+$", words)
    text = f"{words[: end.start()]} {marks}{end[0]}" if end else f"{words} {marks}"
    return Checked(text, places, removed), asked


def fails(words: str, pieces: Sequence[Evidence], at: Sequence[int], question: str, count: int) -> str:
    """Why some pieces do not bear a statement out; "" where they do."""
    return unsupported(words, [pieces[one] for one in at], question, count) or strays(question, pieces, at)


def found_for(words: str, pieces: Sequence[Evidence], question: str, before: Sequence[int], count: int) -> list[int]:
    """The pieces that bear out a statement which names none: those of the statement before, or one alone."""
    if before and not fails(words, pieces, before, question, count):
        return list(before)
    best: tuple[float, int] | None = None
    for at, piece in enumerate(pieces):
        share = overlap(words, [piece], "")
        if share >= ALONE and not fails(words, pieces, [at], question, count) and (best is None or share > best[0]):
            best = (share, at)
    return [best[1]] if best else []


# Does the statement say what the sources say?


def unsupported(words: str, sources: Sequence[Evidence], question: str, count: int = 0) -> str:
    """What a statement says that its sources do not; "" when nothing is seen to be wrong."""
    said = set(terms_of(words))
    known = set(terms_of(question)).union(*(source_terms(piece) for piece in sources))
    wrong = bad_dates(said, known, sources) or bad_numbers(said, known, sources, count)
    wrong = wrong or bad_names(words, known, sources, question) or bad_negation(words, sources, question)
    if wrong:
        return wrong
    here = tongue(words)
    translated = any(here and there and here != there for there in (tongue(piece.text) for piece in sources))
    if not translated and overlap(words, sources, "") < ENOUGH:
        return "its words are not those of the entry it cites"
    return ""


def bad_dates(said: set[str], known: set[str], sources: Sequence[Evidence]) -> str:
    """A date that no source says, nor follows from one."""
    for term in sorted(term for term in said if is_date_term(term) and term[0] in "dy" and term not in known):
        date = term[2:] if term.startswith("ym") else term[1:]
        if not any(is_said(date, piece.text, piece.time or piece.observed[:10]) for piece in sources):
            return f"no source says {date}"
    return ""


def bad_numbers(said: set[str], known: set[str], sources: Sequence[Evidence], count: int) -> str:
    """A number that no source has; days and years of dates, and how many sources there are, are not meant."""
    parts = {str(int(term[-2:])) for term in said if re.fullmatch(r"m?d.*", term) and is_date_term(term)}
    allowed = known | parts | {str(len(sources)), str(count)}
    wrong = [term for term in said if term[0].isdigit() and term not in allowed and f"y{term}" not in said]
    return f"no source says {min(wrong)}" if wrong else ""


def bad_names(words: str, known: set[str], sources: Sequence[Evidence], question: str) -> str:
    """A name that no source and not the question has. In German every noun is capital, so nothing can be told."""
    if is_german(words):
        return ""
    whole = {fold(word) for piece in sources for word in WORD.findall(f"{piece.text} {piece.source} {piece.topic}")}
    whole |= {fold(word) for word in WORD.findall(question)}
    first = True
    for match in WORD.finditer(words):
        name = match[0].removesuffix("'s").removesuffix("’s")
        opens = first or words[: match.start()].rstrip().endswith((".", "!", "?", ":", "“", '"'))
        first = False
        if not name[0].isupper() or len(name) < 2 or opens:
            continue
        if fold(name) not in whole and not known.intersection(analyse(name)) and analyse(name):
            return f"no source names {name}"
    return ""


def bad_negation(words: str, sources: Sequence[Evidence], question: str) -> str:
    """A "not" that no source has, or one that the only, short source has and the statement lacks."""
    denies = has_negation(words)
    if has_negation(question):
        return ""
    deny = [has_negation(piece.text) for piece in sources]
    if denies and not any(deny) and not any(piece.retired for piece in sources):
        return "it denies what no source denies"
    if not denies and len(sources) == 1 and deny[0] and len(sources[0].text.split()) <= SHORT_SOURCE:
        shared = overlap(words, sources, "")
        if shared >= ALONE:
            return "it leaves out the source's `not`"
    return ""


def has_negation(text: str) -> bool:
    """Whether a text says not, never, no, kein, ne … pas, 不 or the like."""
    words = {word.replace("’", "'") for word in WORD.findall(text.casefold())}
    return not NEGATIONS.isdisjoint(words) or any(sign in text for sign in "不没沒無")


def overlap(words: str, sources: Sequence[Evidence], question: str) -> float:
    """The share of a statement's content words that the sources or the question have; 1 where it has none."""
    said = {term for term in content_words(words) if not is_date_term(term) and not term[0].isdigit()}
    if not said:
        return 1.0
    known = set(terms_of(question)).union(*(source_terms(piece) for piece in sources))
    return len(said & known) / len(said)


@lru_cache(maxsize=4096)
def terms_of(text: str) -> tuple[str, ...]:
    """The analysed words of a text."""
    return tuple(analyse(text))


def source_terms(piece: Evidence) -> set[str]:
    """Everything that a piece says of itself: text, who, when, and what it stands under."""
    about = " ".join((piece.source, *piece.headings, piece.topic.replace("-", " ").replace("/", " ")))
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


# Are the sources about what was asked?


def strays(question: str, pieces: Sequence[Evidence], at: Sequence[int]) -> str:
    """Why the cited pieces are about somebody else, or another time, than the question; "" when not seen to be."""
    sources = [pieces[one] for one in at]
    names = names_in(question, pieces)
    if names:
        told = set().union(*(whole_words(piece) for piece in sources))
        if names.isdisjoint(told) and any(
            is_person(piece.source) or is_foreign(piece, pieces, names) for piece in sources
        ):
            return f"the entry is not about {min(names).title()}"
        for piece in sources:
            if len(sources) == 1 and speaks_of_oneself(piece) and names.isdisjoint(whole_words(piece, headings=False)):
                return f"{piece.source} speaks of {piece.source}, not of {min(names).title()}"
    return wrong_time(question, sources)


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


def is_ordinary(word: str) -> bool:
    """Whether a capital word is a month, a weekday or the like."""
    return any(is_date_term(term) for term in analyse(word)) or fold(word) in ORDINARY


ORDINARY = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday english german french spanish christmas easter".split()
)


def whole_words(piece: Evidence, *, headings: bool = True) -> set[str]:
    """The words of a piece as they are compared with names; a genitive's s is not part of one."""
    parts = [piece.text, piece.source]
    if headings:
        parts += [*piece.headings, piece.topic.replace("-", " ")]
    words = {fold(word) for part in parts for word in WORD.findall(part)}
    return words | {word.removesuffix("'s").removesuffix("’s").removesuffix("s") for word in words}


def is_person(source: str) -> bool:
    """Whether a source names somebody."""
    return bool(source) and source[:1].isupper() and source.casefold() not in NOBODY and ":" not in source


def is_foreign(piece: Evidence, pieces: Sequence[Evidence], names: Iterable[str]) -> bool:
    """Whether a piece that names nobody asked for stands beside others that do: then those are meant."""
    return any(not set(names).isdisjoint(whole_words(other)) for other in pieces if other is not piece)


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
