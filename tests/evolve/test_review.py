"""Review: a proposal is taken, dropped or refused; an edit is judged; all of it can be undone."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest

from infinimem import Library
from infinimem.cli import main
from infinimem.cli.schemas import schema_of
from infinimem.errors import BadInput
from infinimem.model import Create, Extend, Join, Retire
from infinimem.plan.paper import Plan
from infinimem.store.proposals import PROPOSALS
from tests.faults.library_state import assert_conserved, visible_files

START = datetime(2026, 5, 1, 9, tzinfo=UTC)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """Maya's jobs, both shown: the planner was not sure enough to let the newer replace the older."""
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: START)
    library.write("Maya works at Fjord Labs.", time="2025-09-01")
    library.write("Maya joined Nordlys.", time="2026-05-01")
    library.write("Ines cycles to work.")
    steps = (Create("work", "Work"), Extend("work", "", (1, 2, 3)), Retire(1, 2, "superseded", 0.7),
             Retire(3, 2, "superseded", 0.4))  # fmt: skip
    library.flush(plan=Plan(steps))
    return library


def visible(library: Library) -> set[str]:
    return {hit.text for hit in library.search("Maya Ines works joined", 9)}


def test_a_proposal_shows_the_words_that_would_go_and_stay(library: Library) -> None:
    first, second = library.review().proposals
    assert (first.number, first.before, first.after, first.refused) == (
        1, ("Maya works at Fjord Labs.",), ("Maya joined Nordlys.",), "",
    )  # fmt: skip
    assert "only the newer supersedes" in second.refused


def test_a_proposal_is_taken_through_the_checker_and_can_be_undone(library: Library) -> None:
    before = visible_files(library.root)
    assert library.take([1], dry_run=True).diff
    assert visible_files(library.root) == before
    assert len(library.review().proposals) == 2
    report = library.take([1])
    assert [(gone.seq, gone.by) for gone in report.retired] == [(1, 2)]
    assert visible(library) == {"Maya joined Nordlys.", "Ines cycles to work."}
    assert [one.step for one in library.review().proposals] == [Retire(3, 2, "superseded")]
    assert_conserved(library.root, {1, 2, 3})
    library.undo()
    assert "Maya works at Fjord Labs." in visible(library)
    assert_conserved(library.root, {1, 2, 3})
    [edit] = library.review().edits
    assert (edit.name, edit.undone) == ("1", True)


def test_what_a_rule_refuses_is_not_taken_and_stays_on_the_list(library: Library) -> None:
    before = visible_files(library.root)
    report = library.take([2])
    assert report.exit_code == 5
    assert visible_files(library.root) == before
    assert len(library.review().proposals) == 2


def test_a_dropped_proposal_is_gone_and_touches_no_file_of_the_user(library: Library) -> None:
    before = visible_files(library.root)
    assert library.drop([1, 1]) == 1
    [left] = library.review().proposals
    assert (left.number, left.step) == (1, Retire(3, 2, "superseded"))
    assert visible_files(library.root) == before
    with pytest.raises(BadInput, match="there is no proposal 2"):
        library.drop([2])


def test_a_list_that_somebody_spoiled_is_said_and_harms_nothing(library: Library) -> None:
    (library.root / PROPOSALS).write_text("- {at: 2026-05-01, step: {retire: {seq: x, why: superseded}}}\n- 7\n")
    [one] = library.review().proposals
    assert one.step is None
    assert "'x' is no seq" in one.refused
    with pytest.raises(BadInput):
        library.take([1])


def test_edits_are_shown_newest_first_with_what_they_changed(library: Library) -> None:
    library.take([1])
    library.write(["The choir sings on Monday.", "The choir sings in Sandviken."])
    library.flush(
        plan=Plan((Join((4, 5), "The choir sings on Monday in Sandviken."), Create("choir", "Choir"),
                   Extend("choir", "", (4,))))
    )  # fmt: skip
    join, supersession = sorted(library.review().edits, key=lambda edit: edit.kind)
    assert (join.name, join.kind, join.before) == (
        "4-5", "joined", ("The choir sings on Monday.", "The choir sings in Sandviken."),
    )  # fmt: skip
    assert join.after == ("The choir sings on Monday in Sandviken.",)
    assert (supersession.name, supersession.before, supersession.after) == (
        "1", ("Maya works at Fjord Labs.",), ("Maya joined Nordlys.",),
    )  # fmt: skip


def test_topics_that_were_split_and_merged_are_edits(library: Library) -> None:
    library.write("The boat Terna has berth 12.")
    library.flush(plan=Plan((Create("boat", "Boat"), Extend("boat", "", (4,)))))
    library.merge(["work", "boat"])
    [edit] = library.review().edits
    assert (edit.name, edit.kind) == ("work@2026-05-01T09:00:00Z", "topic-merge")
    judged = library.judge("work", "harmful")
    assert judged.verdict == "harmful"
    [edit] = library.review().edits
    assert edit.verdict == "harmful"


def test_a_verdict_is_in_evidence_counts_once_and_survives_the_loss_of_what_is_derived(library: Library) -> None:
    library.take([1])
    library.judge("1", "harmful")
    library.judge("1", "valid")
    lines = next((library.root / "evidence").iterdir()).read_text().splitlines()
    assert sum(line.startswith("- <event=verdict, seq=1, edit=superseded, verdict=") for line in lines) == 2
    for path in sorted((library.root / ".infinimem").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    again = Library.open(library.root)
    [edit] = again.review().edits
    assert (edit.verdict, edit.judged) == ("valid", "2026-05-01T09:00:00Z")
    [audit] = again.stats().audits
    assert (audit.kind, audit.edits, audit.valid, audit.harmful) == ("superseded", 1, 1, 0)
    assert again.check() == []
    assert again.write("Next.") == [4]
    with pytest.raises(BadInput, match="there is no edit"):
        again.judge("3", "valid")


def test_the_command_tells_a_person_and_a_program(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    here = ["-L", str(library.root), "review"]
    assert main(here) == 0
    assert "1  retire 1: superseded by 2  2026-05-01 · confidence 0.7\n  - Maya works at" in capsys.readouterr().out
    assert main([*here, "--take", "1", "--json"]) == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), schema_of("review-take"))
    assert main([*here, "1", "--harmful"]) == 0
    assert "1  1 was replaced by 2, which is newer" in capsys.readouterr().out
    assert main([*here, "--drop", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"proposals": [], "edits": []}
    assert main([*here, "--valid"]) == 2
    assert main([*here, "77"]) == 2
    assert "superseded 0 of 1 judged valid (1 made)" in stats_of(library, capsys)


def stats_of(library: Library, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["-L", str(library.root), "stats"]) == 0
    return capsys.readouterr().out
