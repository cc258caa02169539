"""What people do to the files between two commands, and what they saw go wrong with it once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.errors import BadInput, NeedsAttention, StorageFailed, UnknownTopic
from infinimem.model import Create, Extend, Filter, Join, Merge, Retire
from infinimem.plan.paper import Plan
from tests.faults.library_state import assert_conserved, visible_files

NOW = datetime(2026, 5, 1, 9, tzinfo=UTC)


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library.open(tmp_path / "memory", create=True, clock=lambda: NOW)


def into(topic: str, *seqs: int) -> Plan:
    return Plan((Create(topic, topic.title()), Extend(topic, "", seqs)))


def everything(library: Library) -> str:
    return "".join(content.decode("utf-8", "replace") for content in visible_files(library.root).values())


def append_line(path: Path, line: str) -> None:
    path.write_text(path.read_text() + line + "\n")


def codes(library: Library) -> list[str]:
    return [finding.problem.code for finding in library.check()]


# write


def test_a_key_that_another_entry_only_talks_of_stores_the_new_fact(library: Library) -> None:
    library.write("see <a, key=K>")
    library.write("a field that talks", meta={"note": "a, key=K, b"})
    assert library.write("new fact", key="K") == [3]
    assert library.write("new fact", key="K") == [3]


@pytest.mark.parametrize("name", ["a\n", "a b", "", "é", 3, "event", "rev"])
def test_a_field_name_that_would_break_the_signature_is_refused(library: Library, name: str) -> None:
    with pytest.raises(BadInput):
        library.write([{"text": "A secret", name: "b"}])
    assert not (library.root / "CURRENT.md").exists()


@pytest.mark.parametrize("when", ["２０２６", "0000", "2026-00", "2026-1-1", "26-05-01", "2026-05-01T25:00"])
def test_a_date_that_is_none_is_refused(library: Library, when: str) -> None:
    with pytest.raises(BadInput, match="time is a date"):
        library.write("x", time=when)


@pytest.mark.parametrize("entries", [None, 3, b"bytes", [None], [3]])
def test_the_api_refuses_other_types_in_one_line(library: Library, entries: object) -> None:
    with pytest.raises(BadInput):
        library.write(entries)  # type: ignore[arg-type]


def test_the_api_takes_any_iterable_of_seqs(library: Library) -> None:
    library.write(["one", "two"])
    library.write("three", supersedes=range(1, 3))
    library.flush()
    assert library.trace(1).by == library.trace(2).by == 3


def test_an_entry_shortened_in_place_after_a_killed_write_is_not_cut_off(library: Library) -> None:
    script = (
        "import os, sys; from infinimem import Library; from infinimem.store import append\n"
        "append.leave_note = lambda *a: os._exit(9)\n"
        "Library.open(sys.argv[1]).write('a rather long entry that will be shortened')"
    )
    subprocess.run([sys.executable, "-c", script, str(library.root)], check=False)
    current = library.root / "CURRENT.md"
    with current.open("r+") as file:  # in place, as some editors save
        text = file.read().replace("a rather long entry that will be shortened", "short")
        file.seek(0)
        file.truncate()
        file.write(text)
    assert library.write("the next") == [2]
    assert "> short\n" in current.read_text()


# seqs


def test_a_seq_typed_into_a_topic_is_not_given_again(library: Library) -> None:
    library.write("one")
    library.flush(plan=into("numbers", 1))
    append_line(library.root / "topics" / "numbers.md", "- <seq=30> typed with a seq of its own")
    library.check(fix=True)
    assert library.write("next") == [31]
    assert_conserved(library.root, {1, 30, 31})


def test_deleted_evidence_does_not_give_seqs_again(library: Library) -> None:
    library.write(["one", "two"])
    library.flush()
    for path in (library.root / "evidence").iterdir():
        path.unlink()
    assert library.write("next") == [3]


def test_a_joined_line_that_clashes_in_one_seq_keeps_the_others(library: Library) -> None:
    library.write(["Tiles cost 40.", "Tiles cost 50 now."])
    plan = Plan((Join((1, 2), "Tiles cost 40. Tiles cost 50 now."), *into("tiles", 1, 2).steps))
    library.flush(plan=plan)
    append_line(library.root / "topics" / "tiles.md", "- <seq=1> something else entirely")
    library.check(fix=True)
    assert {seq for hit in library.search("tiles cost", 5) for seq in hit.seqs} >= {2}
    assert_conserved(library.root, {1, 2, 3})
    assert not library.check()


def test_a_clash_after_a_branch_merge_keeps_both_words(library: Library) -> None:
    library.write("old")
    library.write("new", supersedes=1)
    library.flush()
    append_line(library.root / "CURRENT.md", "- <seq=1, source=Bo> totally different words")
    assert "clash" in codes(library)
    report = library.flush()
    assert report.exit_code == 5
    assert "totally different words" in (library.root / "CURRENT.md").read_text()
    library.check(fix=True)
    assert not library.check()
    assert library.flush().seqs == (3,)
    assert "totally different words" in everything(library)


def test_an_old_current_put_back_after_a_flush_doubles_nothing(library: Library) -> None:
    library.write(["The choir sings Brahms.", "Terna has berth 31."])
    old = (library.root / "CURRENT.md").read_text()
    library.flush()
    (library.root / "CURRENT.md").write_text(old)
    library.flush()
    assert_conserved(library.root, {1, 2})
    assert not library.check()


def test_an_old_current_put_back_with_other_words_keeps_both(library: Library) -> None:
    library.write("The choir sings Brahms.")
    old = (library.root / "CURRENT.md").read_text()
    library.flush()
    (library.root / "CURRENT.md").write_text(old.replace("Brahms", "Bach"))
    report = library.flush()
    assert report.left == (1,)
    library.check(fix=True)
    library.flush()
    assert_conserved(library.root, {1, 2})
    assert {"The choir sings Brahms.", "The choir sings Bach."} == {hit.text for hit in library.search("choir", 5)}


# words


def test_words_edited_in_current_after_an_undo_reach_evidence(library: Library) -> None:
    library.write("The key is under the mat.")
    library.flush()
    library.undo()
    current = library.root / "CURRENT.md"
    current.write_text(current.read_text().replace("mat", "flower pot"))
    library.write("The key is with Solveig.", supersedes=1)
    library.flush()
    assert "flower pot" in everything(library)
    assert_conserved(library.root, {1, 2})


def test_a_joined_line_edited_by_hand_is_noted_before_it_is_broken_up(library: Library) -> None:
    library.write(["The cat is called Rex.", "The dog is called Mio."])
    plan = Plan((Join((1, 2), "The cat is called Rex. The dog is called Mio."), *into("pets", 1, 2).steps))
    library.flush(plan=plan)
    path = library.root / "topics" / "pets.md"
    path.write_text(path.read_text().replace("Mio", "Mitzi"))
    assert "edited" in codes(library)
    library.write("The cat is called Max.", supersedes=1)
    library.flush()
    assert "Mitzi" in everything(library)
    assert_conserved(library.root, {1, 2, 3})


def test_a_carriage_return_in_an_entry_is_not_a_hand_edit(library: Library) -> None:
    library.write("a\r\nb")
    library.write("c", supersedes=1)
    library.flush()
    assert "rev=" not in everything(library)
    assert library.trace(1).words[0][1].text == "a\r\nb"


def test_check_fix_writes_evidence_once(library: Library) -> None:
    library.write("one")
    library.flush(plan=into("numbers", 1))
    append_line(library.root / "topics" / "numbers.md", "- typed by hand")
    library.check(fix=True)
    assert everything(library).count("typed by hand") == 2, "the topic and evidence"
    assert not library.check()


def test_check_fix_leaves_a_topic_with_conflict_markers_alone(library: Library) -> None:
    library.write("one")
    library.flush(plan=into("numbers", 1))
    path = library.root / "topics" / "numbers.md"
    line = "- <seq=1> "
    append_line(path, f"<<<<<<< HEAD\n{line}ours\n=======\n{line}theirs\n>>>>>>> branch")
    before = visible_files(library.root)
    library.check(fix=True)
    library.check(fix=True)
    assert visible_files(library.root) == before


# form


@pytest.mark.parametrize(
    ("old", "new"),
    [("- <seq=1", "-   <seq=1"), ("- <seq=1", "* <seq=1"), ("- <seq=1", "+\t<seq=1"), (", observed", ",   observed")],
)
def test_a_formatter_that_changes_bullets_or_spaces_changes_no_entry(library: Library, old: str, new: str) -> None:
    library.write("The choir sings Brahms.")
    current = library.root / "CURRENT.md"
    current.write_text(current.read_text().replace(old, new))
    assert library.flush().seqs == (1,)
    assert_conserved(library.root, {1})
    path = next((library.root / "topics").iterdir())
    path.write_text(path.read_text().replace(old, new))
    library.check(fix=True)
    assert_conserved(library.root, {1})


@pytest.mark.parametrize("broken", ["1. <seq=1", "- <seq =1", "- <seq=1x"])
def test_a_line_that_no_longer_reads_as_an_entry_is_named_and_not_retired(library: Library, broken: str) -> None:
    library.write("The choir sings Brahms.")
    library.flush()
    path = next((library.root / "topics").iterdir())
    path.write_text(path.read_text().replace("- <seq=1", broken))
    findings = library.check(fix=True)
    assert {"near-miss"} <= {finding.problem.code for finding in findings}
    assert "event=retire" not in everything(library)
    path.write_text(path.read_text().replace(broken, "- <seq=1"))
    library.check(fix=True)
    assert_conserved(library.root, {1})


def test_a_date_that_is_none_does_not_expire_an_entry(library: Library) -> None:
    append_line(library.root / "CURRENT.md", "") if (library.root / "CURRENT.md").exists() else None
    library.write("placeholder")
    append_line(library.root / "CURRENT.md", "- <seq=2, expires=1 May 2027> a coupon")
    assert "date" in codes(library)
    library.flush()
    assert library.trace(2).here is not None


# files


def test_a_chain_of_corrections_in_any_order_leaves_the_last(library: Library) -> None:
    library.write(["berth 1", "berth 2", "berth 3"])
    current = library.root / "CURRENT.md"
    head, *entries = current.read_text().split("- <seq=")
    corrected = [entries[at].replace(", ", f", supersedes={at}, ", 1) for at in (2, 1)]
    lines = [*corrected, entries[0]]
    current.write_text(head + "".join(f"- <seq={line}" for line in lines))
    library.flush()
    assert [hit.text for hit in library.search("berth", 5)] == ["berth 3"]
    assert_conserved(library.root, {1, 2, 3})


def test_every_copy_of_a_superseded_entry_leaves(library: Library) -> None:
    library.write("The key is under the mat.")
    library.flush(plan=into("keys", 1))
    path = library.root / "topics" / "keys.md"
    (library.root / "topics" / "copy.md").write_text(path.read_text().replace("id: keys", "id: copy"))
    library.write("The key is with Solveig.", supersedes=1)
    library.flush()
    assert [hit.text for hit in library.search("key", 5)] == ["The key is with Solveig."]
    assert_conserved(library.root, {1, 2})


def test_a_renamed_topic_survives_an_undo(library: Library) -> None:
    library.write("The choir sings Brahms.")
    library.flush(plan=into("choir", 1))
    (library.root / "topics" / "choir.md").rename(library.root / "topics" / "singing.md")
    library.undo()
    library.flush()
    assert_conserved(library.root, {1})


def test_an_undo_killed_before_it_tidied_up_is_not_done_twice(library: Library) -> None:
    library.write("one")
    library.flush()
    library.write("two")
    library.flush()
    library.undo()
    assert library.undo().seqs == (1,)
    assert_conserved(library.root, {1, 2})


@pytest.mark.parametrize("spoil", [b"<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n", b"\xff\xfe\n"])
def test_undo_does_not_touch_a_current_that_cannot_be_understood(library: Library, spoil: bytes) -> None:
    library.write("one")
    library.flush()
    current = library.root / "CURRENT.md"
    current.write_bytes(current.read_bytes() + spoil)
    before = visible_files(library.root)
    with pytest.raises(NeedsAttention, match=r"CURRENT\.md:\d+"):
        library.undo()
    assert visible_files(library.root) == before


def test_conflict_markers_in_evidence_stop_a_flush_and_are_named(library: Library) -> None:
    library.write("one")
    library.flush()
    path = next((library.root / "evidence").iterdir())
    append_line(path, "<<<<<<< HEAD\n- <seq=7> ours\n=======\n- <seq=8> theirs\n>>>>>>> x")
    library.write("two")
    before = visible_files(library.root)
    with pytest.raises(NeedsAttention, match=r"evidence/.*:\d+: a git conflict"):
        library.flush()
    assert "conflict" in codes(library)
    assert visible_files(library.root) == before


def test_a_clock_set_back_over_a_month_end_changes_no_order(tmp_path: Path) -> None:
    now = [datetime(2026, 5, 1, 0, 0, 30, tzinfo=UTC)]
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: now[0])
    library.write("old")
    library.flush()
    library.write("new", supersedes=1)
    library.flush()
    now[0] = datetime(2026, 4, 30, 23, 59, tzinfo=UTC)
    library.undo()
    assert library.trace(1).here is not None
    assert_conserved(library.root, {1, 2})
    library.flush()
    assert_conserved(library.root, {1, 2})


def test_a_returned_entry_deleted_from_current_can_be_settled_either_way(library: Library) -> None:
    library.write(["one", "two"])
    library.flush()
    library.undo()
    current = library.root / "CURRENT.md"
    current.write_text("".join(line for line in current.read_text().splitlines(True) if "> two" not in line))
    assert "deleted" in codes(library)
    library.check(fix=True)
    assert not library.check()
    assert library.recover([2]) == [2]
    library.flush()
    assert_conserved(library.root, {1, 2})
    assert not library.check()


def test_a_library_whose_topics_were_moved_away_is_not_retired(library: Library) -> None:
    library.write([f"fact {number} about the ferry" for number in range(30)])
    library.flush()
    for path in (library.root / "topics").iterdir():
        path.rename(library.root.parent / path.name)
    findings = library.check(fix=True)
    assert findings
    assert not any(finding.fixed for finding in findings)
    assert "event=retire" not in everything(library)


# merge by hand


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("aux: {}", "aux: {pinned: true}", "pinned"),
        ("aux: {}", "aux: {}\ntags: [a]", "front matter of its own"),
        ("aux: {}", "aux: {}\n# mine", "comments"),
    ],
)
def test_merge_does_not_drop_what_a_person_wrote_in_front_matter(
    library: Library, old: str, new: str, why: str
) -> None:
    library.write(["one", "two"])
    library.flush(plan=Plan((*into("a", 1).steps, *into("b", 2).steps)))
    path = library.root / "topics" / "b.md"
    path.write_text(path.read_text().replace(old, new))
    report = library.merge(["a", "b"])
    assert why in report.skipped[0].why
    assert path.exists()


def test_a_merge_that_names_a_topic_twice_doubles_nothing(library: Library) -> None:
    library.write(["one", "two"])
    library.flush(plan=Plan((*into("a", 1).steps, *into("b", 2).steps)))
    library.flush(plan=Plan((Merge(("a", "a", "b"), "b", ""),)))
    assert_conserved(library.root, {1, 2})


def test_a_seq_that_a_plan_repeats_keeps_its_first_place(library: Library) -> None:
    library.write(["one", "two", "three"])
    plan = Plan((*into("a", 1, 2).steps, Create("b", "B"), Extend("b", "", (2, 3))))
    report = library.flush(plan=plan)
    assert report.seqs == (1, 2, 3)
    assert library.trace(3).here is not None
    assert library.trace(3).here.topic == "b"  # type: ignore[union-attr]
    assert_conserved(library.root, {1, 2, 3})


# links and odd files


OURS = ("undo", "written.log", "commit", "kept", "lock", "flush.lock", "index", "commit.json")


@pytest.mark.parametrize("name", OURS)
def test_a_symbolic_link_among_our_own_files_is_not_followed(library: Library, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    (outside / "2019").mkdir(parents=True)
    (outside / "2019" / "photo").write_text("dear")
    library.write("one")
    place = library.root / ".infinimem" / name
    if place.exists():
        place.unlink() if place.is_file() else subprocess.run(["rm", "-r", str(place)], check=True)
    place.symlink_to(outside if name in ("undo", "commit", "kept", "index") else outside / "file")
    for number in range(7):
        try:
            library.write(f"fact {number}")
            library.flush()
        except (NeedsAttention, StorageFailed) as error:
            assert "symbolic link" in str(error)
    assert sorted(path.relative_to(outside).as_posix() for path in outside.rglob("*")) == ["2019", "2019/photo"]


def test_nothing_is_read_through_a_symbolic_link(library: Library, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("root password\n")
    (library.root / "topics" / "link.md").symlink_to(tmp_path / "secret.md")
    (library.root / "topics" / "dir").symlink_to(tmp_path)
    for topic in ("link", "dir/secret"):
        with pytest.raises(UnknownTopic):
            library.read(topic)
        with pytest.raises(UnknownTopic):
            library.grep("root", topic)
    assert not library.grep("password")
    assert not library.search("password")


def test_a_pipe_in_the_place_of_current_does_not_hang(library: Library) -> None:
    os.mkfifo(library.root / "CURRENT.md")
    script = "import sys; from infinimem import Library; library = Library.open(sys.argv[1]); library.{}"
    for call in ("write('x')", "status()", "flush()", "check()"):
        command = [sys.executable, "-c", script.format(call), str(library.root)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        assert "no ordinary file" in done.stderr


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"changes": [{"path": "../x", "old": "", "new": "", "x": 1}]}'])
def test_a_damaged_manifest_is_said_in_one_line(library: Library, content: str) -> None:
    library.write("one")
    (library.root / ".infinimem" / "commit.json").write_text(content)
    with pytest.raises(NeedsAttention, match="damaged; move it"):
        library.write("two")


NOTES = ("append a b c", "append 1 2 3", "ready", "ready x y z", "\x00\x01", "append 1 2 zz lf 3 4")


@pytest.mark.parametrize("content", NOTES)
def test_a_damaged_note_in_the_lock_file_is_ignored(library: Library, content: str) -> None:
    library.write("one")
    (library.root / ".infinimem" / "lock").write_text(content)
    assert library.write("two") == [2]


def test_a_file_name_that_is_not_utf8_is_named_and_left_alone(library: Library) -> None:
    name = os.fsencode(library.root / "topics") + b"/caf\xe9.md"
    Path(os.fsdecode(name)).write_bytes(b"---\nid: cafe\ntoken_count: 1\n---\n# Caf\n")
    library.write("one")
    assert library.flush().seqs == (1,)
    assert "name" in codes(library)
    library.check(fix=True)


def test_a_folder_with_the_name_of_a_new_topic_does_not_stop_a_flush(library: Library) -> None:
    library.write("The choir sings Brahms on Wednesdays in Sandviken church.")
    [topic] = [o.step.topic for o in library.flush(dry_run=True).outcomes if isinstance(o.step, Create)]
    (library.root / "topics" / f"{topic}.md").mkdir()
    assert library.flush().seqs == (1,)
    assert "name" in codes(library)


def test_settings_with_a_byte_order_mark_are_settings(library: Library) -> None:
    path = library.root / "infinimem.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    again = Library.open(library.root, create=True)
    assert again.write("one") == [1]
    assert path.read_bytes().count(b"format") == 1
    again.flush()


@pytest.mark.parametrize("settings", ["{a: 1}", "a: [", "- x"])
def test_settings_of_something_else_are_not_added_to(tmp_path: Path, settings: str) -> None:
    (tmp_path / "infinimem.yaml").write_text(settings)
    with pytest.raises(BadInput, match="no settings file of a library"):
        Library.open(tmp_path, create=True)
    assert (tmp_path / "infinimem.yaml").read_text() == settings


def modes(root: Path) -> Sequence[int]:
    return sorted({path.stat().st_mode & 0o777 for path in root.rglob("*")})


def test_what_is_made_is_private_and_what_exists_keeps_its_mode(library: Library) -> None:
    library.write("one")
    library.flush()
    library.index()
    private = [path for path in library.root.rglob("*") if "index" not in path.parts]
    assert {path.stat().st_mode & 0o077 for path in private} == {0}
    path = next((library.root / "topics").iterdir())
    path.chmod(0o644)
    library.write("one more about one")
    library.flush(plan=Plan((Extend(path.stem, "", (2,)),)))
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_bullet_typed_with_a_star_keeps_its_star(library: Library) -> None:
    library.write("one")
    append_line(library.root / "CURRENT.md", "* typed with a star")
    library.check(fix=True)
    assert "* <seq=2, source=hand" in (library.root / "CURRENT.md").read_text()


def test_a_topic_whose_front_matter_cannot_be_edited_is_named(library: Library) -> None:
    (library.root / "topics" / "flow.md").write_text("---\n{id: other, token_count: 3}\n---\n# Flow\n")
    before = visible_files(library.root)
    assert "front-matter" in {finding.problem.code for finding in library.check(fix=True)}
    assert visible_files(library.root) == before


def test_a_current_that_ends_in_a_lone_carriage_return_loses_none(library: Library) -> None:
    (library.root / "CURRENT.md").write_bytes(b"abc\r")
    library.write("x\r")
    assert library.search("x", 1)[0].text == "x\r"


# undo


def metformin(library: Library) -> Path:
    """Three notes flushed, the third corrected in a second flush; gives the topic's path."""
    library.write(
        ["Mama takes metformin 500 mg.", "Metformin gives Mama a bad stomach.", "Metformin comes from Boots."]
    )
    library.flush(plan=into("metformin", 1, 2, 3))
    library.write("Metformin comes from Lloyds now.", supersedes=3)
    library.flush(plan=Plan((Extend("metformin", "", (4,)), Retire(3, 4, "superseded"))))
    return library.root / "topics" / "metformin.md"


def test_an_undo_that_could_undo_nothing_is_not_passed_over_by_the_next(library: Library) -> None:
    path = metformin(library)
    append_line(path, "My remark on pharmacies.")
    for _ in range(3):
        report = library.undo()
        assert report.exit_code == 5
        assert not report.flushed
    assert library.trace(3).by == 4
    assert_conserved(library.root, {1, 2, 3, 4})


def test_an_older_undo_does_not_revive_what_was_corrected_since(library: Library) -> None:
    path = metformin(library)
    library.write("The choir sings Brahms.")
    library.flush(plan=into("choir", 5))
    append_line(path, "My remark on pharmacies.")
    assert library.undo().seqs == (5,)
    library.undo()
    library.undo()
    assert library.search("where does metformin come from", 1)[0].text == "Metformin comes from Lloyds now."
    assert library.trace(3).here is None
    assert_conserved(library.root, {1, 2, 3, 4, 5})


def test_undo_does_not_bring_back_what_was_deleted_by_hand(library: Library) -> None:
    library.write(["Mama takes metformin.", "The choir sings Brahms."])
    library.flush(plan=Plan((*into("metformin", 1).steps, *into("choir", 2).steps)))
    (library.root / "topics" / "metformin.md").unlink()
    library.check(fix=True)
    library.undo()
    assert library.trace(1).fate == "deleted"
    assert_conserved(library.root, {1, 2})


def test_undo_does_not_double_what_was_renamed_by_hand(library: Library) -> None:
    library.write(["The boat Terna has berth 31.", "The boat Terna needs oil."])
    library.flush(plan=Plan((*into("boat", 1).steps, *into("terna", 2).steps)))
    library.merge(["boat", "terna"])
    (library.root / "topics" / "boat.md").rename(library.root / "topics" / "terna-the-boat.md")
    library.undo()
    assert_conserved(library.root, {1, 2})


# organisation by hand


def test_a_flush_keeps_the_name_folder_and_title_that_a_person_gave(library: Library) -> None:
    library.write(["HbA1c of Mama is 58, says Dr Rao.", "HbA1c of Mama was 61 in January."])
    library.flush(plan=into("hba1c-mama", 1, 2))
    folder = library.root / "topics" / "health"
    folder.mkdir()
    (library.root / "topics" / "hba1c-mama.md").rename(folder / "mama-diabetes.md")
    path = folder / "mama-diabetes.md"
    path.write_text(path.read_text().replace("# Hba1C-Mama", "# Diabetes of Mama"))
    library.check(fix=True)
    library.write("HbA1c of Mama is 55 now, says Dr Rao.")
    library.flush()
    assert path.exists()
    assert "# Diabetes of Mama\n" in path.read_text()
    assert library.trace(3).here is not None
    assert [row.topic for row in library.catalog()] == ["health/mama-diabetes"]


def test_a_note_deleted_from_current_can_be_let_go(library: Library) -> None:
    library.write(["Oops, a slip.", "The choir sings Brahms."])
    current = library.root / "CURRENT.md"
    current.write_text("".join(line for line in current.read_text().splitlines(True) if "Oops" not in line))
    assert library.flush().exit_code == 5
    library.check(fix=True)
    assert not library.check()
    assert library.flush().exit_code == 0
    assert library.trace(1).fate == "deleted"
    assert library.recover([1]) == [1]
    assert_conserved(library.root, {1, 2})


def test_evidence_can_be_read_where_it_is_cited(library: Library) -> None:
    library.write("The key is under the mat.")
    library.write("The key is with Solveig.", supersedes=1)
    library.flush()
    [evidence, *_] = library.ask("key", filter=Filter(retired=True, where=(), as_of="")).evidence
    words = {piece.topic for piece in library.ask("key mat", filter=Filter(retired=True)).evidence}
    assert any(topic.startswith("evidence/") for topic in words)
    assert "The key is under the mat." in "".join(library.read(next(t for t in words if "evidence" in t)).lines)
    assert evidence.text


def test_a_topic_filter_that_names_nothing_is_said(library: Library) -> None:
    library.write("The choir sings Brahms.")
    library.flush(plan=into("choir", 1))
    for find in (library.search, library.ask):
        with pytest.raises(UnknownTopic, match="did you mean choir"):
            find("Brahms", filter=Filter(topic="chior"))


def test_a_plan_in_a_code_fence_is_a_plan(library: Library, tmp_path: Path) -> None:
    library.write("The choir sings Brahms.")
    plan = "```yaml\nplan: 1\nsteps:\n- create: {topic: choir, title: Choir}\n- extend: {topic: choir, seqs: 1}\n```\n"
    (tmp_path / "plan.md").write_text(plan)
    assert library.flush(plan=tmp_path / "plan.md").seqs == (1,)


def test_an_entry_that_replaces_what_is_still_shown_is_named(library: Library) -> None:
    library.write("The key is under the mat.", source="user")
    library.write("The key is with Solveig.", source="AI", supersedes=1)
    library.flush()
    [finding] = library.check()
    assert finding.problem.code == "unsettled"
    assert "replaces seq 1" in str(finding.problem)


def test_a_repeated_key_with_other_words_says_so(library: Library) -> None:
    assert library.write_all(["one\nand more", "two"], key="k").differs is False
    assert library.write_all(["one\nand more", "two"], key="k").differs is False
    assert library.write_all("quite different", key="k").differs is True
    library.flush()
    assert library.write_all(["one\nand more", "two"], key="k").differs is False


def test_an_entry_copied_into_a_topic_by_hand_has_its_evidence(library: Library) -> None:
    library.write("one")
    library.flush(plan=into("numbers", 1))
    library.write("two")
    line = next(line for line in (library.root / "CURRENT.md").read_text().splitlines() if line.endswith("> two"))
    append_line(library.root / "topics" / "numbers.md", line)
    library.flush()
    assert_conserved(library.root, {1, 2})


def test_lines_joined_by_hand_reach_evidence(library: Library) -> None:
    library.write(["Ana has a dog.", "Ana has a cat."])
    library.flush(plan=into("ana", 1, 2))
    path = library.root / "topics" / "ana.md"
    kept = "".join(line for line in path.read_text().splitlines(True) if "Ana has" not in line)
    path.write_text(kept + "- <seq=1-2> Ana has a dog called Rex and a cat called Mitzi.\n")
    library.check(fix=True)
    assert not library.check()
    path.write_text(kept)
    library.check(fix=True)
    assert "called Rex" in everything(library)
    assert not library.check()


def test_odd_names_and_numbers_end_in_one_line(library: Library) -> None:
    library.write("one")
    with pytest.raises(UnknownTopic):
        library.read("\udcff")
    assert len(library.grep("one", limit=10**30)) == 1
    assert len(library.search("one", 10**30)) == 1


def typed_and_signed(library: Library) -> tuple[Path, str]:
    """A page into which three lines were typed, two of them alike, all signed by a flush; and how it was before."""
    library.write("Maya works at Fjord Labs.")
    library.flush(plan=Plan((Create("work", "Work"), Extend("work", "", (1,)))))
    page = library.root / "topics" / "work.md"
    page.write_text(page.read_text() + "- The boat has berth 12.\n- Tea at four.\n- Tea at four.\n")
    unsigned = page.read_text()
    library.flush()
    assert re.findall(r"<seq=(\d+), source=hand", page.read_text()) == ["2", "3", "4"]
    return page, unsigned


def test_an_editor_that_saves_over_lines_signed_meanwhile_gets_the_same_numbers(library: Library) -> None:
    """It had the page open: nothing is twice in evidence, nothing is retired, and the order stays."""
    page, unsigned = typed_and_signed(library)
    signed = page.read_text()
    evidence = {path: path.read_bytes() for path in (library.root / "evidence").iterdir()}
    page.write_text(unsigned.replace("- Tea at four.\n", "- A new line.\n- Tea at four.\n", 1))
    library.write("Ines sings.")
    library.flush()
    assert "- <seq=2, " in page.read_text()
    assert re.findall(r"<seq=(\d+), source=hand[^>]*> (.*)", page.read_text()) == [
        ("2", "The boat has berth 12."), ("6", "A new line."), ("3", "Tea at four."), ("4", "Tea at four."),
    ]  # fmt: skip
    assert [line for line in signed.splitlines() if "source=hand" in line] == [
        line for line in page.read_text().splitlines() if "source=hand" in line and "new line" not in line
    ]
    now = "".join(path.read_text() for path in (library.root / "evidence").iterdir())
    assert now.startswith("".join(content.decode() for content in evidence.values()))
    assert now.count("The boat has berth 12.") == 1
    assert "event=retire" not in now
    assert {one.problem.code for one in library.check()} <= {"count"}
    page.write_text(unsigned)
    library.flush()  # nothing waits: still it is seen
    assert re.findall(r"<seq=(\d+), source=hand", page.read_text()) == ["2", "3", "4"]


def test_the_same_words_typed_beside_a_signed_line_or_after_its_end_are_a_new_entry(library: Library) -> None:
    page, _ = typed_and_signed(library)
    page.write_text(page.read_text() + "- The boat has berth 12.\n- Tea at four, not five.\n")
    library.flush()
    assert re.findall(r"<seq=(\d+), source=hand", page.read_text()) == ["2", "3", "4", "5", "6"]
    library.forget([5])
    library.write("The boat has berth 14.", supersedes=2)
    library.flush()
    assert library.trace(2).fate == "superseded"
    page.write_text(page.read_text() + "- The boat has berth 12.\n")
    library.flush()
    assert "- <seq=8, source=hand" in page.read_text()
    assert {one.problem.code for one in library.check()} <= {"count"}
