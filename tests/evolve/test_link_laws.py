"""Laws of links: whatever is split, merged, joined, divided, replaced, undone, forgotten, renumbered: they stay right.

A link is followed by words: each entry holds a word of its own, so that its seq may become another.
"""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.model import CURRENT, Filter, Link, Unit
from infinimem.plan.paper import Plan
from infinimem.plan.rules import MOST_LINKS, RELATIONS
from infinimem.readers.links import reached_by
from infinimem.text.signature import parse_links, parse_seqs
from tests.conftest import NIGHTLY
from tests.faults.library_state import visible_files
from tests.git.clones import Clone, make_clones
from tests.readers.scripts import memory_of

START = datetime(2026, 5, 1, 9, tzinfo=UTC)
WORD = re.compile(r"\bzq\d+z\b")
SUBJECTS = ("Maya keeps", "The boat Terna needs", "Ines sells", "The choir has")
ODD = {"unsettled", "count"}
"""Findings that say nothing of links."""


def shown(library: Library) -> dict[int, Unit]:
    """What topics show, by seq."""
    units = library.index().entries((), Filter())
    return {seq: unit for unit in units if unit.topic != CURRENT for seq in unit.seqs}


@pytest.mark.parametrize("number", range(40 if NIGHTLY else 3))
def test_links_stay_right_whatever_happens(number: int, tmp_path: Path) -> None:
    chance = random.Random(number)
    now = [START]
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: now[0])
    (library.root / "infinimem.yaml").write_text("format: 1\nsplit: {max_tokens: 500}\nmerge: {max_tokens: 200}\n")
    made: set[tuple[int, int, str]] = set()
    forgotten: set[int] = set()
    past: list[set[tuple[int, int, str]]] = []
    """The links before each change that can be undone, newest last."""
    for turn in range(60 if NIGHTLY else 25):
        now[0] += timedelta(hours=5)
        here = shown(library)
        seqs = sorted(here)
        report = None
        before = set(made)
        match chance.randrange(11) if turn > 2 else 0:
            case 0 | 1:
                old = [chance.choice(seqs)] if seqs and chance.random() < 0.4 else []
                for at in range(2):
                    text = f"{chance.choice(SUBJECTS)} zq{turn}{at}z. It is in room {turn}."
                    library.write(text, supersedes=old if at else [])
                report = library.flush(planner="lexical")
            case 2 | 3 | 4 if len(seqs) > 1:
                one, other = chance.sample(seqs, 2)
                relation = chance.choice(sorted(RELATIONS))
                report = library.flush(plan=Plan((Link(str(one), str(other), relation),)))
                if not report.skipped:
                    made.add((one, other, relation))
            case 5 if seqs:
                report = library.divide(chance.choice(seqs))
            case 6 if len(seqs) > 1:
                one, other = chance.sample(seqs, 2)
                report = library.join([one, other], f"{here[one].text} {here[other].text}")
            case 7 if library.catalog():
                report = library.split(chance.choice(library.catalog()).topic)
            case 8 if len(library.catalog()) > 1:
                report = library.merge([row.topic for row in library.catalog()[:2]])
            case 9:
                library.undo()
                here = shown(library)  # what a forgetting left to be undone is not known here
                made = past.pop() if past else {one for one in made if one[0] not in here or holds(here, one)}
            case 10 if seqs:
                gone = chance.choice(seqs)
                done = library.forget([gone])
                forgotten.update(done.seqs)
                past.clear()
        if report is not None and report.flushed:
            past.append(before)
        assert_links_hold(library, made, forgotten)
    assert made, "there were links"


def holds(here: dict[int, Unit], link: tuple[int, int, str]) -> bool:
    """Whether a link stands in the line that shows its source, or both its ends are one line now."""
    source, to, relation = link
    ties = parse_links(here[source].get("links"))
    return to in here[source].seqs or any(to in tie.seqs and tie.relation == relation for tie in ties)


def assert_links_hold(library: Library, made: set[tuple[int, int, str]], forgotten: set[int]) -> None:
    """Every link of what is shown is there and leads to what holds now; none leads to what was forgotten."""
    found = [finding for finding in library.check() if finding.problem.code not in ODD]
    assert not found, [str(one) for one in found]
    here = shown(library)
    memory = memory_of(library)
    for source, to, relation in sorted(made):
        if source in here and to not in forgotten:
            assert holds(here, (source, to, relation)), (source, to, relation, here[source])
    for unit in here.values():
        ties = parse_links(unit.get("links"))
        assert len(ties) <= 2 * MOST_LINKS, "a joined line may have the links of two"
        for tie in ties:
            assert forgotten.isdisjoint(tie.seqs), f"{unit.seqs} is linked to what was forgotten"
            there = list(reached_by(memory, "", tie))
            assert there or ends_forgotten(library, tie.seqs[0], forgotten), f"{unit.seqs} → {tie} leads nowhere"
    for path, content in visible_files(library.root).items():
        for names in re.findall(rb"links=\"?([^\s,>\"]+)", content):
            assert forgotten.isdisjoint(seq for tie in parse_links(names.decode()) for seq in tie.seqs), path


def ends_forgotten(library: Library, seq: int, forgotten: set[int]) -> bool:
    """Whether what took an entry's place, at the end, was forgotten: then nothing that holds is left to lead to."""
    gone = library.index().retired((seq,))
    after = parse_seqs(gone[0].get("retired_by")) if gone else ()
    return seq in forgotten or (bool(after) and all(ends_forgotten(library, one, forgotten) for one in after))


@pytest.mark.parametrize("number", range(12 if NIGHTLY else 2))
def test_links_lead_to_the_same_words_after_machines_gave_the_same_numbers(number: int, tmp_path: Path) -> None:
    chance = random.Random(number)
    clones = make_clones(tmp_path, ["one", "two"])
    wanted: dict[str, set[str]] = {}
    words = iter(f"zq{at}z" for at in range(1000))
    for _ in range(3):
        for clone in clones:
            write_linked(clone, chance, wanted, [next(words) for _ in range(chance.randint(2, 4))])
        for clone in (*clones, *clones):
            clone.sync()
        for clone in clones:
            assert links_by_word(clone) == wanted
            assert not [one for one in clone.library.check() if one.problem.code not in ODD]


def write_linked(clone: Clone, chance: random.Random, wanted: dict[str, set[str]], words: list[str]) -> None:
    """Write entries on one machine, and link each to one that this machine sees."""
    for word in words:
        [seq] = clone.library.write(f"{chance.choice(SUBJECTS)} {word}.", source=clone.root.name)
        there = {one: WORD.findall(unit.text)[0] for one, unit in shown(clone.library).items()}
        others = sorted(other for other in there if other != seq)
        clone.library.flush(planner="lexical")
        if others:
            to = chance.choice(others)
            report = clone.library.flush(plan=Plan((Link(str(seq), str(to), "supports"),)))
            assert not report.skipped, report.skipped
            wanted.setdefault(word, set()).add(there[to])


def links_by_word(clone: Clone) -> dict[str, set[str]]:
    """For the word of each entry that is linked, the words of those that it is linked to."""
    here = shown(clone.library)
    found: dict[str, set[str]] = {}
    for unit in here.values():
        for tie in parse_links(unit.get("links")):
            found.setdefault(WORD.findall(unit.text)[0], set()).update(WORD.findall(here[tie.seqs[0]].text))
    return found
