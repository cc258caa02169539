"""Names for what a group of entries is about: subjects, titles, headings, slugs."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from infinimem.model import Entry
from infinimem.plan.lexical.light import (
    ABBREVIATIONS,
    CJK_PARTICLES,
    ENGLISH_SIGNS,
    GERMAN_SIGNS,
    NOUN_AFTER,
    VERB_AFTER,
    VERB_BEFORE,
)
from infinimem.plan.lexical.weigh import is_person, light_terms, subject_terms, vocatives
from infinimem.text.words import analyse

LONGEST_TITLE = 64
LONGEST_READ = 100_000  # characters of an entry that are read for a name or a summary
LONGEST_SLUG = 60
SLUG_WORDS = 5
MAIN_SPEAKER = 0.62  # share of the subject words from which a conversation is one speaker's
SITTING = 4  # entries of one day whose heading names the day
UNNAMED = "Notes"

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+(?:[-'’&.][^\W_{_CJK}]+)*")
_CJK_RUN = re.compile(rf"[{_CJK}]+")
_CJK_PARTICLE = re.compile("[" + "".join(sorted(CJK_PARTICLES)) + "]")
_CONTRACTED = re.compile(r"n['’]t$|['’](?:ll|ve|re|d|m)$", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?…:;\n。！？\"“”(*]")
OPAQUE, LONG_OPAQUE = 10, 18
"""Characters from which a word is opaque whose letters and digits change three times, or at all."""
_CHANGE = re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_JOINTS = re.compile(r"[\W_]+")


def title_of(entries: Sequence[Entry], avoid: Collection[str] = (), weights: Mapping[str, float] | None = None) -> str:
    """A title such as `Caroline: adoption agencies, support group`, in the entries' own words, unlike `avoid`.

    `weights` are the rarity of terms among the documents around; without them every term counts the same.
    """
    who = main_speaker(entries)
    used = {title.casefold() for title in avoid}
    names = subjects(entries, 6, weights)
    title = _title(who, names[:3])
    for skipped in range(1, len(names) - 1):
        if title.casefold() not in used:
            break
        title = _title(who, [names[0], *names[skipped + 1 :]][:3])
    return title


def name_subject(entries: Sequence[Entry], telling: Mapping[str, float], avoid: Collection[str] = ()) -> str:
    """One or two phrases that most of the entries share and that set them apart, unlike `avoid` where possible.

    `telling` is how much each term sets these entries apart from the rest of the library.
    """
    found = subjects(entries, 12, telling, with_names=True)
    said = {name: {at for at, entry in enumerate(entries) if _mentions(entry, name)} for name in found}
    worth = {name: len(said[name]) * _telling(name, telling) for name in found}
    names = sorted(found, key=lambda name: (-worth[name], found.index(name)))
    if not names:
        return main_speaker(entries) or UNNAMED
    first = names[0]
    # a second phrase is worth its place by the entries that the first one leaves out
    added = {name: len(said[name] - said[first]) * _telling(name, telling) for name in names[1:]}
    rest = sorted(added, key=lambda name: (-added[name], names.index(name)))
    used = {slug_of(title, ()) for title in avoid}
    rest.sort(key=lambda name: len(said[name]) < 2)  # what is said once names nothing
    alone = not rest or len(said[rest[0]]) < 2 <= len(said[first])
    choices = [[first]] if alone else []
    choices += [[first, name] for name in rest]
    choices += [[first, *rest[:2]]]
    titles = [_title("", choice) for choice in choices]
    return next((title for title in titles if slug_of(title, ()) not in used), titles[0])


def fitted(titles: Sequence[str]) -> str:
    """As many of some titles as fit, the first at least in part."""
    name = titles[0] if len(titles[0]) <= LONGEST_TITLE else titles[0][: LONGEST_TITLE - 1].rsplit(" ", 1)[0] + "…"
    for title in titles[1:]:
        if len(name) + len(title) + 2 <= LONGEST_TITLE:
            name += f", {title}"
    return name


def name_under(
    title: str, entries: Sequence[Entry], avoid: Collection[str], weights: Mapping[str, float] | None = None
) -> str:
    """A title with what a part of it is about: `Family: boat, berth`."""
    used = {slug_of(one, ()) for one in avoid}
    said = set(subject_terms(title))
    found = [name for name in subjects(entries, 8, weights) if not said.issuperset(subject_terms(name))]
    lead = fitted([title])
    names = [f"{lead}: {name}" for name in found if len(lead) + len(name) + 2 <= LONGEST_TITLE + 16]
    longer = [f"{names[0]}, {name}" for name in found[1:] if names and len(names[0]) + len(name) + 2 <= LONGEST_TITLE]
    choices = [*longer[:3], *names] or [lead]
    return next((name for name in choices if slug_of(name, ()) not in used), choices[0])


def _telling(name: str, telling: Mapping[str, float]) -> float:
    """How much a phrase sets its entries apart: the mean of its words, a little more for a name."""
    values = [telling.get(term, 0.0) for term in subject_terms(name)]
    mean = sum(values) / len(values) if values else 1.0
    return mean * (1.25 if name[:1].isupper() else 1.0)


def _mentions(entry: Entry, name: str) -> bool:
    terms = set(subject_terms(name))
    return terms <= set(subject_terms(entry.text)) if terms else name in entry.text


def heading_of(entries: Sequence[Entry], weights: Mapping[str, float] | None = None) -> str:
    """A heading such as `Adoption agencies, summer break (2023-05-25)`; with the date of a sitting."""
    names = subjects(entries, 2, weights)
    text = _title("", names) if names else main_speaker(entries)
    days = {entry.time[:10] for entry in entries}
    day = days.pop() if len(days) == 1 and len(entries) >= SITTING else ""
    if not text:
        return day
    return f"{text} ({day})" if day else text


def _title(who: str, names: Sequence[str]) -> str:
    """The speaker and as many subjects as fit."""
    if not names:
        return who or UNNAMED
    subject = names[0][: LONGEST_TITLE - len(who)].strip()
    for name in names[1:]:
        if len(who) + len(subject) + len(name) + 4 <= LONGEST_TITLE:
            subject += f", {name}"
    return f"{who}: {subject}" if who else subject[:1].upper() + subject[1:]


def main_speaker(entries: Sequence[Entry]) -> str:
    """The person who does most of the telling, "" where nobody or everybody does."""
    told: Counter[str] = Counter()
    for entry in entries:
        told[entry.source] += 1 + len(subject_terms(entry.text))
    if not told:
        return ""
    source, most = max(told.items(), key=lambda pair: (pair[1], pair[0]))
    return source if is_person(source) and most >= MAIN_SPEAKER * told.total() else ""


def slug_of(title: str, taken: Collection[str]) -> str:
    """A topic id for a title: lowercase words joined by `-`, at most 60 characters, unlike any taken one.

    Safe as a file name everywhere: letters, marks, digits and `-` only, and no name that Windows reserves.
    """
    kept = "".join(
        plain if unicodedata.category(plain[0])[0] in "LMN" else "-"
        for char in unicodedata.normalize("NFKC", title.replace("'", "").replace("’", "")).casefold()
        for plain in [_plain(char)]
    )
    words = [word for word in unicodedata.normalize("NFC", kept).split("-") if word][:SLUG_WORDS]
    slug = _fit(words, LONGEST_SLUG) or UNNAMED.casefold()
    if slug in _RESERVED:
        slug = f"{slug}-{UNNAMED.casefold()}"
    used = {unicodedata.normalize("NFC", name).casefold() for name in taken}
    number, unique = 1, slug
    while unique in used:
        number += 1
        unique = f"{_fit(slug.split('-'), LONGEST_SLUG - 1 - len(str(number)))}-{number}"
    return unique


def _plain(char: str) -> str:
    """A Latin letter without its accents; any other character as it is."""
    base = unicodedata.normalize("NFD", char)[0]
    return base if base.isascii() else _LATIN.get(base, char)


# Latin letters that have no decomposition
_LATIN = {"ø": "o", "æ": "ae", "œ": "oe", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i", "ħ": "h"}


def _fit(words: Sequence[str], limit: int) -> str:
    """As many words as fit; a first word that is longer alone is cut."""
    slug = ""
    for word in words:
        longer = f"{slug}-{word}" if slug else word[:limit]
        if len(longer) > limit:
            break
        slug = longer
    return slug


# ids that would be a device on Windows, or be read as the buffer
_RESERVED = frozenset(
    {"con", "prn", "aux", "nul", "current"} | {f"{port}{number}" for port in ("com", "lpt") for number in range(10)}
)


@dataclass(slots=True)
class _Evidence:
    """What the texts say about one term: in how many entries it is, how it is used."""

    entries: int = 0
    opening: int = 0  # entries that name it in the first sentence that names anything
    noun: int = 0
    verb: int = 0
    name: int = 0
    first: int = 0  # capitals at a sentence's start
    inside: int = 0  # occurrences not at a sentence's start, where a capital means something


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    term: str  # "" for what never names a subject
    before: str  # the word before, casefolded; "" at a sentence's start
    after: str  # the word after, casefolded; "" where more than a space comes between
    joined: bool  # only a space stands between it and the word before
    light: bool = False  # part of a name (`New York`), but no name of itself
    german: bool = False  # where a capital says noun, at a sentence's start too


def subjects(
    entries: Sequence[Entry], count: int, weights: Mapping[str, float] | None = None, with_names: bool = False
) -> list[str]:
    """Up to `count` phrases that name what the entries are about, best first, spelt as in the text.

    `weights` are the rarity of terms in a wider collection; without them every term counts the same.
    In talk the speakers' own names name no subject; in notes they do (`with_names`).
    """
    entries = [beginning(entry) for entry in entries]
    names = frozenset() if with_names else vocatives(entries)
    # in a few notes every word counts; in talk, a word said once only where it plainly is a noun
    if len(entries) >= SITTING:
        found = _subjects(entries, count, weights or {}, names, strict=True)
        if len(found) > 1:
            return found
    return _subjects(entries, count, weights or {}, names, strict=False)


def beginning(entry: Entry) -> Entry:
    """An entry, of a very long one what it begins with: that says what it is about."""
    return replace(entry, text=entry.text[:LONGEST_READ]) if len(entry.text) > LONGEST_READ else entry


def _subjects(
    entries: Sequence[Entry], count: int, weights: Mapping[str, float], names: frozenset[str], strict: bool
) -> list[str]:
    texts = [_words(entry.text) for entry in entries]
    known = _evidence(texts)
    scored: dict[tuple[str, ...], float] = {}
    said: defaultdict[tuple[str, ...], list[tuple[_Word, ...]]] = defaultdict(list)
    for words in texts:
        seen: set[tuple[str, ...]] = set()
        for phrase in _phrases(words, known, strict):
            terms = tuple(word.term for word in phrase)
            if names.intersection(terms) or len(set(terms)) < len(terms):
                continue
            said[terms].append(phrase)
            if terms not in seen:
                seen.add(terms)
                scored[terms] = scored.get(terms, 0.0) + 1.0
    strength = {term: _weight(use) * weights.get(term, 1.0) for term, use in known.items()}
    value = {terms: _value(terms, often, known, strength) for terms, often in scored.items()}
    # ties go to what was said first
    place = {terms: number for number, terms in enumerate(value)}
    everything = "\n".join(entry.text for entry in entries)
    for run, often in _cjk_phrases([entry.text for entry in entries]).items():
        value[run,] = often
        place[run,] = len(scored) + everything.find(run)
    chosen: list[str] = []
    used: set[str] = set()
    for terms in sorted(value, key=lambda terms: (-value[terms], -len(terms), place[terms], terms)):
        if used.intersection(terms) or _overlaps(terms[0], chosen):
            continue
        terms = _extended(terms, scored, used)
        used.update(terms)
        spelling = Counter(_spell(phrase, known) for phrase in said[terms]) if terms in said else Counter(terms)
        chosen.append(max(spelling, key=lambda text: (spelling[text], text)))
        if len(chosen) == count:
            break
    return chosen


def _overlaps(run: str, chosen: Sequence[str]) -> bool:
    """Whether a run of Chinese or Japanese shares two characters in a row with one already chosen."""
    if not _CJK_RUN.match(run):
        return False
    pairs = [run[at : at + 2] for at in range(len(run) - 1)]
    return any(pair in name for name in chosen for pair in pairs)


def _extended(terms: tuple[str, ...], scored: Mapping[tuple[str, ...], float], used: set[str]) -> tuple[str, ...]:
    """The longer phrase that the terms are part of in most of their entries: `mental health` for `mental`."""
    longer = [
        phrase
        for phrase, often in scored.items()
        if len(phrase) > len(terms) == 1
        and terms[0] in phrase
        and often >= 0.6 * scored.get(terms, math.inf)
        and not used.intersection(phrase)
    ]
    return max(longer, key=lambda phrase: (scored[phrase], -len(phrase), phrase), default=terms)


def _value(terms: Sequence[str], often: float, known: Mapping[str, _Evidence], strength: Mapping[str, float]) -> float:
    """How well a phrase names the subject: how many entries its words are in, and how much it says."""
    each = sum(strength[term] for term in terms) / len(terms)
    # a phrase that is used again is a name; one that occurs once may be a chance neighbourhood of words
    fixed = often / max(known[term].entries for term in terms)
    return each * (1 + (0.8 if often > 1 else 0.4) * min(1, len(terms) - 1) * fixed)


def _weight(known: _Evidence) -> float:
    use = (1 + known.noun) / (1 + known.noun + 2 * known.verb)
    return (known.entries + 0.3 * known.opening + 0.5 * (known.name > 0)) * (0.3 + 0.7 * use)


def _evidence(texts: Sequence[Sequence[_Word]]) -> dict[str, _Evidence]:
    known: defaultdict[str, _Evidence] = defaultdict(_Evidence)
    for words in texts:
        first = next((at for at, word in enumerate(words) if word.term), 0)
        opening = next((at for at, word in enumerate(words) if at > first and not word.before), len(words))
        for term in {word.term for word in words if word.term}:
            known[term].entries += 1
        for term in {word.term for word in words[:opening] if word.term}:
            known[term].opening += 1
        nominal = False
        for word in words:
            if not word.term:
                nominal = False
                continue
            evidence = known[word.term]
            # in `about mental health` both words are nominal
            nominal = word.before in NOUN_AFTER or word.before.endswith(("'s", "’s")) or (nominal and word.joined)
            evidence.noun += nominal
            evidence.verb += (word.before in VERB_AFTER) + (word.after in VERB_BEFORE)
            if word.before:
                evidence.inside += 1
                evidence.name += word.text[:1].isupper()
            else:
                evidence.first += word.text[:1].isupper()
    return known


def _phrases(words: Sequence[_Word], known: Mapping[str, _Evidence], strict: bool) -> list[tuple[_Word, ...]]:
    """Every run of one to three subject words with nothing between, that ends in something nameable."""
    found = []
    for last, word in enumerate(words):
        goes_on = last + 1 < len(words) and words[last + 1].joined and _can_end(words[last + 1], known, strict)
        if goes_on or not _can_end(word, known, strict):
            continue
        phrase: tuple[_Word, ...] = ()
        for first in range(last, max(-1, last - 3), -1):
            if not words[first].term or (phrase and not phrase[0].joined):
                break
            phrase = (words[first], *phrase)
            if len(phrase) == 1 or _can_begin(words[first]):
                found.append(phrase)
    return found


def _can_end(word: _Word, known: Mapping[str, _Evidence], strict: bool) -> bool:
    if not word.term or word.light or word.after in VERB_BEFORE or word.text.casefold().endswith(("ly", "ed")):
        return False
    use = known[word.term]
    if use.noun + use.name < use.verb:
        return False
    if strict and word.german and not use.inside:
        return False  # every German sentence begins with a capital
    # a word said once is taken for a noun only where it stands as one: not in `it was chaotic`, `a massive thing`
    return not strict or use.entries > 1 or (use.noun + use.name > 0 and not _is_light(word.after))


def _is_light(word: str) -> bool:
    """Whether a word carries on a phrase without naming anything: `thing`, `week`."""
    terms = analyse(word)
    return bool(terms) and light_terms().issuperset(terms)


def _can_begin(word: _Word) -> bool:
    low = word.text.casefold()
    return not low.endswith("ly") and (not low.endswith("ed") or word.before in NOUN_AFTER)


def _spell(phrase: Sequence[_Word], known: Mapping[str, _Evidence]) -> str:
    """As in the text, but a capital only where a word has it inside sentences too, or is part of a name."""
    spelt: list[str] = []
    for word in reversed(phrase):
        use = known[word.term]
        only_first = not use.inside and use.first > 0 and not word.text.endswith(("ing", "s"))
        is_name = 2 * use.name > use.inside or only_first
        before_name = bool(spelt) and spelt[-1][:1].isupper()
        mixed = word.text[1:] != word.text[1:].lower()
        spelt.append(word.text if mixed or is_name or before_name or word.german else word.text.lower())
    return " ".join(reversed(spelt))


@lru_cache(maxsize=1 << 12)
def _words(text: str) -> tuple[_Word, ...]:
    """The words of a text with their terms; in German only what is written as a noun has one."""
    german = _is_german(text)
    found = list(_WORD.finditer(text))
    between = [text[one.end() : other.start()] for one, other in pairwise(found)]
    words: list[_Word] = []
    for place, match in enumerate(found):
        word = match.group()
        gap = between[place - 1] if place else ""
        follows = place > 0 and (not _SENTENCE_END.search(gap) or _is_initial(found[place - 1].group(), gap))
        before = found[place - 1].group().casefold() if follows else ""
        adjoins = place < len(between) and between[place] == " "
        after = found[place + 1].group() if adjoins else ""
        bare = re.sub(r"['’]s?$", "", word)
        term = _nameable(bare, german)
        light = not (term or german) and bool(before) and word != "I" and word[0].isupper() and after[:1].isupper()
        term = bare.casefold() if light else term
        joined = place > 0 and (gap == " " or _is_initial(found[place - 1].group(), gap))
        words.append(_Word(bare, term, before, after.casefold(), joined, light, german))
    return tuple(words)


@lru_cache(maxsize=1 << 14)
def _nameable(word: str, german: bool) -> str:
    """The term of a word that can name a subject, else ""."""
    if (
        len(word) < 2
        or is_opaque(word)
        or _CJK_RUN.match(word)
        or _CONTRACTED.search(word)
        or (german and not word[0].isupper())
    ):
        return ""
    terms = subject_terms(word)
    return terms[-1] if terms else ""


def is_opaque(word: str) -> bool:
    """Whether a word looks like a key or a password: it names nothing, and a file name is told everywhere."""
    for piece in _JOINTS.split(word):
        changes = len(_CHANGE.findall(piece))
        if (len(piece) >= OPAQUE and changes >= 3) or (len(piece) >= LONG_OPAQUE and changes):
            return True
    return False


def _is_initial(word: str, gap: str) -> bool:
    """`J.` in `J. Rowling` and the `Dr.` of a name end no sentence."""
    return gap == ". " and ends_in_abbreviation(word)


def ends_in_abbreviation(text: str) -> bool:
    """True where a full stop after the text would not end a sentence: an initial, `Dr`, `am 14`."""
    last = text.split()[-1] if text.split() else ""
    if len(last) <= 2 and last.isdecimal():
        return True
    return last.casefold() in ABBREVIATIONS or all(len(part) == 1 and part.isupper() for part in last.split("."))


def _is_german(text: str) -> bool:
    words = re.findall(r"\w+", text.casefold())
    if GERMAN_SIGNS.isdisjoint(words):
        return False
    german = sum(word in GERMAN_SIGNS for word in words)
    return german > sum(word in ENGLISH_SIGNS for word in words)


def _cjk_phrases(texts: Sequence[str]) -> dict[str, float]:
    """Runs of Chinese or Japanese characters between function characters that are repeated, or short."""
    counts: Counter[str] = Counter()
    short: set[str] = set()
    for text in texts:
        pieces = [piece for run in _CJK_RUN.findall(text) for piece in _CJK_PARTICLE.split(run)]
        short.update(piece for piece in pieces if 2 <= len(piece) <= 4)
        counts.update(
            {
                piece[start:stop]
                for piece in pieces
                for start in range(len(piece))
                for stop in range(start + 2, min(start + 6, len(piece)) + 1)
            }
        )
    repeated = {piece: 0.6 * count * (1 + 0.2 * min(len(piece), 5)) for piece, count in counts.items() if count > 1}
    return dict.fromkeys(short, 1.0) | repeated
