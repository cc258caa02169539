"""How long entries stay: settings, and what a flush makes of them. The clock is given."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.config import load_settings
from infinimem.errors import BadInput, InfinimemError
from infinimem.model import Create, Extend, Filter, Join
from infinimem.plan.paper import Plan
from tests.access.test_laws import told
from tests.forgetting.test_forget import holding

START = datetime(2026, 5, 1, 9, tzinfo=UTC)


class At:
    """A clock that is set by hand."""

    now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Library:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Library.open(tmp_path / "memory", create=True, clock=At())


def later(library: Library, days: float) -> Library:
    """The library as it is opened some days later."""
    clock = At()
    clock.now = START + timedelta(days=days)
    return Library.open(library.root, clock=clock)


def rules(library: Library, text: str) -> None:
    (library.root / "infinimem.yaml").write_text(f"format: 1\n{text}\n")


def test_what_a_tool_said_is_retired_after_its_time(library: Library) -> None:
    rules(library, "retention:\n- {where: {source: tool:*}, after: 90d}")
    library.write("Ticket 7 is open.", source="tool:jira")
    library.write("Maya works at Fjord Labs.", source="user")
    library.flush()
    assert later(library, 90).flush().retired == ()
    report = later(library, 91).flush(dry_run=True)
    assert "why=expired" in report.diff
    report = later(library, 91).flush()
    assert [(step.seq, step.why) for step in report.retired] == [(1, "expired")]
    assert [hit.seqs for hit in library.search("ticket Maya", 9)] == [(2,)]
    assert library.trace(1).fate == "expired"
    assert not library.check()


def test_a_rule_that_forgets(library: Library) -> None:
    rules(library, "retention:\n- {where: {ns: visit}, after: 30d, do: forget}\n- {where: {ns: visit}, after: 7d}")
    library.write("Zorblatt came at nine.", meta={"ns": "visit"})
    library.write("Maya works at Fjord Labs.", meta={"ns": "work"})
    library.flush()
    assert [step.seq for step in later(library, 8).flush().retired] == [1]
    assert later(library, 29).flush().erased == ()
    assert later(library, 31).flush(dry_run=True).erased == (1,)
    assert holding(library, "zorblatt")
    report = later(library, 31).flush()
    assert (report.erased, report.exit_code) == ((1,), 0)
    assert holding(library, "zorblatt") == []
    assert later(library, 32).flush().reason == "CURRENT is empty"


def test_a_rule_about_everything_and_entries_still_in_current(library: Library) -> None:
    rules(library, "retention: [{after: 2d}]")
    library.write(["Old.", "Old too."])
    later(library, 2).write("New.")
    report = later(library, 3).flush()
    assert [step.seq for step in report.retired] == [1, 2]
    assert [row.entries for row in library.catalog()] == [1]


def test_a_rule_about_one_field_with_several_values_and_about_any(library: Library) -> None:
    rules(library, 'retention:\n- {where: {ns: [visit, "guest-*"]}, after: 2d}\n- {where: {label: "*"}, after: 9d}')
    library.write("Zorblatt came.", meta={"ns": "visit"})
    library.write("Ines came.", meta={"ns": "guest-7"})
    library.write("Maya works at Fjord Labs.", meta={"ns": "work", "label": "job"})
    library.write("Hilde turns ninety.")
    assert [step.seq for step in later(library, 3).flush().retired] == [1, 2]
    assert [step.seq for step in later(library, 10).flush().retired] == [3]


def test_age_counts_from_when_it_was_written_down_and_without_a_date_there_is_none(library: Library) -> None:
    rules(library, "retention: [{after: 2d}]")
    path = library.root / "topics" / "old.md"
    path.write_text(
        "---\nid: old\ntoken_count: 9\n---\n# Old\n\n- <seq=1, time=2019> From long ago.\n- <seq=2> Without a date.\n"
        "- <seq=3, time=2019-05-05, observed=2026-05-01T08:00:00Z> Told today of long ago.\n"
    )
    assert [step.seq for step in library.flush().retired] == [1]


def test_all_members_of_a_joined_line_expire_with_it(library: Library) -> None:
    library.write(["One part.", "Another part."], meta={"expires": "2026-06-01"})
    steps = (Create("parts", "Parts"), Join((1, 2), "One part, another part."), Extend("parts", "", (1, 2)))
    library.flush(plan=Plan(steps))
    report = later(library, 60).flush()
    assert [step.seq for step in report.retired] == [1, 2]
    assert report.exit_code == 0
    assert not later(library, 60).check()


def test_what_was_written_by_a_real_clock_has_an_age(library: Library) -> None:
    """The clock tells microseconds; entries that carry them stayed for ever."""
    rules(library, "retention: [{where: {source: 'tool:*'}, after: 90d}]")
    real = Library.open(library.root)
    real.write("Ticket 7 is open.", source="tool:jira")
    real.flush()
    assert "." in next(iter(real.search("ticket"))).unit.observed
    future = At()
    future.now = datetime.now(UTC) + timedelta(days=91)
    assert [step.seq for step in Library.open(library.root, clock=future).flush().retired] == [1]


@pytest.mark.parametrize(
    ("expires", "stays", "goes"),
    [
        ("2026", datetime(2026, 12, 31, 23, 59, 59), datetime(2027, 1, 1)),
        ("2026-05", datetime(2026, 5, 31, 23, 59, 59), datetime(2026, 6, 1)),
        ("2028-02-29", datetime(2028, 2, 29, 23, 59, 59), datetime(2028, 3, 1)),
        ("2026-06-01T12:00:00Z", datetime(2026, 6, 1, 12), datetime(2026, 6, 1, 12, 0, 1)),
        ("2026-06-01T12:00:00.5Z", datetime(2026, 6, 1, 12), datetime(2026, 6, 1, 12, 0, 1)),
        ("2026-06-01 12:00", datetime(2026, 6, 1, 12), datetime(2026, 6, 1, 12, 1)),
        ("2026-06-02T01:00:00+09:00", datetime(2026, 6, 1, 16), datetime(2026, 6, 1, 16, 0, 1)),
        ("2026-05-31T20:00:00-05:00", datetime(2026, 6, 1, 1), datetime(2026, 6, 1, 1, 0, 1)),
    ],
)
@pytest.mark.parametrize("flushed", [True, False])
def test_the_moment_at_which_an_entry_expires(
    library: Library, expires: str, stays: datetime, goes: datetime, flushed: bool
) -> None:
    library.write("The code of the gate is blue.", meta={"expires": expires})
    if flushed:
        library.flush()
    clock = At()
    clock.now = stays.replace(tzinfo=UTC)
    assert Library.open(library.root, clock=clock).flush().retired == ()
    clock.now = goes.replace(tzinfo=UTC)
    assert [(step.seq, step.why) for step in Library.open(library.root, clock=clock).flush().retired] == [
        (1, "expired")
    ]
    assert not library.check()


@pytest.mark.parametrize("expires", ["soon", "2026-13-01", "2026-02-30", "26-05-01", "empty"])
def test_what_is_no_date_never_expires(library: Library, expires: str) -> None:
    path = library.root / "topics" / "gate.md"
    path.write_text(f"---\nid: gate\n---\n# Gate\n\n- <seq=1, expires={expires}> The code of the gate is blue.\n")
    assert later(library, 9_999).flush().retired == ()


def test_the_moment_at_which_an_entry_is_too_old(library: Library) -> None:
    rules(library, "retention: [{where: {ns: visit}, after: 2h}, {where: {source: 'tool:*'}, after: 1d}]")
    library.write("Ines came at nine.", meta={"ns": "visit"})
    library.write("Ticket 7 is open.", source="tool:jira")
    library.write("A visitor's ticket.", source="tool:jira", meta={"ns": "visit"})
    library.write("Maya cycles.")
    library.flush()
    second = 1 / 86_400
    assert later(library, 2 / 24).flush().retired == ()
    assert [step.seq for step in later(library, 2 / 24 + second).flush().retired] == [1, 3]
    assert later(library, 1).flush().retired == ()
    assert [step.seq for step in later(library, 1 + second).flush().retired] == [2]
    assert later(library, 9_999).flush().retired == ()
    assert not library.check()


def test_a_clock_that_was_set_back_lets_nothing_go(library: Library) -> None:
    rules(library, "retention: [{after: 1d}]")
    library.write("Maya cycles.", meta={"expires": "2026-05-02"})
    library.flush()
    assert later(library, -400).flush().retired == ()


def contents(root: Path) -> dict[str, bytes]:
    names = ("CURRENT.md", "topics/**/*.md", "evidence/*.md")
    return {path.relative_to(root).as_posix(): path.read_bytes() for name in names for path in root.glob(name)}


def test_a_dry_run_says_what_would_go_and_changes_nothing(library: Library) -> None:
    rules(library, "retention: [{where: {ns: visit}, after: 7d}, {where: {ns: lost}, after: 7d, do: forget}]")
    library.write("Ines came at nine.", meta={"ns": "visit"})
    library.write("Zorblatt came at ten.", meta={"ns": "lost"})
    library.flush()
    before = contents(library.root)
    report = later(library, 8).flush(dry_run=True)
    assert [step.seq for step in report.retired] == [1]
    assert report.erased == (2,)
    assert contents(library.root) == before
    done = later(library, 8).flush()
    assert (done.retired, done.erased) == (report.retired, report.erased)


def test_what_a_flush_let_go_comes_back_by_undo_and_what_it_forgot_does_not(library: Library) -> None:
    rules(library, "retention: [{where: {ns: visit}, after: 7d}]")
    library.write("Ines came at nine.", meta={"ns": "visit"})
    library.write("Maya cycles.")
    library.flush()
    report = later(library, 8).flush()
    assert [step.seq for step in report.retired] == [1]
    later(library, 8).undo()
    assert [hit.seqs for hit in library.search("Ines nine", 1)] == [(1,)]
    assert not library.check()
    rules(library, "retention: [{where: {ns: visit}, after: 7d, do: forget}]")
    assert later(library, 9).flush().erased == (1,)
    with contextlib.suppress(InfinimemError):
        later(library, 9).undo()
    assert holding(library, "nine") == []
    assert [hit.seqs for hit in library.search("Maya", 1)] == [(2,)]
    assert not library.check()


@pytest.mark.parametrize("do", ["retire", "forget"])
def test_an_audience_that_flushes_lets_go_what_it_may_not_see_and_learns_nothing(library: Library, do: str) -> None:
    rules(library, f"retention: [{{where: {{ns: visit}}, after: 7d, do: {do}}}]\n"
                   "access: {mcp: {deny: {sensitivity: private}}}")  # fmt: skip
    library.write("Zorblatt came at nine.", meta={"ns": "visit", "sensitivity": "private"})
    library.write("Maya cycles.")
    library.flush()
    clock = At()
    clock.now = START + timedelta(days=8)
    agent = Library.open(library.root, audience="mcp", clock=clock)
    agent.write("Maya sings.")
    report = agent.flush(planner="lexical")
    assert "zorblatt" not in told(report).casefold()
    assert library.trace(1).fate == ("expired" if do == "retire" else "forgotten")
    assert not library.check()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("retention: 90d", "infinimem.yaml:2: this is written as"),
        ("retention: [{after: soon}]", "rule 1: after is a time such as 12h, 90d or 52w, not 'soon'"),
        ("retention: [{aftr: 9d}]", "there is no 'aftr' here; did you mean after?"),
        ("retention: [{after: 9d, do: burn}]", "do is retire or forget, not 'burn'"),
        ("retention: [{after: 9d, where: {source: [[]]}}]", "source is a field and its value"),
        ("retention: [{after: 9d, where: {}}]", "rule 1: where is empty"),
        ("retention:\n- where:\n    # ns: visit\n  after: 9d\n  do: forget", "rule 1: where is empty"),
        ("retentoin: []", "did you mean retention?"),
        ("access: {mpc: {deny: {ns: a}}}", "there is no 'mpc' here; did you mean mcp?"),
        ("access: {mcp: {denny: {ns: a}}}", "there is no 'denny' here; did you mean deny?"),
        ("access: {mcp: private}", "this is written as"),
    ],
)
def test_a_rule_that_cannot_be_read(library: Library, text: str, message: str) -> None:
    rules(library, text)
    with pytest.raises(BadInput) as error:
        load_settings(library.root)
    assert message in str(error.value)


def test_what_a_rule_lets_go_is_marked_before_the_flush_that_retires_it(library: Library) -> None:
    """As what has expired by a date of its own: it is marked and comes last; at past dates it held."""
    rules(library, "retention:\n- {where: {source: tool:*}, after: 90d}")
    library.write("The ticket of the boiler is open, the boiler ticket.", source="tool:jira")
    library.write("Maya wrote about the ticket of the boiler and of other things in the house.", source="user")
    for flushed in (False, True):
        fresh, old = later(library, 90), later(library, 91)
        assert [(hit.seqs, hit.unit.retired) for hit in fresh.search("boiler ticket")] == [((1,), ""), ((2,), "")]
        assert [(hit.seqs, hit.unit.retired) for hit in old.search("boiler ticket")] == [((2,), ""), ((1,), "expired")]
        answer = old.ask("the boiler ticket", reader="bm25")
        assert [(piece.seqs, piece.retired) for piece in answer.evidence] == [((2,), ""), ((1,), "expired")]
        then = old.search("boiler ticket", filter=Filter(as_of="2026-06"))
        assert [(hit.seqs, hit.unit.retired) for hit in then] == [((1,), ""), ((2,), "")]
        if not flushed:
            library.flush()
    assert [step.seq for step in later(library, 91).flush().retired] == [1]
