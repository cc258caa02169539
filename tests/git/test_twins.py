"""One number that two entries carry, from wherever that came: it is said, and put right where nothing is in doubt."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem import Library
from infinimem.git import twins
from infinimem.store.evidence import all_records, retirement
from infinimem.text.document import parse
from infinimem.text.signature import parse_seqs
from tests.conftest import NIGHTLY
from tests.git.clones import ATTRIBUTES, DRIVER, git

MAY = datetime(2026, 5, 1, 9, tzinfo=UTC)


def clock(offset: int) -> Callable[[], datetime]:
    """A clock of one machine: no two read the same microsecond."""
    ticks = itertools.count()
    return lambda: MAY + timedelta(seconds=next(ticks), microseconds=offset)


def commit(root: Path, why: str) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", why)


@pytest.fixture
def two(tmp_path: Path) -> tuple[Library, Library]:
    """A library in git that is known upstream, and a clone; neither knows how to merge by entry."""
    here = Library.open(tmp_path / "here", create=True, clock=clock(1))
    here.write(["Maya works at Fjord Labs.", "The boat has berth 12."])
    here.flush(planner="lexical")
    git(here.root, "init", "-q", "-b", "main")
    commit(here.root, "first")
    git(tmp_path, "clone", "-q", str(here.root), "there")
    there = Library.open(tmp_path / "there", clock=clock(2))
    return here, there


def squash(here: Library, there: Library) -> None:
    """Take everything that the other side did into one commit of one's own, both sides' lines kept."""
    (here.root / ".git/info/attributes").write_text(ATTRIBUTES)
    git(here.root, "config", "merge.infinimem.driver", DRIVER)
    git(here.root, "fetch", "-q", str(there.root), "main")
    git(here.root, "merge", "-q", "--squash", "FETCH_HEAD", fails=True)
    commit(here.root, "squashed")


def test_in_the_middle_of_a_merge_nobody_is_told_to_give_numbers_by_hand(two: tuple[Library, Library]) -> None:
    here, there = two
    for library, words in ((here, "Maya rents in Bergen."), (there, "Maya rents in Oslo.")):
        library.write(words, supersedes=1)
        library.flush(planner="lexical")
        commit(library.root, "flushed")
    (here.root / ".git/info/attributes").write_text(ATTRIBUTES)
    git(here.root, "config", "merge.infinimem.driver", DRIVER)
    git(here.root, "fetch", "-q", str(there.root), "main")
    git(here.root, "merge", "-q", "--no-commit", "FETCH_HEAD", fails=True)
    [said] = [finding.problem.message for finding in here.check() if finding.problem.code == "clash"]
    assert said.endswith(
        "; finish the merge in git first: the next flush, or check --fix, then gives one another number"
    )
    commit(here.root, "merged")
    here.check(fix=True)
    assert not [finding for finding in here.check() if finding.problem.code == "clash"]
    assert {hit.text for hit in here.search("Maya rents")} == {"Maya rents in Bergen.", "Maya rents in Oslo."}


def found(library: Library, word: str) -> list[tuple[int, ...]]:
    return [hit.seqs for hit in library.search(word, 1)]


def test_a_squash_merge_of_a_branch_that_flushed(two: tuple[Library, Library]) -> None:
    here, there = two
    here.write("Hilde turns ninety in July.")
    here.flush(planner="lexical")
    commit(here.root, "here")
    there.write("The tide clock needs an oak case.")
    there.write("The oak case is of walnut after all.", supersedes=[3])
    there.flush(planner="lexical")
    commit(there.root, "there")
    squash(here, there)
    clashes = [finding for finding in here.check() if finding.problem.code == "clash"]
    assert [finding.problem.line > 0 and finding.fixable for finding in clashes] == [True]
    assert "seq 3 is carried by this entry and by evidence/2026-05.md:" in clashes[0].problem.message
    here.check(fix=True)
    assert not here.check()
    assert found(here, "Hilde ninety") == [(5,)], "the younger one got another number"
    assert found(here, "walnut") == [(4,)]
    event = retirement(all_records(here.root)[3])
    assert event is not None
    assert event.get("by") == "4"
    assert retirement(all_records(here.root)[5]) is None


def test_what_others_know_already_keeps_its_number(two: tuple[Library, Library], tmp_path: Path) -> None:
    here, there = two
    there.write("The tide clock needs an oak case.")
    here.write("Hilde turns ninety in July.")
    here.flush(planner="lexical")
    commit(here.root, "here")
    there.flush(planner="lexical")
    commit(there.root, "there")
    squash(there, here)  # `there` follows `here`, where Hilde is 3; the clock is older
    git(there.root, "fetch", "-q", "origin")
    there.check(fix=True)
    assert found(there, "Hilde ninety") == [(3,)]
    assert found(there, "tide clock") == [(4,)]
    assert not there.check()


def test_current_stashed_while_another_entry_of_that_number_was_pulled(two: tuple[Library, Library]) -> None:
    here, there = two
    here.write("Hilde turns ninety in July.")
    commit(here.root, "here")
    there.write("The tide clock needs an oak case.")
    git(there.root, "stash", "-q")
    git(there.root, "pull", "-q", "origin", "main")
    there.flush(planner="lexical")
    stashed = git(there.root, "show", "stash@{0}:CURRENT.md")
    (there.root / "CURRENT.md").write_text(stashed)
    assert [finding.problem.code for finding in there.check(fix=True)] == ["clash"]
    there.flush(planner="lexical")
    assert (found(there, "Hilde ninety"), found(there, "tide clock")) == ([(3,)], [(4,)])
    assert not there.check()


def test_where_it_cannot_be_told_what_a_line_means_nothing_is_changed(two: tuple[Library, Library]) -> None:
    here, there = two
    for one, text in ((here, "Hilde turns ninety."), (there, "Flo turns nine.")):
        one.write(text)
        one.flush(planner="lexical")
        commit(one.root, "one")
    squash(here, there)
    here.write("See what was said.", meta={"links": "3:about"})
    here.flush(planner="lexical")
    before = {path: path.read_bytes() for path in here.root.rglob("*.md")}
    [clash] = [finding for finding in here.check(fix=True) if finding.problem.code == "clash"]
    assert not clash.fixable
    assert "means cannot be told" in clash.problem.message
    after = {path: path.read_bytes() for path in here.root.rglob("*.md")}
    assert {path for path in after if after[path] != before[path]} == set()


TEXTS = st.lists(
    st.tuples(st.sampled_from(["Maya", "boat", "choir", "Hilde", "clock", "ferry"]),
              st.sampled_from(["oak", "Bergen", "ninety", "berth", "tea", "walnut"])).map(" ".join),
    min_size=1, max_size=3,
)  # fmt: skip
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), TEXTS, st.booleans(), st.booleans()),
        st.tuples(st.just("flush")),
        st.tuples(st.just("edit")),
    ),
    min_size=1,
    max_size=5,
)


def live(library: Library, steps: list[tuple[object, ...]], name: str) -> None:
    """Live through some steps; each text is said once in the world."""
    number = itertools.count()
    written = [1, 2]
    for step in steps:
        match step:
            case ("write", list(texts), bool(corrects), bool(links)):
                written += library.write(
                    [f"{text} {name}{next(number)}" for text in texts],
                    supersedes=written[-1:] if corrects else [],
                    meta={"links": f"{written[-1]}:about"} if links else {},
                )
            case ("flush",):
                library.flush(planner="lexical")
            case ("edit",):
                for path in sorted((library.root / "topics").glob("*.md"))[:1]:
                    path.write_text(path.read_text().replace("Maya ", "Maya L. ").replace("boat ", "ship "))
                    library.check(fix=True)


def meanings(library: Library) -> dict[str, set[tuple[str, str]]]:
    """What each entry that evidence or CURRENT holds refers to, all by when they were written down and their words."""
    firsts: dict[int, str] = {}
    lines = []
    for path in [*sorted((library.root / "evidence").glob("*.md")), library.root / "CURRENT.md"]:
        for entry in parse(path.name, path.read_bytes()).entries:
            if len(entry.seqs) == 1 and not entry.signature.get("rev"):
                firsts.setdefault(entry.seq, f"{entry.observed} {entry.text}")
                lines.append(entry)
    meant: dict[str, set[tuple[str, str]]] = {}
    for entry in lines:
        named = {("supersedes", seq) for seq in parse_seqs(entry.signature.get("supersedes"))}
        named |= {("links", seq) for seq in parse_seqs(entry.signature.get("links").partition(":")[0])}
        meant[f"{entry.observed} {entry.text}"] = {(key, firsts.get(seq, "")) for key, seq in named}
    for record in all_records(library.root).values():
        event = retirement(record)
        if event is not None and record.seq in firsts:
            by = parse_seqs(event.get("by"))
            meant[firsts[record.seq]].add(("gone", firsts.get(by[0], "") if by else event.get("why")))
    return meant


@settings(max_examples=400 if NIGHTLY else 12)
@given(STEPS, STEPS)
def test_both_sides_of_a_copy_by_hand_are_kept_with_what_they_mean(
    tmp_path_factory: pytest.TempPathFactory, ours: list[tuple[object, ...]], theirs: list[tuple[object, ...]]
) -> None:
    """Files of one clone copied into another: lines of CURRENT and evidence that it lacks, topics under new names."""
    base = tmp_path_factory.mktemp("twins")
    seed = Library.open(base / "seed", create=True, clock=clock(0))
    seed.write(["Maya works at Fjord Labs.", "The boat has berth 12."])
    seed.flush(planner="lexical")
    sides = []
    for number, (name, steps) in enumerate((("ours", ours), ("theirs", theirs)), 1):
        shutil.copytree(seed.root, base / name)
        side = Library.open(base / name, clock=clock(3_600_000_000 + number))
        live(side, steps, name)
        sides.append(side)
    here, there = sides
    wanted = {**meanings(there), **meanings(here)}
    for path in [there.root / "CURRENT.md", *(there.root / "evidence").glob("*.md")]:
        target = here.root / path.relative_to(there.root)
        known = set(target.read_text().splitlines(keepends=True)) if target.exists() else set()
        with target.open("a") as file:
            file.writelines(line for line in path.read_text().splitlines(keepends=True) if line not in known)
    for path in (there.root / "topics").glob("*.md"):
        if not (here.root / "topics" / path.name).exists():
            shutil.copy(path, here.root / "topics" / path.name)
        elif (here.root / "topics" / path.name).read_bytes() != path.read_bytes():
            text = path.read_text().replace(f"id: {path.stem}\n", f"id: {path.stem}-theirs\n")
            (here.root / "topics" / f"{path.stem}-theirs.md").write_text(text)
    clashes = [finding for finding in here.check() if finding.problem.code == "clash"]
    here.check(fix=True)
    now = meanings(here)
    assert wanted.keys() <= now.keys(), "an entry was lost"
    if all(finding.fixable for finding in clashes):
        assert not [finding for finding in here.check() if finding.problem.code == "clash"]
        for entry, meant in wanted.items():
            assert {one for one in now[entry] if one[0] != "gone"} == {one for one in meant if one[0] != "gone"}, entry
            assert {one for one in meant if one[0] == "gone"} <= now[entry] | {("gone", "deleted")}, entry


def test_an_entry_without_a_rival_is_not_compared_and_long_ones_take_no_time(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True, clock=clock(1))
    library.write(["x" * 200_000, "The boat has berth 12."])
    library.flush(planner="lexical")
    shown = [parse(path.name, path.read_bytes()) for path in (library.root / "topics").glob("*.md")]
    evidence = [parse(f"evidence/{path.name}", path.read_bytes()) for path in (library.root / "evidence").glob("*.md")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twins, "likeness", lambda one, other: pytest.fail("compared"))
        assert twins.find_twins(shown, evidence) == []
    assert twins.likeness("x" * 10_000_000, "x" * 10_000_000 + "y") > twins.ALIKE
