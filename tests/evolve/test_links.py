"""Links: written by a plan, walked within budgets, both sides of a contradiction shown, right after every change."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infinimem import Library
from infinimem.agents.tools import run
from infinimem.cli import main
from infinimem.model import Create, Extend, Join, Link, Part, Retire, Split, Step, Tie
from infinimem.plan.paper import Plan, parse_plan, render_plan
from infinimem.plan.rules import RELATIONS
from infinimem.readers.evidence import Switches, gather
from infinimem.readers.links import Walk
from infinimem.text.document import parse
from infinimem.text.signature import parse_links, parse_seqs, render_links, renumber_links, renumber_seqs
from tests.faults.library_state import assert_conserved, visible_files
from tests.readers.scripts import memory_of

SEQ = st.integers(1, 60)
TIES = st.lists(
    st.builds(
        Tie, st.lists(SEQ, min_size=1, max_size=1).map(tuple) | st.just((7, 8)), st.just(""),
        st.sampled_from(["", *RELATIONS, "odd one"]),
    )
    | st.builds(Tie, st.just(()), st.sampled_from(["maya-home", "work/Übung", "a b"]), st.just("related")),
    max_size=6, unique=True,
)  # fmt: skip


@given(TIES)
def test_links_are_read_as_they_are_written(ties: list[Tie]) -> None:
    assert parse_links(render_links(ties)) == tuple(ties)


@given(TIES, st.dictionaries(SEQ, st.integers(100, 200), max_size=6))
def test_renumbering_moves_the_seqs_it_is_told_and_nothing_else(ties: list[Tie], mapping: dict[int, int]) -> None:
    value = render_links(ties)
    moved = renumber_links(value, mapping)
    there = {(mapping.get(seq, seq), tie.relation) for tie in ties for seq in tie.seqs}
    assert {(seq, tie.relation) for tie in parse_links(moved) for seq in tie.seqs} == there
    assert [tie for tie in parse_links(moved) if tie.topic] == [tie for tie in ties if tie.topic]
    assert renumber_links(value, {}) == value


@given(st.lists(SEQ, min_size=1, max_size=5, unique=True), st.dictionaries(SEQ, st.integers(100, 200), max_size=6))
def test_renumbered_seqs(seqs: list[int], mapping: dict[int, int]) -> None:
    value = "+".join(map(str, seqs))
    assert parse_seqs(renumber_seqs(value, mapping)) == tuple(dict.fromkeys(mapping.get(seq, seq) for seq in seqs))
    assert renumber_seqs("12-15+18", {99: 1}) == "12-15+18"
    assert renumber_links("12-15:from+x", {13: 40}) == "12:from+40:from+14:from+15:from+x"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    library = Library.open(tmp_path / "memory", create=True)
    library.write(
        [
            "The boat Terna has berth 12.",  # 1
            "The diesel engine was serviced in May.",  # 2
            "Solveig owns a third of it.",  # 3
            "Herring swims in shoals.",  # 4
            "The harbour office opens at nine.",  # 5
            "Berth fees are paid in advance.",  # 6
        ]
    )
    library.flush(
        plan=Plan((Create("boat", "Boat"), Extend("boat", "Hull", (1, 2)), Extend("boat", "Owners", (3,)),
                   Create("sea", "Sea"), Extend("sea", "", (4,)), Create("office", "Office"),
                   Extend("office", "", (5, 6))))
    )  # fmt: skip
    return library


def link(library: Library, *steps: Step) -> list[str]:
    report = library.flush(plan=Plan(steps))
    return [outcome.why for outcome in report.outcomes]


def ties(library: Library, seq: int) -> tuple[Tie, ...]:
    return library.trace(seq).links


def test_a_link_changes_one_signature_and_no_word(library: Library) -> None:
    before = (library.root / "topics" / "boat.md").read_text().splitlines()
    assert link(library, Link("1", "4", "explains"), Link("1", "office", "related")) == ["", ""]
    after = (library.root / "topics" / "boat.md").read_text().splitlines()
    [new] = [line for line in after if line not in before and line.startswith("- <")]
    [old] = [line for line in before if line not in after and line.startswith("- <")]
    assert new == old.replace(">", ", links=4:explains+office:related>", 1)
    assert library.check() == []
    assert_conserved(library.root, set(range(1, 7)))
    assert link(library, Link("1", "4", "explains", remove=True)) == [""]
    assert ties(library, 1) == (Tie((), "office", "related"),)
    library.undo()
    library.undo()
    assert (library.root / "topics" / "boat.md").read_text().splitlines() == before


@pytest.mark.parametrize(
    ("step", "why"),
    [
        (Link("1", "4", "likes"), "is no relation"),
        (Link("1", "99", "related"), "no visible entry has seq 99"),
        (Link("99", "1", "related"), "no visible entry has seq 99"),
        (Link("1", "1", "related"), "cannot be linked to itself"),
        (Link("boat", "boat", "related"), "cannot be linked to itself"),
        (Link("1", "nowhere", "related"), "there is no topic nowhere"),
        (Link("1", "4", "related", remove=True), "has no link related to 4"),
    ],
)
def test_what_may_not_be_linked(library: Library, step: Link, why: str) -> None:
    before = visible_files(library.root)
    assert why in link(library, step)[0]
    assert visible_files(library.root) == before


def test_at_most_eight_links_leave_an_entry(library: Library) -> None:
    page = library.root / "topics" / "sea.md"
    page.write_text(page.read_text().replace("<seq=4", "<seq=4, links=" + "+".join(f"{n}" for n in (1, 2, 3, 5, 6)), 1))
    for relation in ("related", "explains", "causes"):
        assert link(library, Link("4", "1", relation)) == [""]
    assert "has 8 links already" in link(library, Link("4", "2", "causes"))[0]


def test_a_plan_on_paper_carries_links() -> None:
    plan = Plan((Link("41", "maya-home", "part-of", conf=0.8), Link("work", "41", "related", remove=True)))
    assert parse_plan(render_plan(plan), "p") == plan


def test_topics_are_linked_in_aux_and_merging_and_splitting_keep_it(library: Library) -> None:
    assert link(library, Link("boat", "sea", "related"), Link("office", "boat", "part-of"),
                Link("5", "sea", "related")) == ["", "", ""]  # fmt: skip
    library.merge(["sea", "office"])
    document = parse("topics/sea.md", (library.root / "topics" / "sea.md").read_bytes())
    assert document.header.fields["aux"]["links"] == ["boat:part-of"]
    assert library.check() == []
    parts = (Part("boat", "Boat", (1, 2)), Part("owners", "Owners", (3,)))
    assert link(library, Split("boat", parts)) == [""]
    document = parse("topics/boat.md", (library.root / "topics" / "boat.md").read_bytes())
    assert document.header.fields["aux"]["links"] == ["sea:related"]
    assert library.check() == []
    (library.root / "topics" / "sea.md").rename(library.root / "topics" / "ocean.md")
    library.check(fix=True)
    assert library.check() == []


def test_a_joined_line_has_the_links_of_its_sources_and_each_comes_back_with_its_own(library: Library) -> None:
    library.write([{"text": "Coffee is served at ten.", "links": "5:related"},
                   {"text": "Cake is served at ten.", "links": "7:related+6"}])  # fmt: skip
    text = "Coffee is served at ten. Cake is served at ten."
    assert link(library, Join((7, 8), text), Extend("office", "", (7,))) == ["", ""]
    assert ties(library, 7) == (Tie((5,), "", "related"), Tie((6,), "", ""))
    assert link(library, Link("7", "1", "causes"), Retire(8, 0, "deleted")) == ["", ""]
    back = (Tie((5,), "", "related"), Tie((1,), "", "causes"))
    assert ties(library, 7) == back, "its own, and what was linked while both were one line; not what was 8's"
    assert_conserved(library.root, set(range(1, 9)))


def texts(library: Library, question: str, found: str, **more: Any) -> list[str]:
    units = [library.search(found, 1)[0].unit]
    switches = Switches(expand=False, supplement=False, recent=False)
    memory = memory_of(library)
    return [piece.text for piece in gather(memory, question, units, sure=True, switches=switches, **more).pieces]


def test_readers_walk_links_within_hops_candidates_and_what_they_keep(library: Library) -> None:
    link(library, Link("1", "2", "related"), Link("2", "4", "explains"), Link("4", "3", "related"),
         Link("1", "5", "related"), Link("1", "6", "related"))  # fmt: skip
    every = texts(library, "berth Terna", "berth Terna", walk=Walk(hops=3))
    assert set(every) == {hit.text for hit in library.search("boat diesel third herring office fees", 9)}
    two = texts(library, "berth Terna", "berth Terna", walk=Walk(hops=2))
    assert "Herring swims in shoals." in two
    assert "Solveig owns a third of it." not in two
    one = texts(library, "berth Terna", "berth Terna", walk=Walk(hops=1, kept=4), k=3)
    assert one == ["The boat Terna has berth 12.", "Berth fees are paid in advance."], "the likest is kept"
    assert len(texts(library, "berth Terna", "berth Terna", walk=Walk(candidates=2))) == 3


def test_a_link_to_a_topic_leads_to_its_likest_entries(library: Library) -> None:
    link(library, Link("4", "boat", "part-of"), Link("sea", "office", "related"))
    assert set(texts(library, "Who has a third? When does the office open?", "herring")) >= {
        "Herring swims in shoals.", "Solveig owns a third of it.", "The harbour office opens at nine.",
    }  # fmt: skip


def test_a_link_to_what_was_replaced_leads_to_what_holds_now(library: Library) -> None:
    link(library, Link("4", "1", "related"))
    library.write("The boat Terna has berth 40.", supersedes=1)
    library.flush()
    assert texts(library, "shoals", "herring") == ["Herring swims in shoals.", "The boat Terna has berth 40."]


def test_both_sides_of_a_contradiction_are_shown_with_a_warning(
    library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    library.write("Nobody pays anything beforehand at the quay.")
    library.flush(plan=Plan((Extend("office", "", (7,)), Link("7", "6", "contradicts"))))
    for question in ("Are berth fees paid in advance?", "Who pays anything beforehand?"):
        answer = library.ask(question, k=1)
        assert {(piece.seqs, piece.contradicts) for piece in answer.evidence} == {((6,), (7,)), ((7,), (6,))}
    assert main(["-L", str(library.root), "ask", "Are berth fees paid in advance?", "-k", "1"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("  ! contradicts [office:") == 2
    assert main(["-L", str(library.root), "search", "fees"]) == 0
    assert re.search(r"\t.*  \(contradicts office:\d+\)\n", capsys.readouterr().out)
    assert main(["-L", str(library.root), "search", "fees", "--json"]) == 0
    assert [hit["contradicts"] for hit in json.loads(capsys.readouterr().out)] == [[7]]
    assert main(["-L", str(library.root), "catalog"]) == 0
    assert "contradict each other; only one of them can be true" in capsys.readouterr().err
    assert main(["-L", str(library.root), "catalog", "--json"]) == 0
    assert {row["topic"]: row["contradictions"] for row in json.loads(capsys.readouterr().out)}["office"] == 1
    told = run(library, "search", {"query": "fees"})
    assert "! #6 and #7 [office:" in told.text
    assert main(["-L", str(library.root), "trace", "6"]) == 0
    assert "! linked from 7 (contradicts): Nobody pays anything" in capsys.readouterr().out
    assert main(["-L", str(library.root), "trace", "7", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["links"] == [{"to": "6", "seqs": [6], "relation": "contradicts"}]
    both = gather(memory_of(library), "fees", [library.search("fees", 1)[0].unit], sure=True)
    assert {piece.seqs: piece.contradicts for piece in both.pieces if piece.contradicts} == {(6,): (7,), (7,): (6,)}


def test_check_names_odd_relations_and_links_that_lead_nowhere(library: Library) -> None:
    page = library.root / "topics" / "sea.md"
    page.write_text(page.read_text().replace("<seq=4", "<seq=4, links=1:likes+77:related+atlantis+office", 1))
    found = [(finding.problem.code, finding.problem.message[:40]) for finding in library.check()]
    assert sorted(code for code, _ in found if code in ("relation", "link")) == ["link", "link", "relation"]
    assert parse_links("1:likes")[0] == Tie((1,), "", "likes"), "it is kept"


def test_who_leaves_a_line_that_was_joined_twice_keeps_what_was_linked_meanwhile(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    library.write(["Terna is a boat.", "Terna is old.", "Terna leaks."])
    library.flush(planner="lexical")
    library.join([1, 2], "Terna is an old boat.")
    assert not library.flush(plan=Plan((Link("1", "3", "causes"),))).skipped
    library.join([1, 3], "Terna is an old boat and leaks.")
    library.write("Terna is new.", supersedes=[2])
    library.flush(planner="lexical")
    here = library.trace(1).here
    assert here is not None and (here.seqs, here.get("links")) == ((1,), "3:causes")


def test_a_link_leads_to_the_pieces_of_now_of_what_was_divided_undone_and_divided_again(library: Library) -> None:
    library.write("The quay has ten berths. Its lamp is green.")
    library.flush(plan=Plan((Extend("office", "", (7,)),)))
    link(library, Link("4", "7", "related"))
    library.divide(7)
    library.undo()
    library.divide(7)
    assert texts(library, "shoals", "herring") == [
        "Herring swims in shoals.", "The quay has ten berths.", "Its lamp is green.",
    ]  # fmt: skip
    assert [one.get("retired_by") for one in library.index().retired((7,))] == ["10-11"]
    assert library.index().replaced_by(8) == [] and [one.seqs for one in library.index().replaced_by(10)] == [(7,)]


def test_what_linked_two_entries_is_there_again_when_they_come_out_of_one_line(library: Library) -> None:
    link(library, Link("5", "6", "causes"), Link("5", "4", "explains"))
    library.join([5, 6], "The harbour office opens at nine; berth fees are paid in advance.")
    library.join([5, 4], "The office opens at nine; fees are paid in advance. Herring swims in shoals.")
    library.forget([4])
    assert {seq: ties(library, seq) for seq in (5, 6)} == {5: (Tie((6,), "", "causes"),), 6: ()}
