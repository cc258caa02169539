"""What held and what was known at any past date equals an independent replay of the stream of events."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.cli import main
from infinimem.model import CURRENT, Create, Extend, Filter, Join, Retire
from infinimem.plan.paper import Plan
from infinimem.text.when import dates_shown
from tests.conftest import NIGHTLY

START = datetime(2025, 1, 6, 9, tzinfo=UTC)
SUBJECTS = ("Maya", "Ines", "Oma Hilde", "the boat", "the choir", "Maya Berg")
KINDS = (
    "{subject} plans nothing any more and keeps box {number} in {place}.",
    "{subject} does not keep box {number} in {place} after all.",
    "{subject} plans to bring box {number} to {place} next month; nothing came of it.",
    "Correction: {subject} keeps the box {number} at {place}, not in Oslo.",
    "Yesterday another {subject} asked for box {number} in {place}.",
)
PLACES = ("Bergen", "Lübeck", "Voss", "Stord", "Oslo", "Kiel")


@dataclass
class Fact:
    """One statement of the stream, and what the stream did with it."""

    seq: int
    time: str
    observed: datetime
    expires: str
    replaces: int

    @property
    def start(self) -> str:
        return self.time or self.observed.date().isoformat()


@dataclass
class Stream:
    """A history as it happens: a library, and beside it a plain list of what happened."""

    library: Library
    chance: random.Random
    now: list[datetime]
    facts: dict[int, Fact] = field(default_factory=dict)
    buffered: list[int] = field(default_factory=list)
    flushes: list[tuple[list[int], list[int]]] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    expired: set[int] = field(default_factory=set)
    backdated: bool = False
    announcing: bool = False

    def tick(self) -> datetime:
        self.now[0] += timedelta(hours=self.chance.randint(2, 200))
        return self.now[0]

    def due(self, day: date) -> tuple[list[int], list[int]]:
        """What a flush on a day is to retire of all that was written: for what replaces it, and for its own date."""
        gone = [one.replaces for one in self.facts.values() if one.replaces and not self.is_coming(one, day)]
        over = [seq for seq, one in self.facts.items() if one.expires and one.expires < day.isoformat()]
        return gone, [seq for seq in over if seq not in gone]

    def is_coming(self, fact: Fact, day: date) -> bool:
        return bool(fact.time) and fact.time > day.isoformat()[: len(fact.time)]

    def standing(self) -> list[int]:
        replaced = {one.replaces for one in self.facts.values()}
        return [seq for seq in self.facts if seq not in replaced and seq not in self.expired]

    def write(self) -> None:
        at = self.tick()
        if self.backdated and self.chance.random() < 0.6:  # an import: written down long ago, and in any order
            at -= timedelta(days=self.chance.choice((1, 30, 200, 500)), seconds=self.chance.randint(0, 90_000))
        told = self.chance.random() < 0.7
        back = self.chance.choice((0, 3, 40, 400))  # told out of order
        ahead = self.chance.choice((0, 0, 0, 30, 300)) if self.announcing else 0  # told before it begins
        time = (at.date() + timedelta(days=ahead - self.chance.randint(0, back))).isoformat() if told else ""
        time = time[: self.chance.choice((10, 10, 10, 7))]
        old = [seq for seq in self.standing() if self.facts[seq].start <= (time or at.date().isoformat())]
        replaces = self.chance.choice(old) if old and self.chance.random() < 0.5 else 0
        expires = (at.date() + timedelta(days=ahead + self.chance.randint(1, 90))).isoformat()  # never before it begins
        expires = expires if self.chance.random() < 0.2 else ""
        subject, place = self.chance.choice(SUBJECTS), self.chance.choice(PLACES)
        text = self.chance.choice(KINDS).format(subject=subject, place=place, number=len(self.facts) + 1)
        observed = at.strftime("%Y-%m-%dT%H:%M:%SZ") if self.backdated else ""
        [seq] = self.library.write(text, time=time, supersedes=[replaces] if replaces else [], observed=observed,
                                   meta={"expires": expires} if expires else {})  # fmt: skip
        self.facts[seq] = Fact(seq, time, at, expires, replaces)
        self.buffered.append(seq)

    def flush(self) -> None:
        at = self.tick()
        if not self.buffered:
            return
        report = self.library.flush(planner="lexical")
        assert not report.skipped, report.skipped
        gone, over = self.due(at.date())
        new = sorted({*gone, *over} - self.gone)
        retired = sorted(step.seq for step in report.retired)
        assert retired == new, (retired, new, at)
        self.expired.update(over)
        self.gone.update(new)
        self.flushes.append((self.buffered, new))
        self.buffered = []

    def undo(self) -> None:
        if self.flushes:
            self.tick()
            report = self.library.undo()
            assert report.flushed and not report.skipped, report.skipped
            buffered, gone = self.flushes.pop()
            self.buffered = [*buffered, *self.buffered]
            self.gone.difference_update(gone)
            self.expired.difference_update(gone)

    # The independent replay: nothing of the library is asked.

    def expected(self, held: date | None, known: date | None) -> dict[int, int]:
        """What held on a day as it was known on another, with what has taken its place since; from the writes alone.

        Whether and when a flush carried anything out plays no part. Without a day that it held on, what was known to
        hold still, or to begin only later.
        """
        moment = datetime.max.replace(tzinfo=UTC)
        if known is not None:
            moment = datetime(known.year, known.month, known.day, 23, 59, 59, tzinfo=UTC)
        there = {seq: fact for seq, fact in self.facts.items() if fact.observed <= moment}
        day = (held or known or date.max).isoformat()
        found = {}
        for fact in there.values():
            heir = next((one for one in there.values() if one.replaces == fact.seq), None)
            over = (fact.expires and fact.expires < day) or (heir is not None and heir.start <= day)
            if not over and (held is None or fact.start <= day):
                found[fact.seq] = heir.seq if heir is not None and held is not None else 0
        return found

    def home(self, seq: int, topics: dict[int, str]) -> str:
        """The topic where a fact stands at the end, or what took its place; "" for none."""
        while seq and seq not in topics:
            seq = next((one.seq for one in self.facts.values() if one.replaces == seq and seq in self.gone), 0)
        return topics.get(seq, "")


def topics_on_disk(root: Path) -> dict[int, str]:
    """Which topic file holds each seq: read as plain lines."""
    found: dict[int, str] = {}
    for path in sorted((root / "topics").rglob("*.md")):
        for seq in re.findall(r"^- <seq=(\d+)[,>]", path.read_text("utf-8"), re.MULTILINE):
            found[int(seq)] = path.relative_to(root / "topics").as_posix().removesuffix(".md")
    return found


def assert_shown_alike(stream: Stream, held: date | None, known: date | None, topics: dict[int, str]) -> None:
    """Search, ask and catalog show what the replay says, no more and no less."""
    filter = Filter(as_of=held.isoformat() if held else "", known_at=known.isoformat() if known else "")
    library, wanted = stream.library, stream.expected(held, known)
    hits = [(seq, hit.unit.retired_by) for hit in library.search("box", 2000, filter=filter) for seq in hit.seqs]
    assert sorted(hits) == sorted(wanted.items()), ("search", held, known)
    answer = library.ask("Which box?", k=2000, filter=filter)
    assert {seq: piece.by for piece in answer.evidence for seq in piece.seqs} == wanted, ("ask", held, known)
    homes = Counter(home for seq in wanted if (home := stream.home(seq, topics)))
    rows = {row.topic: row.entries for row in library.catalog(filter=filter)}
    assert rows == homes, ("catalog", held, known)


def shown(library: Library, held: date | None, known: date | None) -> list[int]:
    filter = Filter(as_of=held.isoformat() if held else "", known_at=known.isoformat() if known else "")
    return sorted(seq for unit in library.index_at(filter).entries((), filter) for seq in unit.seqs)


@pytest.mark.parametrize("number", range(60 if NIGHTLY else 4))
def test_any_past_date_equals_an_independent_replay(number: int, tmp_path: Path) -> None:
    chance = random.Random(number)
    now = [START]
    stream = Stream(Library.open(tmp_path / "memory", create=True, clock=lambda: now[0]), chance, now)
    for _ in range(12):
        for _ in range(chance.randint(1, 6)):
            stream.write()
        stream.flush()
        if chance.random() < 0.25:
            stream.undo()
    days = [START.date() + timedelta(days=chance.randint(-400, (now[0] - START).days + 60)) for _ in range(12)]
    topics = topics_on_disk(stream.library.root)
    for day, other in zip(days, reversed(days), strict=True):
        for held, known in ((day, None), (None, day), (day, other)):
            there = shown(stream.library, held, known)
            assert set(there) == set(stream.expected(held, known)), (number, held, known)
            assert len(there) == len(set(there))
            assert_shown_alike(stream, held, known, topics)
    rows = stream.library.timeline("box", k=5000)
    assert {seq for row in rows for seq in row.unit.seqs} == set(stream.facts)
    for row in rows:
        [seq] = row.unit.seqs
        fact = stream.facts[seq]
        assert row.since == fact.start
        followers = {one.start: one.seq for one in stream.facts.values() if one.replaces == seq}
        if row.why == "superseded":
            assert followers[row.until] in row.by


def answers(library: Library, days: list[date]) -> dict[tuple[date | None, date | None], dict[int, tuple[str, int]]]:
    """What is said of every one of some days: which seqs there were, and with what marks."""
    found = {}
    for day, other in zip(days, reversed(days), strict=True):
        for held, known in ((day, None), (None, day), (day, other), (day, day)):
            filter = Filter(as_of=held.isoformat() if held else "", known_at=known.isoformat() if known else "")
            units = library.index_at(filter).entries((), filter)
            found[held, known] = {seq: (unit.retired, unit.retired_by) for unit in units for seq in unit.seqs}
    return found


@pytest.mark.parametrize("number", range(200, 230 if NIGHTLY else 203))
def test_no_flush_or_undo_or_move_changes_an_answer_about_the_past(number: int, tmp_path: Path) -> None:
    chance = random.Random(number)
    now = [START]
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: now[0])
    stream = Stream(library, chance, now, backdated=True, announcing=True)
    for _ in range(6):
        for _ in range(chance.randint(1, 6)):
            stream.write()
        days = [START.date() + timedelta(days=chance.randint(-600, 500)) for _ in range(6)]
        said = answers(library, days)
        for (held, known), there in said.items():
            wanted = stream.expected(held, known)
            assert {seq: by for seq, (_, by) in there.items()} == wanted, (number, held, known)
        stream.flush()
        assert answers(library, days) == said
        topics = [row.topic for row in library.catalog() if row.topic != CURRENT]
        if len(topics) > 1 and chance.random() < 0.5:
            assert library.merge(topics[:2]).flushed
            assert answers(library, days) == said
            library.undo()
            assert answers(library, days) == said
        elif chance.random() < 0.5:
            stream.undo()
            assert answers(library, days) == said


@pytest.mark.parametrize("number", range(100, 110 if NIGHTLY else 101))
def test_hundreds_of_facts_are_shown_as_they_were_at_every_past_date(number: int, tmp_path: Path) -> None:
    chance = random.Random(number)
    now = [START]
    stream = Stream(Library.open(tmp_path / "memory", create=True, clock=lambda: now[0]), chance, now)
    while len(stream.facts) < (600 if NIGHTLY else 250):
        for _ in range(chance.randint(5, 30)):
            stream.write()
        stream.flush()
        if chance.random() < 0.2:
            stream.undo()
    topics = topics_on_disk(stream.library.root)
    starts = {date.fromisoformat(fact.start) for fact in stream.facts.values() if len(fact.start) == 10}
    moments = {fact.observed.date() for fact in stream.facts.values()}
    days = sorted({*starts, *moments})
    for day in days if NIGHTLY else chance.sample(days, 12):
        assert_shown_alike(stream, day, None, topics)
        assert_shown_alike(stream, None, day, topics)
        assert_shown_alike(stream, day, chance.choice(days), topics)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    now = iter(START + timedelta(days=30 * month) for month in range(100))
    return Library.open(tmp_path / "memory", create=True, clock=lambda: next(now))


def held(library: Library, day: str = "", known: str = "") -> set[str]:
    filter = Filter(as_of=day, known_at=known)
    return {hit.text for hit in library.search("Maya choir key works sings", 20, filter=filter)}


def told(library: Library, query: str, filter: Filter = Filter()) -> list[tuple[int, str, int]]:
    """What `ask` shows: seq, mark, and what took its place; best first."""
    return [(piece.seqs[0], piece.retired, piece.by) for piece in library.ask(query, k=5, filter=filter).evidence]


def at(moment: str) -> datetime:
    return datetime.fromisoformat(moment).replace(tzinfo=UTC)


def test_what_was_written_down_long_ago_is_known_from_then_whether_a_flush_came_or_not(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: at("2026-11-30T12:00:00"))
    library.write("Maya works at Statoil.", observed="2025-01-10T09:00:00Z")
    library.write("Maya works at Nordlys.", observed="2025-06-10T09:00:00Z", supersedes=[1])
    library.write("Maya works at Hydro.", observed="2026-03-10T09:00:00Z", supersedes=[2])

    def answers() -> list[list[tuple[int, str, int]]]:
        filters = (Filter(known_at="2025-07"), Filter(as_of="2026-02", known_at="2026-02"), Filter(as_of="2025-02"))
        return [told(library, "Where does Maya work?", filter) for filter in filters]

    before = answers()
    assert before == [[(2, "", 0)], [(2, "", 0)], [(1, "superseded", 2)]]
    library.flush()
    assert answers() == before
    library.undo()
    assert answers() == before


def test_what_no_flush_would_replace_is_not_shown_as_replaced(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    assert library.write_all("The ferry leaves at nine.").too_new == ()
    assert library.write_all("The bus leaves at ten.", supersedes=[1, 3]).too_new == (3,)
    library.write("The train leaves at eleven.")
    library.write("The user says the tram leaves at noon.", source="user")
    library.write("The tram leaves at one.", source="AI", supersedes=[4])

    def waiting() -> list[tuple[int, tuple[int, ...]]]:
        return [(held.unit.seqs[0], held.by) for held in library.timeline("leaves", k=9) if held.why == "superseded"]

    assert told(library, "When does the train leave?")[0] == (3, "", 0)
    assert waiting() == [(1, (2,))]
    assert {seq: by for seq, _, by in told(library, "When does the tram leave?")}[4] == 0
    report = library.flush()
    assert [outcome.step.seq for outcome in report.skipped if isinstance(outcome.step, Retire)] == [3, 4]
    assert waiting() == [(1, (2,))]


def test_what_has_expired_is_marked_and_comes_last_until_a_flush_takes_it_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    library.write([{"text": "The wifi password is kelp, the wifi password.", "expires": "2020-11-10"}])
    library.write("The password of the router is dulse, on the shelf beside the old telephone.")
    query = "What is the wifi password?"
    assert told(library, query) == [(2, "", 0), (1, "expired", 0)]
    assert [(hit.seqs[0], hit.unit.retired) for hit in library.search(query)] == [(2, ""), (1, "expired")]
    assert [(held.why, held.until, held.waiting) for held in library.timeline(1)] == [("expired", "2020-11-10", True)]
    assert main(["-L", str(library.root), "ask", query, "--evidence"]) == 0
    assert " · expired 2020-11-10\n" in capsys.readouterr().out
    library.flush()
    assert told(library, query) == [(2, "", 0)]


def test_a_change_that_is_announced_takes_the_place_of_what_holds_only_when_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [at("2026-11-30T12:00:00")]
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: now[0])
    library.write("Maya works at Hydro.", time="2026-03")
    library.flush()
    library.write("Maya will work at Equinor then, so Maya works at Equinor.", time="2027-02-01", supersedes=[1])
    question = "Where does Maya work?"
    for _ in range(2):
        assert told(library, question) == [(1, "", 0), (2, "", 0)]
        assert [piece.holds_from for piece in library.ask(question).evidence] == ["", "2027-02-01"]
        assert [hit.seqs for hit in library.search(question)] == [(1,), (2,)]
        assert told(library, question, Filter(as_of="2026-12")) == [(1, "superseded", 2)]
        assert told(library, question, Filter(known_at="2026-12")) == [(1, "", 0), (2, "", 0)]
        old, new = library.timeline(1)
        assert (old.until, old.by, old.coming, new.until) == ("2027-02-01", (2,), True, "")
        report = library.flush()
        assert not report.retired and not report.skipped
    assert not library.check()
    assert topics_on_disk(library.root).keys() == {1, 2}
    now[0] = at("2027-02-02T08:00:00")
    assert told(library, question) == [(2, "", 0), (1, "superseded", 2)]
    assert [step.seq for step in library.flush().retired] == [1]
    assert told(library, question) == [(2, "", 0)]
    assert told(library, question, Filter(as_of="2026-12")) == [(1, "superseded", 2)]


def test_an_appointment_that_was_moved_is_not_told_as_something_that_begins_later(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: at("2026-11-30T12:00:00"))
    library.write("The dentist is on Tuesday at 9.", time="2026-12-08")
    library.write("The dentist moved to Thursday at 10.", time="2026-12-10", supersedes=1)
    question = "When is the dentist?"
    assert told(library, question) == [(2, "", 0), (1, "superseded", 2)]
    for _ in range(2):
        assert [piece.holds_from for piece in library.ask(question).evidence if piece.seqs == (2,)] == [""]
        library.flush()
    assert told(library, question) == [(2, "", 0)]


def test_what_a_plan_retired_for_what_has_not_begun_is_shown_as_holding(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: at("2026-11-30T12:00:00"))
    library.write("Maya works at Hydro.", time="2026-03")
    library.write("Maya will work at Equinor.", time="2027-02-01")
    library.flush(plan=Plan((Retire(1, 2, "superseded"), Create("work", "Work"), Extend("work", "", (2,)))))
    assert told(library, "Where will Maya work?", Filter(as_of="2026-12")) == [(1, "superseded", 2)]
    assert told(library, "Where will Maya work?") == [(1, "", 0), (2, "", 0)]
    assert sorted(told(library, "Where will Maya work?", Filter(known_at="2026-12"))) == [(1, "", 0), (2, "", 0)]


def test_seconds_of_a_date_count_and_what_it_leaves_open_is_its_end(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    library.write("The key works.", observed="2026-11-30T14:57:20.800000Z")
    found = ("2026-11-30T14:57:21Z", "2026-11-30T14:57:20Z", "2026-11-30T14:57:20.9Z", "2026-11-30T14:57", "2026-11",
             "2026-11-30T15:57:20+01:00", "2026-11-30T14:57:20.800000Z")  # fmt: skip
    assert [moment for moment in found if held(library, known=moment) != {"The key works."}] == []
    not_yet = ("2026-11-30T14:57:19Z", "2026-11-30T14:57:20.7Z", "2026-11-30T14:56", "2026-11-30T14:58:00+01:00")
    assert [moment for moment in not_yet if held(library, known=moment)] == []


def test_what_was_joined_later_is_shown_as_it_was_known_then(tmp_path: Path) -> None:
    now = [START]
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: now[0])
    library.write("The choir sings on Monday.", time="2025-01-01")
    now[0] += timedelta(days=60)
    library.write("The choir sings in Sandviken.", time="2025-03-01")
    now[0] += timedelta(days=60)
    line = "The choir sings on Monday in Sandviken."
    library.flush(plan=Plan((Join((1, 2), line), Create("choir", "Choir"), Extend("choir", "", (1,)))))
    assert held(library) == {line}
    assert held(library, "2025-02") == {"The choir sings on Monday."}
    assert held(library, "2025-06") == {line}
    assert held(library, known="2025-02") == {"The choir sings on Monday."}
    assert held(library, known="2025-04") == {"The choir sings on Monday.", "The choir sings in Sandviken."}
    [row] = library.catalog(filter=Filter(as_of="2025-02"))
    assert (row.topic, row.entries) == ("choir", 1)
    assert "Sandviken" not in row.summary


def test_words_changed_by_hand_are_known_from_when_they_were_noted(tmp_path: Path) -> None:
    now = [START]
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: now[0])
    library.write("The key is under the mat.")
    library.flush(plan=Plan((Create("key", "Key"), Extend("key", "", (1,)))))
    page = library.root / "topics" / "key.md"
    page.write_text(page.read_text().replace("under the mat", "with Solveig"))
    now[0] += timedelta(days=90)
    library.check(fix=True)
    assert "rev=2, at=2025-04-06" in (library.root / "evidence" / "2025-04.md").read_text()
    assert held(library, known="2025-02") == {"The key is under the mat."}
    assert held(library, known="2025-04-06") == {"The key is with Solveig."}


def test_an_expired_entry_held_to_the_end_of_its_day_whenever_the_flush_came(library: Library) -> None:
    library.write([{"text": "The key works until the door is changed.", "expires": "2025-02-10"}])
    library.flush()
    library.write("The choir sings.")
    library.flush()
    assert held(library, "2025-02-10") == {"The key works until the door is changed."}
    assert "The key works until the door is changed." not in held(library, "2025-02-11")
    [row] = library.timeline(1)
    assert (row.since, row.until, row.why) == ("2025-01-06", "2025-02-10", "expired")


def test_a_correction_that_waits_is_said_in_the_timeline(library: Library) -> None:
    library.write("Maya works at Fjord Labs.", time="2024-09")
    library.flush()
    library.write("Maya works at Nordlys.", time="2025-01-20", supersedes=[1])
    old, new = library.timeline("Maya works")
    assert (old.since, old.until, old.by, old.waiting) == ("2024-09", "2025-01-20", (2,), True)
    assert (new.since, new.until, new.unit.topic) == ("2025-01-20", "", CURRENT)
    library.flush()
    [old, new] = library.timeline(2)
    assert (old.until, old.by, old.waiting, old.unit.path) == ("2025-01-20", (2,), False, "evidence/2025-02.md")


def test_the_timeline_of_a_topic_holds_what_it_no_longer_shows(
    library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    library.write("Maya works at Fjord Labs.", time="2024-09", source="user")
    library.flush(plan=Plan((Create("work", "Work"), Extend("work", "", (1,)))))
    library.write("Maya works at Nordlys, she said yesterday.", time="2025-01-20", supersedes=[1])
    library.flush()
    assert main(["-L", str(library.root), "timeline", "work"]) == 0
    old, new = capsys.readouterr().out.splitlines()
    assert old.split("\t")[:6] == ["2024-09", "2025-01-20", "1", "Maya works at Fjord Labs.", "superseded by 2", "user"]
    assert new.split("\t")[:4] == [
        "2025-01-20", "", "2", "Maya works at Nordlys, she said yesterday. (yesterday = 2025-01-19)",
    ]  # fmt: skip
    assert main(["-L", str(library.root), "timeline", "99"]) == 2
    assert main(["-L", str(library.root), "timeline", "xylophone"]) == 1
    capsys.readouterr()
    assert main(["-L", str(library.root), "search", "Nordlys", "--json"]) == 0
    [hit] = json.loads(capsys.readouterr().out)
    assert hit["text"] == "Maya works at Nordlys, she said yesterday."
    assert hit["dates"] == [{"words": "yesterday", "means": "2025-01-19"}]


@pytest.mark.parametrize(
    ("text", "at", "meanings"),
    [
        ("I saw her yesterday.", "2026-05-07", ["2026-05-06"]),
        ("昨天见了她。", "2026-05-07T10:00:00Z", ["2026-05-06"]),
        ("Gestern war sie da.", "2026-05-07", ["2026-05-06"]),
        ("We met last spring.", "2026-05-07", ["2025-03/2025-05"]),
        ("We met last spring.", "2026-11-30", ["2026-03/2026-05"]),
        ("See you next Friday.", "2026-05-04", ["2026-05-08 or 2026-05-15"]),
        ("See you next Friday.", "2026-05-09", ["2026-05-15"]),
        ("The week before: last week.", "2026-05-07", ["2026-04-27/2026-05-03"]),
        ("the day before yesterday", "2026-05-07", ["2026-05-05"]),
        ("today", "2026-05-07", []),
        ("yesterday", "2026-05", []),
        ("yesterday", "", []),
    ],
)
def test_words_for_time_are_seen_from_when_they_were_said(text: str, at: str, meanings: list[str]) -> None:
    assert [meaning for _, meaning in dates_shown(text, at)] == meanings


def test_what_was_replaced_by_something_forgotten_held_until_the_next_known_one(library: Library) -> None:
    library.write("Maya works at Fjord Labs.", time="2020-01")
    library.write("Maya works at Nordlys.", time="2020-03", supersedes=1)
    library.write("Maya works at Bolt.", time="2020-06", supersedes=2)
    library.flush(planner="lexical")
    library.forget([2])
    assert [hit.seqs for hit in library.search("Maya works", filter=Filter(as_of="2020-02"))] == [(1,)]
    assert [hit.seqs for hit in library.search("Maya works", filter=Filter(as_of="2020-07"))] == [(3,)]


def test_the_timeline_says_what_is_known_of_what_took_a_place_and_was_forgotten(
    library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its end is when the next known one began, as at every past date; from either end the whole chain is told."""
    library.write("Maya works at Fjord Labs.", time="2020-01")
    library.write("Maya works at Nordlys.", time="2020-03", supersedes=1)
    library.write("Maya works at Zorblatt.", time="2020-04", supersedes=2)
    library.write("Maya works at Bolt.", time="2020-06", supersedes=3)
    library.flush(planner="lexical")
    library.forget([2, 3])
    for about in (1, 4):
        old, new = library.timeline(about)
        assert (old.unit.seqs, old.since, old.until, old.by, old.forgotten) == ((1,), "2020-01", "2020-06", (2,), (2,))
        assert (new.unit.seqs, new.since, new.until) == ((4,), "2020-06", "")
    assert main(["-L", str(library.root), "timeline", "1"]) == 0
    assert "superseded by 2 (forgotten)" in capsys.readouterr().out
    library.forget([4])  # of the last of a chain nothing is known: the day on which the library let go of it
    [row] = library.timeline(1)
    assert (row.until, row.forgotten) == (row.retired_at[:10], (2,))
