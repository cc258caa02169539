"""Entries out of a conversation: a model says what it holds and quotes where; code checks each against the words.

The words themselves are in CURRENT before a model sees them, so nothing depends on what it answers. An entry is
taken if its quote stands in a turn and it says nothing that the turn does not say.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from infinimem.config import Access
from infinimem.consolidate.replies import SEQ, Reading, items_named, listing
from infinimem.consolidate.thinking import Thinker, data
from infinimem.llm.reply import items_of, seqs_in, text_of
from infinimem.model import Usage
from infinimem.plan.rules import FIRST_PERSON, WORD, facts_of
from infinimem.store.append import Appended, Draft
from infinimem.text.tokens import estimate
from infinimem.text.when import is_said, month_named, period
from infinimem.text.words import analyse, date_terms, is_date_term

if TYPE_CHECKING:
    from infinimem.search.index import Index

STEP = "extract"
LONGEST = 400
"""Characters of an entry that a model may write; what is longer is a retelling, not a fact."""
LARGEST_PART = 2500
"""Tokens of a conversation that one call reads: more, and a small model skips the middle."""
REPAIR = 1300
"""Tokens that asking once more adds: the faulty reply, cut short, and what is wrong with it."""
BEFORE = 300
"""Tokens of the part before that the next one shows, so that `she` has a name."""
NAMED = 5
"""Turns before the quoted one from which a name may come."""
PER_ENTRY = 90
"""Tokens of the reply that one entry takes."""
MOST = 6
"""Entries that one turn may yield in the mean."""
OWN_WORDS = 0.5
"""Share of an entry's content words that somebody must have said: the rest is how it is put."""
COMPLAINTS = 8
CUT = re.compile(
    r"(?<=\D[.!?;:…])\s+|(?<=[。！？；，\n])"
    r"|\s+(?=(?:but|aber|sondern|mais|pero|sino|но)\b)|(?<=,)\s+(?=(?:doch|ma|men|maar|mas)\b)"
    r"|(?<=,)\s+(?=\w+n['’]t \w+\s*\?|nicht wahr|n['’]est-ce pas|¿?verdad\?|right\?)"
    r"|(?<=^no,)\s+|(?<=^nein,)\s+|(?<=^non,)\s+|(?<=^nee,)\s+|(?<=^нет,)\s+",
    re.IGNORECASE | re.MULTILINE,
)
"""Where a clause ends: a `not` before it says nothing of what comes after."""
UNSPACED_NEGATION = re.compile("[不没沒無]|ない|ません|않|안 ")
ODD_PRONOUNS = frozenset({"i", "mes", "ma", "mi", "mon", "io", "us", "me", "no"})
"""Words of the first person that are other words in other languages."""
HAN = re.compile("[\u3400-\u9fff]")
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
BINDING = frozenset("的了在是和与與将將会會有于於年月日为為他她它这這那个個都也已曾被把给給从從到去来來说說要想于人所")
UNSPACED_MONTH = re.compile("[月월]")
QUOTES = str.maketrans({
    **dict.fromkeys("“”„‟«»‹›″", '"'), **dict.fromkeys("‘’‚‛′`´", "'"), **dict.fromkeys("‐‑‒–—―", "-"),
})  # fmt: skip
INHERITED = ("ns", "sensitivity", "expires", "observed")
NOTHING = frozenset({"", "null", "none", "unknown", "n/a", "empty", "-"})
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
EXTRACT = listing(
    "entries",
    {
        "text": {"type": "string", "maxLength": LONGEST},
        "quote": {"type": "string", "maxLength": LONGEST},
        "turn": SEQ,
        "time": {"type": "string", "maxLength": 25},
    },
)


@dataclass(frozen=True, slots=True)
class Turn:
    """Something that was said and written: an entry of CURRENT. `time` may be partial, or "" for unknown.

    `inherited` are fields that hold for what is taken from it, too.
    """

    seq: int
    text: str
    source: str = ""
    time: str = ""
    inherited: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Fact:
    """What a model took from turns, checked. `seqs` are these turns, the quoted one first."""

    text: str
    time: str
    seqs: tuple[int, ...]

    @property
    def links(self) -> str:
        """Where it comes from, as the signature field `links` says it: `12:from+11:from`."""
        return "+".join(f"{seq}:from" for seq in self.seqs)


@dataclass(frozen=True, slots=True)
class Refused:
    """What a model proposed and what is wrong with it."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class Extracted:
    """What became of words and of what was taken from them.

    `written` are the words, `seqs` the new entries with `facts` in the same order. `refused` was proposed and not
    taken, `notes` are what was changed about the taken, `failures` why some or all was not looked at.
    """

    written: Appended
    seqs: tuple[int, ...] = ()
    facts: tuple[Fact, ...] = ()
    refused: tuple[Refused, ...] = ()
    notes: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)

    @property
    def exit_code(self) -> int:
        """0; 4 when the model failed, 5 when something that it proposed was refused."""
        return 4 if self.failures else 5 if self.refused else 0


@dataclass(frozen=True, slots=True)
class Piece:
    """A turn, or a stretch of one that is too long to be read at once; `at` is its place in the conversation."""

    at: int
    line: str


def extract(
    written: Appended,
    turns: Sequence[Turn],
    thinker: Thinker,
    language: str,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> Extracted:
    """What a model takes from a conversation, part by part; nothing is stored. `seqs` of the result is empty."""
    facts: list[Fact] = []
    refused: list[Refused] = []
    notes: list[str] = []
    parts = parts_of(turns, thinker)
    for number, part in enumerate(parts):
        progress(STEP, number, len(parts))
        checker = Checker(turns, part, language, facts)
        ask_about(part, parts[number - 1] if number else (), checker, thinker)
        facts += checker.facts
        refused += checker.refused
        notes += checker.notes
    failures = tuple(dict.fromkeys(thinker.failures))
    return Extracted(written, (), tuple(facts), tuple(refused), tuple(notes), failures, thinker.usage)


# Asking


def parts_of(turns: Sequence[Turn], thinker: Thinker) -> list[list[Piece]]:
    """The conversation in parts of half the room that there is: the reply takes the other half."""
    room = max(200, min(LARGEST_PART, (thinker.room(STEP, REPAIR) - BEFORE) // 2))
    parts: list[list[Piece]] = []
    used = room
    for at, turn in enumerate(turns):
        for text in stretches(turn.text, room * 3 // 4):
            line = turn_line(turn, text)
            cost = estimate(line) + 1
            if used + cost > room:
                parts.append([])
                used = 0
            parts[-1].append(Piece(at, line))
            used += cost
    return parts


def stretches(text: str, room: int) -> list[str]:
    """A text in pieces of at most so many tokens, cut between sentences where there are any."""
    if estimate(text) <= room:
        return [text]
    pieces = [""]
    for clause in CUT.split(text):
        for at in range(0, len(clause), 2 * room):  # no sentence at all: a token is seldom less than two characters
            bit = clause[at : at + 2 * room]
            if pieces[-1] and estimate(f"{pieces[-1]} {bit}") > room:
                pieces.append("")
            pieces[-1] = f"{pieces[-1]} {bit}".strip()
    return [piece for piece in pieces if piece]


def turn_line(turn: Turn, text: str) -> str:
    """A turn as a model sees it: `[seq] date (weekday) · source: words`, on one line."""
    days = period(turn.time)
    weekday = f" ({DAYS[days[0].weekday()]})" if days is not None and days[0] == days[1] else ""
    about = " · ".join(word for word in (turn.time[:16] + weekday, turn.source) if word)
    words = " ".join(text.split())
    return f"[{turn.seq}] {about}: {words}" if about else f"[{turn.seq}] {words}"


def ask_about(part: Sequence[Piece], before: Sequence[Piece], checker: Checker, thinker: Thinker) -> None:
    """One part of a conversation, asked about once and once more with what was wrong."""
    lines = [piece.line for piece in part]
    shown = ending(before)
    values = {"before": data(shown), "turns": data(lines)}
    tokens = sum(map(estimate, (*lines, *shown)))
    reply = min(thinker.room(STEP, REPAIR) - tokens, 300 + tokens + PER_ENTRY * len(lines))
    thinker.ask(STEP, values, EXTRACT, checker.read, reply_tokens=max(256, reply), likely=lambda: likely_reply(checker))


def ending(part: Sequence[Piece]) -> list[str]:
    """The last lines of a part; of one that is too long by itself, its end."""
    shown: list[str] = []
    for piece in reversed(part):
        if sum(map(estimate, (*shown, piece.line))) > BEFORE:
            break
        shown.insert(0, piece.line)
    return shown or [f"… {piece.line[-2 * BEFORE :]}" for piece in part[-1:]]


def likely_reply(checker: Checker) -> dict[str, object]:
    """A reply such as a model may give: for an estimate."""
    turn = checker.turns[checker.part[0].at]
    row = {"text": turn.text[:80], "quote": turn.text[:80], "turn": turn.seq, "time": ""}
    return {"entries": [row] * len(checker.part)}


# Checking


class Checker:
    """Reads replies about one part; what passes is in `facts`, what did not the last time in `refused`."""

    def __init__(self, turns: Sequence[Turn], part: Sequence[Piece], language: str, known: Sequence[Fact] = ()) -> None:
        self.turns = turns
        self.part = part
        self.language = language
        self.facts: list[Fact] = []
        self.refused: list[Refused] = []
        self.notes: list[str] = []
        self._places = list(dict.fromkeys(piece.at for piece in part))
        self._said = {sense(turns[at].text, language) for at in self._places} | {
            sense(fact.text, language) for fact in known
        }

    def read(self, value: Any) -> Reading[int]:
        """One reply: how many entries were taken so far, and what is wrong with the others."""
        if not items_named(value, "entries"):
            return Reading(None, ("`entries` is missing",))
        self.refused = []
        items = items_of(value, "entries")
        most = MOST * len(self.part) + 10
        for item in items[:most]:
            why = self.take(item)
            if why:
                self.refused.append(Refused(plain(text_of(item.get("text")))[:LONGEST], why))
        if len(items) > most:
            self.refused.append(Refused("", f"{len(items) - most} more entries than so few turns can hold"))
        said = [f"«{one.text[:80]}»: {one.why}" if one.text else one.why for one in self.refused]
        return Reading(len(self.facts), tuple(said[:COMPLAINTS]))

    def take(self, item: Mapping[str, Any]) -> str:
        """Take one proposed entry; what is wrong with it, "" for nothing."""
        text = plain(text_of(item.get("text")))
        if not text:
            return "it has no text"
        if len(text) > LONGEST:
            return f"it is no single fact: more than {LONGEST} characters"
        at, clauses = self.find(text_of(item.get("quote")), next(iter(seqs_in(item.get("turn"))), 0))
        if not clauses:
            return "its quote stands in no turn; copy the words exactly"
        turn = self.turns[at]
        time, doubt = time_for(text_of(item.get("time")), turn)
        seqs, missing = self.sources(text, at, time)
        if missing:
            return f"says what turn {turn.seq} does not say: {', '.join(missing[:3])}"
        if negates(text) != negates(clauses):
            there = "leaves out" if negates(clauses) else "adds"
            return f"{there} a «not» that its quote {'has' if negates(clauses) else 'has not'}"
        copied = first_person(text) & first_person(turn.text)
        if copied and turn.source:
            return f"says «{min(copied)}», but who? Name {turn.source}"
        meaning = sense(text, self.language)
        if meaning in self._said:
            return ""
        self._said.add(meaning)
        self.facts.append(Fact(text, time, seqs))
        if doubt:
            self.notes.append(f"«{text}»: {doubt}")
        return ""

    def find(self, quote: str, seq: int) -> tuple[int, str]:
        """Where a quote stands and the clauses around it: in the named turn, else in any; "" for nowhere."""
        wanted = bare(quote).strip("\"'.…")
        if not wanted or not analyse(quote, self.language):
            return 0, ""
        for at in sorted(self._places, key=lambda at: self.turns[at].seq != seq):
            clauses = [(clause, bare(clause)) for clause in CUT.split(self.turns[at].text) if clause.strip()]
            start = "".join(text for _, text in clauses).find(wanted)
            if start < 0:
                continue
            ends = [0]
            for _, text in clauses:
                ends.append(ends[-1] + len(text))
            around = [
                clause
                for (clause, _), (first, last) in zip(clauses, pairwise(ends), strict=True)
                if first < start + len(wanted) and start < last
            ]
            return at, " ".join(around)
        return 0, ""

    def sources(self, text: str, at: int, time: str) -> tuple[tuple[int, ...], list[str]]:
        """The turns that an entry comes from, the quoted one first; and what none of them says.

        Numbers and dates must stand in the quoted turn, or follow from its time; a name may come from before it.
        """
        turn = self.turns[at]
        dates = dates_known(text, turn, time)
        near = [self.turns[place] for place in range(at, max(-1, at - NAMED - 1), -1)]
        spoken = [f"{one.text} {one.source}" for one in near]
        facts = [facts_of(words) for words in spoken]
        words = [{word.casefold() for word in WORD.findall(one)} for one in spoken]
        terms = [set(analyse(one, self.language)) for one in spoken]
        used = {turn.seq}
        missing = [f"«{term}»" for term in wrong_dates(text, dates)]
        for fact in sorted(facts_of(text) - facts[0] - words[0] - OTHER_NAMES - {"not"}):
            meaning = set(analyse(fact, self.language))
            if UNSPACED.search(fact):
                missing += unsaid_letters(fact, " ".join(spoken), meaning, set().union(*terms))
            elif fact[0].isdigit():
                missing += [] if fact in dates.numbers or (meaning and meaning <= terms[0]) else [fact]
            elif meaning - terms[0] and not is_month(fact, dates) and not is_particle(fact):
                step = next((step for step in range(1, len(near)) if fact in words[step] or meaning <= terms[step]), 0)
                if step:
                    used.add(near[step].seq)
                else:
                    missing.append(fact)
        content = [term for term in analyse(text, self.language) if not is_when(term, dates)]
        said = set().union(*terms)
        if not missing and sum(term in said for term in content) < OWN_WORDS * len(content):
            missing = ["most of its words"]
        return (turn.seq, *sorted(used - {turn.seq}, reverse=True)), missing


def unsaid_letters(word: str, spoken: str, meaning: set[str], known: set[str]) -> list[str]:
    """What nobody said of a run of letters in a script without spaces, where no word can be told from a name.

    Of Han every letter must have been said, but for those that only bind; of others half of the pairs of letters.
    """
    han = [letter for letter in word if HAN.match(letter) and letter not in BINDING and letter not in spoken]
    if han or HAN.search(word):
        return ["".join(dict.fromkeys(han))] if han else []
    return [word] if len(meaning & known) * 2 < len(meaning) else []


OTHER_NAMES = frozenset({"user", "assistant", "ai", "nutzer", "benutzer", "utilisateur", "usuario", "utente"})
"""What a speaker without a name is called."""


@dataclass(frozen=True, slots=True)
class Dates:
    """The dates that an entry may name: their terms as the analyser spells them, and their numbers."""

    terms: frozenset[str]
    numbers: frozenset[str]


def dates_known(text: str, turn: Turn, time: str) -> Dates:
    """What the turn says of dates, what follows from its time, and the entry's own time, which has been checked."""
    terms = {*analyse(turn.text), *date_terms(turn.time), *date_terms(time[:10])}
    named = [term for term in analyse(text) if is_date_term(term)]
    for term in named:
        iso = f"{turn.time[:4]}-{term[2:]}" if term.startswith("md") else term.lstrip("ymd")
        if term not in terms and is_said(iso, turn.text, turn.time):
            terms.update(date_terms(iso))
    numbers: set[str] = set()
    for term in named:
        if term in terms and not re.match(r"m\d", term):
            numbers.update(numbers_of(term.lstrip("ymd"), text))
    return Dates(frozenset(terms), frozenset(numbers))


def numbers_of(date: str, text: str) -> set[str]:
    """The numbers that a date (2026, 2026-05, 05-01, 2026-05-01) may be written with; a month's only in figures."""
    parts = date.split("-")
    plain = [part.lstrip("0") for part in parts]
    found = {mark.join(order) for mark in ".-/" for order in (parts, plain, parts[::-1], plain[::-1])}
    if len(parts) != 2 or len(parts[0]) == 2:  # its last part is a day
        found.update((parts[-1], plain[-1]))
    found.update(part for part in parts if len(part) == 4)
    if UNSPACED_MONTH.search(text):
        found.update((*parts, *plain))
    return found


def wrong_dates(text: str, dates: Dates) -> list[str]:
    """The days, months of a year and days of a month that a text names and that are not among those known."""
    named = [term for term in dict.fromkeys(analyse(text)) if re.match(r"(?:d|ym|md)\d", term)]
    return [term.lstrip("ymd") for term in named if term not in dates.terms]


def is_particle(word: str) -> bool:
    """Whether a word is too short for a name, in a script without capitals that would tell one."""
    return len(word) <= 2 and word.upper() == word.lower()


def is_when(term: str, dates: Dates) -> bool:
    """Whether a term is part of a date or a number, which are checked by themselves."""
    return term.isdecimal() or is_date_term(term) or is_month(term, dates)


def is_month(word: str, dates: Dates) -> bool:
    """Whether a word is the name of a known month, in any language."""
    month = month_named(word)
    return month > 0 and f"m{month:02}" in dates.terms


def time_for(said: str, turn: Turn) -> tuple[str, str]:
    """When an entry is of: as the model says if the turn bears it out, else the turn's time; and why not the former."""
    given = said.strip()
    if given.casefold() in NOTHING:
        return turn.time, ""
    if len(given) > 10 and period(given) is not None:
        hour = re.escape(given[11:16].lstrip("0"))
        if not turn.time.startswith(given) and not re.search(rf"(?<!\d)0?{hour}(?!\d)", turn.text):
            given = given[:10]
    if period(given) is None:
        return turn.time, f"{given[:40]!r} is no date, so it has the time of turn {turn.seq}"
    if not is_said(given[:10], turn.text, turn.time):
        return turn.time, f"turn {turn.seq} does not say {given}, so it has the time of that turn"
    return (turn.time if len(given) == 10 and turn.time.startswith(given) else given.replace(" ", "T", 1)), ""


# Words


def plain(text: str) -> str:
    """A text on one line, of characters that can be printed."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def bare(text: str) -> str:
    """A text without what may differ between words and their quotation: case, white space, kinds of quotes, dashes."""
    return "".join(unicodedata.normalize("NFKC", text).casefold().translate(QUOTES).split())


def sense(text: str, language: str) -> tuple[str, ...]:
    """What a text says, as far as can be told: two with the same content words in the same order say the same."""
    return (*(analyse(text, language) or [bare(text)]), *(["not"] if negates(text) else []))


def negates(text: str) -> bool:
    """Whether a text has a word of negation."""
    return "not" in facts_of(text) or UNSPACED_NEGATION.search(text) is not None


def first_person(text: str) -> frozenset[str]:
    """The words of the first person in a text."""
    found = FIRST_PERSON.intersection(WORD.findall(text.casefold())) - ODD_PRONOUNS
    return found | ({"I"} if "I" in WORD.findall(text) else set())


# Storing


def told(seqs: Sequence[int], drafts: Sequence[Draft], access: Access) -> tuple[tuple[int, ...], tuple[Draft, ...]]:
    """The drafts that a model may be told, with their seqs."""
    pairs = [(seq, one) for seq, one in zip(seqs, drafts, strict=True) if access.permits(dict(one[0].fields))]
    return tuple(seq for seq, _ in pairs), tuple(one for _, one in pairs)


def turns_of(seqs: Sequence[int], drafts: Sequence[Draft]) -> list[Turn]:
    """Entries as they were drafted, under their seqs."""
    return [
        Turn(
            seq,
            text,
            signature.get("source"),
            signature.get("time"),
            tuple((key, value) for key, value in signature.fields if key in INHERITED),
        )
        for seq, (signature, text) in zip(seqs, drafts, strict=True)
    ]


def entry_values(fact: Fact, turns: Sequence[Turn]) -> dict[str, str]:
    """A fact as `Library.write` takes it, with what holds for the quoted turn and so for it too."""
    inherited = next(turn.inherited for turn in turns if turn.seq == fact.seqs[0])
    return {**dict(inherited), "text": fact.text, "source": "AI", "time": fact.time, "links": fact.links}


def recalled(index: Index, texts: Mapping[int, str]) -> tuple[Fact, ...]:
    """Facts that were stored before, by seq, as they stand now; of one that was retired, its words alone."""
    facts = []
    for seq, text in texts.items():
        here = index.locate(seq)
        links = re.findall(r"(\d+):from", here.get("links")) if here is not None else []
        facts.append(Fact(text, here.time if here is not None else "", tuple(map(int, links))))
    return tuple(facts)
