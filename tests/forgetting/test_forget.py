"""What is left of an entry that was forgotten: its number, and when. A document before, and what becomes of it."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.errors import BadInput, UnknownSeq
from infinimem.model import Create, Extend, Join, Retire
from infinimem.plan.paper import Plan

NOW = datetime(2026, 5, 2, 8, tzinfo=UTC)
AT = "2026-05-02T08:00:00Z"


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library.open(tmp_path / "memory", create=True, clock=lambda: NOW)


def holding(library: Library, word: str) -> list[str]:
    """Every file of the library, git's apart, whose bytes or whose path hold a word in whatever case."""
    found = []
    for path in sorted(library.root.rglob("*")):
        name = path.relative_to(library.root).as_posix()
        if ".git" in name.split("/"):
            continue
        if word.casefold() in name.casefold() or (
            path.is_file() and word.casefold().encode() in path.read_bytes().lower()
        ):
            found.append(name)
    return found


def body(library: Library, topic: str) -> str:
    return (library.root / "topics" / f"{topic}.md").read_text().split("---\n", 2)[2]


def flush(library: Library, *steps: object) -> None:
    report = library.flush(plan=Plan(tuple(steps)))  # type: ignore[arg-type]
    assert not report.skipped


def test_its_words_are_nowhere_and_its_number_stays_taken(library: Library) -> None:
    library.write(["Maya works at Fjord Labs.", "The key lies under the Quetzal.", "The boat has berth 12."])
    library.flush()
    library.search("Quetzal")
    report = library.forget([2])
    assert (report.seqs, report.remains, report.exit_code) == ((2,), (), 0)
    assert report.searched == sum(path.is_file() for path in library.root.rglob("*"))
    assert holding(library, "quetzal") == []
    assert f"- <event=forget, seq=2, at={AT}, observed={AT}>" in (library.root / "evidence/2026-05.md").read_text()
    assert library.write("What comes next.") == [4]
    assert not library.check()
    assert not library.search("Quetzal")
    assert (library.trace(2).fate, library.trace(2).at) == ("forgotten", AT)


def test_the_newest_entry_is_forgotten_before_any_flush_and_its_number_is_not_given_again(library: Library) -> None:
    library.write(["Maya works at Fjord Labs.", "The key lies under the Quetzal."])
    library.forget([2])
    assert library.write("next") == [3]
    assert holding(library, "quetzal") == []


def test_a_forgotten_entry_cannot_be_recovered_undone_or_forgotten_twice(library: Library) -> None:
    library.write(["Maya works at Fjord Labs.", "The key lies under the Quetzal."])
    library.flush()
    library.forget([2])
    with pytest.raises(UnknownSeq, match="2 was forgotten at 2026-05-02"):
        library.recover([2])
    with pytest.raises(UnknownSeq, match="2 was forgotten at 2026-05-02"):
        library.forget([2])
    assert library.undo().reason.startswith("there is no flush left to undo")
    with pytest.raises(UnknownSeq, match="no entry has seq 9"):
        library.forget([9])
    assert holding(library, "quetzal") == []


def test_one_member_of_a_joined_line_goes_and_the_others_come_back_verbatim(library: Library) -> None:
    library.write(["Maya reports to Ines.", "On Tuesdays Maya is in Bergen.", "Maya cycles."], source="user")
    text = "Maya reports to Ines, cycles, and is in Bergen on Tuesdays."
    flush(library, Create("maya", "Maya"), Join((1, 2, 3), text), Extend("maya", "", (1, 2, 3)))
    assert body(library, "maya").count("seq=") == 1
    report = library.forget([1])
    assert not report.remains
    assert body(library, "maya") == (
        "# Maya\n\n"
        f"- <seq=2, source=user, observed={AT}> On Tuesdays Maya is in Bergen.\n"
        f"- <seq=3, source=user, observed={AT}> Maya cycles.\n"
    )
    assert holding(library, "Ines") == []
    assert not library.check()


def test_a_member_whose_words_only_the_joined_line_has_is_not_lost(library: Library) -> None:
    (library.root / "topics" / "old.md").write_text(
        "---\nid: old\ntoken_count: 9\n---\n# Old\n\n- <seq=5-6> Two facts.\n"
    )
    with pytest.raises(BadInput, match="the words of 6 stand only in the joined line 5-6"):
        library.forget([5])
    library.forget([5, 6])
    assert holding(library, "facts") == []


def test_a_topic_named_after_it_gets_another_name_everywhere(library: Library) -> None:
    library.write(["Zorblatt has a boat.", "The boat has berth 12."])
    flush(
        library,
        Create("zorblatt", "Zorblatt's boat"),
        Extend("zorblatt", "Zorblatt", (1,)),
        Extend("zorblatt", "Berth", (2,)),
    )
    library.write("See there.", meta={"links": "1:about+zorblatt+2"})
    report = library.forget([1])
    assert report.renamed == (("zorblatt", "boat-berth"),)
    assert holding(library, "zorblatt") == []
    assert "links=boat-berth+2" in (library.root / "CURRENT.md").read_text()
    assert "id: boat-berth" in (library.root / "topics/boat-berth.md").read_text()
    assert not library.check()


def test_a_topic_that_said_nothing_else_is_gone(library: Library) -> None:
    library.write(["Zorblatt has a boat.", "Hilde turns ninety."])
    flush(library, Create("a/zorblatt", "Zorblatt"), Extend("a/zorblatt", "", (1,)),
          Create("hilde", "Hilde"), Extend("hilde", "", (2,)))  # fmt: skip
    assert library.forget([1]).removed == ("topics/a/zorblatt.md",)
    assert holding(library, "zorblatt") == []


def test_what_points_to_it_points_nowhere_else(library: Library) -> None:
    library.write(["Old fact.", "Zorblatt said so."])
    library.write("New fact.", supersedes=[1, 2], meta={"links": "1-2:supports"})
    flush(library, Create("facts", "Facts"), Extend("facts", "", (1, 2, 3)), Retire(1, 3, "superseded"))
    library.forget([2])
    line = f"- <seq=3, supersedes=1, links=1:supports, observed={AT}> New fact."
    assert line in body(library, "facts")
    assert line in (library.root / "evidence/2026-05.md").read_text()
    assert library.trace(1).by == 3


def test_where_nothing_is_meant_nothing_changes(library: Library) -> None:
    library.write(["Ines cycles.", "Maya sings."])
    library.flush()
    library.search("cycles")
    before = {path: path.read_bytes() for path in library.root.rglob("*.md")}
    done = library.forget(where={"source": "nobody"})
    assert (done.exit_code, done.changed, done.erased) == (1, (), ())
    assert {path: path.read_bytes() for path in library.root.rglob("*.md")} == before
    assert library.undo().flushed


def test_by_field_and_by_pattern(library: Library) -> None:
    library.write(["Ines cycles.", "Ines sings."], source="Ines Zorblatt")
    library.write(["Maya sings.", "The code is KX7-113.", "Code kx7-200 is new."])
    library.flush()
    assert library.forget(where={"source": "Ines Zorblatt"}).seqs == (1, 2)
    assert holding(library, "zorblatt") == []
    assert library.forget(pattern=r"KX7-\d+").seqs == (4,)
    assert library.forget(pattern=r"KX7-\d+", ignore_case=True).seqs == (5,)
    assert library.forget(pattern="KX7").exit_code == 1
    assert holding(library, "kx7") == []
    with pytest.raises(BadInput):
        library.forget()
    with pytest.raises(BadInput):
        library.forget([3], pattern="Maya")


def test_copies_are_named_and_forgotten_only_if_asked(library: Library) -> None:
    library.write("The code of the garden gate is Zorblatt.")
    library.write("the code of the garden gate is Zorblatt!")
    library.write("Ines: 'The code of the garden gate is Zorblatt.' That was in May.")
    library.write("A gate code exists.", meta={"links": "1:from"})
    library.write("Something else.")
    report = library.forget([1])
    assert [(copy.seq, copy.why) for copy in report.copies] == [
        (2, "the same words"), (3, "quotes it"), (4, "taken from it"),
    ]  # fmt: skip
    lines = (library.root / "CURRENT.md").read_text().split("\n")
    assert all(f"seq={copy.seq}," in lines[copy.line - 1] for copy in report.copies)
    assert library.forget([2], copies=True).seqs == (2, 3)
    assert holding(library, "zorblatt") == []


def test_what_a_person_wrote_is_listed_by_line_and_left_alone(library: Library) -> None:
    library.write(["The code of the garden gate is Zorblatt.", "Hilde turns ninety."])
    flush(library, Create("things", "Things"), Extend("things", "", (1, 2)))
    topic = library.root / "topics/things.md"
    topic.write_text(topic.read_text() + "\nMy own remark on Zorblatt.\n")
    guest = library.root / "topics/guest.md"
    guest.write_text("# A guest\n\nOnce more: the code of the\ngarden gate is zorblatt.\n")
    report = library.forget([1])
    remark = topic.read_text().split("\n").index("My own remark on Zorblatt.") + 1
    assert [(one.path, one.line) for one in report.remains] == [
        ("topics/guest.md", 3), ("topics/guest.md", 4), ("topics/things.md", remark),
    ]  # fmt: skip
    assert report.exit_code == 5
    assert "zorblatt" in guest.read_text()


def test_a_pinned_summary_is_its_owner_s_and_said(library: Library) -> None:
    library.write(["Zorblatt has a boat.", "Hilde turns ninety."])
    flush(library, Create("things", "Things"), Extend("things", "", (1, 2)))
    topic = library.root / "topics/things.md"
    text = topic.read_text().replace("aux: {}", "aux: {pinned: true}")
    lines = ["summary: Of Zorblatt and others." if line.startswith("summary:") else line for line in text.split("\n")]
    topic.write_text("\n".join(lines))
    report = library.forget([1])
    assert [(one.path, one.line) for one in report.remains] == [("topics/things.md", 3)]


def test_logs_proposals_plans_and_backups(library: Library) -> None:
    root = library.root
    library.write(["The code is Zorblatt.", "Hilde turns ninety.", "Ünal mag Zörblatt."])
    library.flush()
    state = root / ".infinimem"
    usage = [{"question": "Who is Zorblatt?"}, {"question": "Who is Hilde?"}, {"question": "Zörblatt?"}]
    (state / "usage.jsonl").write_text("".join(json.dumps(row) + "\n" for row in usage))
    (state / "proposals.yaml").write_text(
        "- at: x\n  step: {join: {seqs: 1-2, text: Zorblatt is the code}}\n- at: x\n  step: {retire: {seq: 2}}\n"
    )
    (state / "cache").mkdir()
    (state / "cache" / "odd.bin").write_bytes(b"\x00zorblatt\x00")
    (state / "kept").mkdir()
    (state / "kept" / "1-topics-notes.md").write_text(
        "- <seq=1> The code is Zorblatt.\n- <seq=2> Hilde turns ninety.\n"
    )
    (root / "CURRENT.md~").write_text("- <seq=1> The code is Zorblatt.\n")
    (root / "topics" / ".notes.md.swp").write_bytes(b"\x00\x01 The code is Zorblatt. \x00")
    (root / "topics" / "notes.md.orig").write_text("Hilde\n")
    (root / "plan.yaml").write_text("plan: 1\nsteps:\n- join: {seqs: 1-2, text: Zorblatt and Hilde}\n")
    report = library.forget([1, 3])
    assert not report.remains
    assert holding(library, "zorblatt") == []
    assert holding(library, "z\\u00f6rblatt") == []
    assert (state / "usage.jsonl").read_text() == json.dumps(usage[1]) + "\n"
    assert "retire" in (state / "proposals.yaml").read_text()
    assert (state / "kept" / "1-topics-notes.md").read_text() == "- <seq=2> Hilde turns ninety.\n"
    assert (root / "topics" / "notes.md.orig").exists()
    assert not (root / "plan.yaml").exists()


def test_revisions_retired_entries_and_duplicates_in_evidence(library: Library) -> None:
    library.write(["The code is Zorblatt.", "Hilde turns ninety."])
    flush(library, Create("gate", "Gate"), Extend("gate", "", (1, 2)))
    topic = library.root / "topics/gate.md"
    topic.write_text(topic.read_text().replace("The code is Zorblatt.", "The code was Zorblatty."))
    library.check(fix=True)
    library.write("The code is 4711.", supersedes=[1])
    flush(library, Extend("gate", "", (3,)), Retire(1, 3, "superseded"))
    assert "rev=2" in (library.root / "evidence/2026-05.md").read_text()
    library.forget([1])
    assert holding(library, "zorblatt") == []
    assert not library.check()


def test_git_s_history_is_told_and_can_be_rewritten(library: Library) -> None:
    def git(*words: str) -> str:
        names = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(library.root), *names, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    library.write(["The code is Zorblatt.", "Hilde turns ninety."])
    git("add", "-A")
    git("commit", "-qm", "before")
    report = library.forget([1])
    assert (report.history.versions, report.history.paths) == (1, ("CURRENT.md",))
    assert any("filter-repo" in command for command in report.history.commands)
    assert "zorblatt" not in " ".join(report.history.commands).lower()
    git("add", "-A")
    git("commit", "-q", "--amend", "-m", "after")
    git("reflog", "expire", "--expire=now", "--all")
    git("gc", "-q", "--prune=now")
    assert library.forget([2]).history.versions == 1


def test_a_dry_run_changes_nothing(library: Library) -> None:
    library.write(["The code is Zorblatt.", "Hilde turns ninety."])
    library.flush()
    before = {path: path.read_bytes() for path in library.root.rglob("*") if path.is_file()}
    report = library.forget([1], dry_run=True)
    assert report.texts == ((1, "The code is Zorblatt."),)
    assert report.changed
    assert {path: path.read_bytes() for path in library.root.rglob("*") if path.is_file()} == before


def test_signatures_that_a_formatter_wrapped_or_escaped(library: Library) -> None:
    library.write("Zorblatt has a boat.")
    library.write("The boat has berth 12, as Ines said.", supersedes=[], meta={"links": "1:about+2"}, source="Ines")
    flush(library, Create("boat", "Boat"), Extend("boat", "", (1, 2)))
    for path in (library.root / "topics/boat.md", library.root / "evidence/2026-05.md"):
        text = path.read_text()
        text = text.replace("- <seq=2, source=Ines, ", "- \\<seq=2, source=Ines,\n  ")
        path.write_text(text.replace("- <seq=1, ", "- \\<seq=1,\n  "))
    report = library.forget([1])
    assert not report.remains
    assert holding(library, "zorblatt") == []
    assert "links=2, " in body(library, "boat")
    assert [hit.text for hit in library.search("berth", 3)] == ["The boat has berth 12, as Ines said."]
    with pytest.raises(UnknownSeq, match="was forgotten"):
        library.recover([1])


def test_earlier_summaries_of_its_topic_and_the_questions_that_it_answered(library: Library) -> None:
    library.write(["Zorblatt has a boat.", "Hilde turns ninety."])
    flush(library, Create("a", "A"), Extend("a", "", (1,)), Create("b", "B"), Extend("b", "", (2,)))
    state = library.root / ".infinimem"
    rows = [
        {"at": "", "topic": "a", "summary": "Who owns the vessel.", "op": "found"},
        {"at": "", "topic": "b", "summary": "A birthday.", "op": "found"},
    ]
    (state / "summaries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recalls = [{"asked": "x", "shown": [1, 2], "cited": []}, {"asked": "y", "shown": [2], "cited": [2]}]
    (state / "recalls.jsonl").write_text("".join(json.dumps(row) + "\n" for row in recalls))
    assert not library.forget([1]).remains
    assert [json.loads(line)["topic"] for line in (state / "summaries.jsonl").read_text().splitlines()] == ["b"]
    assert [json.loads(line)["asked"] for line in (state / "recalls.jsonl").read_text().splitlines()] == ["y"]


def test_a_page_behind_a_symbolic_link_is_named(library: Library, tmp_path: Path) -> None:
    library.write(["Zorblatt has a boat.", "Hilde turns ninety."])
    flush(library, Create("a", "A"), Extend("a", "", (1, 2)))
    page = library.root / "topics" / "a.md"
    page.rename(tmp_path / "a.md")
    page.symlink_to(tmp_path / "a.md")
    (library.root / "topics" / "loop").symlink_to(library.root)
    before = page.read_bytes()
    assert [(one.path, one.what) for one in library.forget([1]).remains] == [("topics/a.md", "what it links to")]
    assert page.read_bytes() == before


def test_a_folder_behind_a_symbolic_link_is_searched_and_named(library: Library, tmp_path: Path) -> None:
    """Whoever looks for it here finds it there; what lies there is nobody's of ours, and stays as it is."""
    library.write(["Zorblatt has a boat.", "Hilde turns ninety."])
    (tmp_path / "attic" / "deep").mkdir(parents=True)
    (tmp_path / "attic" / "deep" / "old.md").write_text("# Old\n\nZorblatt has a boat.\n")
    (tmp_path / "attic" / "other.md").write_text("- <seq=1> The entry of another library.\n")
    (tmp_path / "attic" / "scan.png").write_bytes(b"\x89PNG\x00")
    (tmp_path / "attic" / "loop").symlink_to(tmp_path / "attic")
    (library.root / "attic").symlink_to(tmp_path / "attic")
    (library.root / "within").symlink_to(library.root / "topics")
    report = library.forget([1])
    assert [(one.path, one.what) for one in report.remains] == [("attic/deep/old.md", "what it links to")]
    assert (report.unread, report.media) == ((), ("attic/scan.png",))
    assert (tmp_path / "attic" / "deep" / "old.md").read_text().endswith("Zorblatt has a boat.\n")


def test_where_a_file_is_no_text_it_is_done_in_part(library: Library) -> None:
    """The search does not see what is inside: the exit code says that somebody has to look."""
    library.write(["Zorblatt has a boat.", "Hilde turns ninety."])
    (library.root / "old.md.gz").write_bytes(gzip.compress(b"Zorblatt has a boat."))
    report = library.forget([1])
    assert (report.remains, report.unread, report.exit_code) == ((), ("old.md.gz",), 5)
    (library.root / "old.md.gz").unlink()
    (library.root / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0\0\x10JFIF")
    report = library.forget([2])
    assert (report.unread, report.media, report.exit_code) == ((), ("photo.jpg",), 0), "no picture makes it fail"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_cannot_be_read_is_named(library: Library) -> None:
    library.write("Zorblatt has a boat.")
    (library.root / "mine").mkdir(mode=0o000)
    (library.root / "note.txt").write_text("Zorblatt has a boat.")
    (library.root / "note.txt").chmod(0o000)
    report = library.forget([1])
    assert (report.remains, sorted(report.unread), report.exit_code) == ((), ["mine/", "note.txt"], 5)
    (library.root / "mine").chmod(0o700)
