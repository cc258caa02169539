"""What the index keeps of a unit: its words, its dates, and itself."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache

from infinimem.errors import BadInput
from infinimem.model import Filter, Unit, path_of
from infinimem.search.rank import Candidate, Sitting
from infinimem.text.document import parse_piece
from infinimem.text.when import end_of
from infinimem.text.words import analyse, date_terms, is_date_term, says_when

_quoted = json.encoder.encode_basestring
_JSON = json.JSONDecoder()
ASKS, ONLY_ASKS, SAYS_WHEN = 1, 2, 4
NEVER = 10**17
"""A moment after all others."""


@dataclass(frozen=True)
class Record:
    """A unit and its analysed words."""

    unit: Unit
    own: tuple[str, ...] = ()
    signature: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    flags: int = 0

    @cached_property
    def distinct(self) -> frozenset[str]:
        """The terms of the text, each once."""
        return frozenset(self.own)

    @property
    def words(self) -> str:
        """The terms of the text and of the signature, a line each."""
        return "\n".join((" ".join(self.own), " ".join(self.signature)))

    @property
    def above(self) -> str:
        """The terms of the headings."""
        return " ".join(self.headings)

    @property
    def stored(self) -> bytes:
        """The unit and its flags; `restore` reads it."""
        unit = self.unit
        fields = ", ".join([f"[{_quoted(key)}, {_quoted(value)}]" for key, value in unit.fields])
        headings = ", ".join(map(_quoted, unit.headings))
        seqs = ", ".join(map(str, unit.seqs))
        row = (  # as JSON, put together here: an encoder takes three times as long
            f"[{_quoted(unit.path)}, {unit.line}, {unit.stop}, {_quoted(unit.text)}, [{seqs}], [{headings}], [{fields}]"
            f", {_quoted(unit.retired)}, {self.flags}]"
        )
        return row.encode("utf-8", "surrogatepass")

    @cached_property
    def candidate(self) -> Candidate:
        """The record as the ranking sees it."""
        unit = self.unit
        return Candidate(
            self.own,
            self.signature,
            self.headings,
            unit.seqs,
            unit.source,
            Sitting(unit.time[:10], _minute(unit.observed), unit.get("ns")),
            bool(self.flags & ASKS),
            bool(self.flags & ONLY_ASKS),
            bool(self.flags & SAYS_WHEN),
        )


def describe(unit: Unit, language: str) -> Record:
    """Analyse a unit."""
    text = unit.text
    own = tuple(analyse(text, language))
    asks = "?" in text or (not text.isascii() and any(mark in text for mark in _QUESTION_MARKS))
    only_asks = asks and all(part.endswith(_QUESTION_MARKS) for part in _sentences(text))
    flags = ASKS * asks | ONLY_ASKS * only_asks | SAYS_WHEN * says_when(own)
    signature = _signature_terms(_day_of(unit.time or unit.observed), unit.source, language)
    return Record(unit, own, signature, _heading_terms(unit.headings, language), flags)


def _sentences(text: str) -> list[str]:
    """What holds a word and ends at a full stop, a question mark or the like, or at the end of its line."""
    return [part for found in _SENTENCE.findall(text) if _WORD.search(part := found.strip())]


def _day_of(date: str) -> str:
    """A date without the time of day, of which there are too many to remember the terms of each."""
    return date[:10] if date[10:11] in ("T", " ") else date


@lru_cache(4096)
def _signature_terms(date: str, source: str, language: str) -> tuple[str, ...]:
    return (*date_terms(date), *analyse(source, language))


@lru_cache(4096)
def _heading_terms(headings: tuple[str, ...], language: str) -> tuple[str, ...]:
    return tuple(term for heading in headings for term in analyse(heading, language))


def stored_line(path: str, line: int, content: str) -> bytes:
    """An entry of evidence as it stands there; `restore` reads it."""
    return f"{line} {path}\n{content}".encode("utf-8", "surrogatepass")


def _read_line(stored: str) -> Record:
    place, _, content = stored.partition("\n")
    line, _, path = place.partition(" ")
    entry = parse_piece(path, content.encode("utf-8", "surrogatepass")).entries[0]
    stop = int(line) + entry.span.stop - 1
    return Record(Unit(path, int(line), stop, entry.text, entry.seqs, (), entry.signature.fields))


def path_in(stored: bytes) -> str:
    """The path of the unit that `stored` came from."""
    path: str = _JSON.raw_decode(stored.decode("utf-8", "surrogatepass"), len("["))[0]
    return path


@lru_cache(8192)
def restore(words: str, above: str, stored: bytes) -> Record:
    """The record that `words`, `above` and `stored` came from; remembered for the next search of this process."""
    if not stored.startswith(b"["):
        return _read_line(stored.decode("utf-8", "surrogatepass"))
    path, line, stop, text, seqs, headings, fields, retired, flags = json.loads(stored.decode("utf-8", "surrogatepass"))
    unit = Unit(
        path,
        line,
        stop,
        text,
        tuple(seqs),
        tuple(headings),
        tuple(map(tuple, fields)),
        retired,
    )
    own, _, signature = words.partition("\n")
    return Record(unit, tuple(own.split()), tuple(signature.split()), tuple(above.split()), flags)


@lru_cache(4096)
def interval(date: str) -> tuple[int, int] | None:
    """The first and last moment (YYYYMMDDhhmmss and milliseconds, UTC) of an ISO date; None if it is none.

    A date may be partial: what it leaves open, down to the second and its fractions, lies between the two.
    """
    found = _DATE.match(date.strip())
    if not found:
        return None
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    if zone and zone[0] in "+-":
        year, month, day, hour, minute = _in_utc(found[0], (year, month, day, hour, minute))
    part = (fraction or "")[:3]
    first = f"{year}{month or '01'}{day or '01'}{hour or '00'}{minute or '00'}{second or '00'}{part:0<3}"
    last = f"{year}{month or '12'}{day or '31'}{hour or '23'}{minute or '59'}{second or '59'}{part:9<3}"
    return int(first), int(last)


def _in_utc(date: str, parts: tuple[str, ...]) -> tuple[str, ...]:
    """Year to minute of a time with an offset, in UTC; as they are where that is beyond the calendar."""
    try:
        moment = datetime.fromisoformat(date.replace(" ", "T", 1)).astimezone(UTC)
    except (ValueError, OverflowError):
        return parts
    return tuple(moment.strftime(f"{moment.year:04} %m %d %H %M").split())


def moment_of(now: datetime) -> int:
    """A moment of the clock on the scale of `interval`."""
    return int(now.astimezone(UTC).strftime("%Y%m%d%H%M%S")) * 1000 + now.microsecond // 1000


def asked_interval(date: str) -> tuple[int, int]:
    """The interval of a date that someone asked with; BadInput if it is none."""
    found = interval(date)
    if found is None:
        raise BadInput(f"{date!r} is no date; write 2026, 2026-05, 2026-05-01 or 2026-05-01T09:00:30Z")
    return found


def is_coming(time: str, moment: int) -> bool:
    """Whether a time lies wholly after a moment; what is no time never does."""
    found = interval(time)
    return found is not None and found[0] > moment


def is_about_a_date(text: str, time: str, moment: int) -> bool:
    """Whether words tell of a day, or of a time to come: another date for it takes their place at once."""
    return is_coming(time, moment) or any(map(is_date_term, analyse(text)))


def is_over(unit: Unit, moment: int) -> bool:
    """Whether a unit's own date of expiry lies wholly before a moment."""
    end = last_moment(unit)
    return end is not None and end < moment


def last_moment(unit: Unit) -> int | None:
    """The last moment of a unit's own date of expiry; None where it has none, or what it has is no date."""
    date = unit.get("expires")
    end = end_of(date) if date else None
    try:
        return None if end is None else moment_of(end)
    except OverflowError:  # a zone leads beyond the calendar
        return NEVER


def is_announced(unit: Unit) -> bool:
    """Whether a unit that replaces another was written down before what it says began."""
    if not unit.get("supersedes"):
        return False
    written = interval(unit.observed)
    return written is not None and is_coming(unit.time, written[1])


def happened(unit: Unit) -> tuple[int, int] | None:
    """When what a unit says happened: its `time`, else when it was written down."""
    return interval(unit.time) or interval(unit.observed)


def known(unit: Unit) -> tuple[int, int] | None:
    """When a unit was written down, else its `time`."""
    return interval(unit.observed) or interval(unit.time)


def allows(filter: Filter, unit: Unit, successor: Unit | None = None) -> bool:
    """Whether a filter lets a unit be recalled; `successor` is what took a retired unit's place."""
    if filter.topic and unit.path != path_of(filter.topic):
        return False
    if any(unit.get(key) != value for key, value in filter.pairs):
        return False
    if not _overlaps(filter, unit):
        return False
    if not (filter.as_of or filter.known_at):
        return filter.retired or not unit.retired
    return (not filter.as_of or _held(unit, asked_interval(filter.as_of)[1], successor)) and (
        not filter.known_at or _was_known(unit, asked_interval(filter.known_at)[1])
    )


def looks_back(filter: Filter) -> bool:
    """Whether retired units can pass a filter."""
    return bool(filter.retired or filter.as_of or filter.known_at)


def _overlaps(filter: Filter, unit: Unit) -> bool:
    if not (filter.since or filter.until):
        return True
    when = happened(unit)
    if when is None:
        return False
    after = not filter.since or when[1] >= asked_interval(filter.since)[0]
    return after and (not filter.until or when[0] <= asked_interval(filter.until)[1])


def _held(unit: Unit, moment: int, successor: Unit | None) -> bool:
    """Whether what a unit says held at a moment: it had begun, and nothing had taken its place."""
    began = happened(unit)
    if began is not None and began[0] > moment:
        return False
    if not unit.retired:
        return True
    ended = (happened(successor) if successor is not None else None) or interval(unit.get("retired_at"))
    return ended is not None and ended[0] > moment


def _was_known(unit: Unit, moment: int) -> bool:
    """Whether the library held a unit at a moment."""
    began = known(unit)
    if began is not None and began[0] > moment:
        return False
    if not unit.retired:
        return True
    ended = interval(unit.get("retired_at"))
    return ended is not None and ended[0] > moment


@lru_cache(4096)
def _minute(moment: str) -> int:
    """Minutes on a scale that is even enough to tell an hour from a day; -1 if unknown."""
    found = _DATE.match(moment)
    if not found or found[5] is None:
        return -1
    year, month, day, hour, minute = map(int, found.groups()[:5])
    return (((year * 12 + month) * 31 + day) * 24 + hour) * 60 + minute


_QUESTION_MARKS = ("?", "？", "؟")
_WORD = re.compile(r"\w")
_SENTENCE = re.compile(r"[^.!?。！？؟\n]+[.!?。！？؟]*")
_DATE = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)"
    r"(?:[T ](\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?(Z|[+-]\d\d:?\d\d)?)?)?)?(?![\d-])",
    re.ASCII,
)
