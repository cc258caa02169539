"""How a library got here and what changed since: the same answers with git and without."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from infinimem import Library
from infinimem.errors import BadInput, UnknownSeq, UnknownTopic
from infinimem.git.chronicle import Gone, Row
from infinimem.git.compare import Difference
from infinimem.git.setup import set_up
from tests.git.world import NOW, git, infinimem, plan

HEADER = "---\nid: {id}\nsummary: {summary}\ntoken_count: 9\naux: {{}}\n---\n# {title}\n\n"


class Clock:
    """An hour passes whenever somebody asks for it."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def pass_days(self, days: int) -> None:
        self.now += timedelta(days=days)


def commit(root: Path, clock: Clock, subject: str) -> str:
    """Commit everything at the time of the clock; gives the short id."""
    stamp = clock().isoformat()
    git(root, "add", ".")
    git(root, "-c", 'alias.at=!f() { GIT_COMMITTER_DATE=$1 git commit -qm "$2"; }; f', "at", stamp, subject)
    return git(root, "rev-parse", "--short", "HEAD")


def grown(tmp_path: Path, *, with_git: bool) -> tuple[Library, Clock, list[str]]:
    """Maya's library: two flushes a month apart, and a topic split off in between; commits where git is."""
    clock = Clock()
    library = Library.open(tmp_path / "memory", create=True, clock=clock)
    ids = []
    if with_git:
        set_up(library.root)
    library.write("Maya works at Fjord Labs.", time="2025-09-01")
    library.write(["The boat Terna has berth 12.", "The shed needs salt."])
    library.flush(plan=plan(tmp_path, "create: {topic: maya, title: Maya}",
                            "extend: {topic: maya, heading: All, seqs: 1-3}"))  # fmt: skip
    if with_git:
        ids.append(commit(library.root, clock, "May"))
    clock.pass_days(10)
    library.write("The stand-up is at nine.")
    clock.pass_days(20)
    library.write("Maya joined Nordlys as a staff engineer.", supersedes=[1])
    library.flush(plan=plan(tmp_path, "extend: {topic: maya, heading: All, seqs: 5}",
                            "retire: {seq: 1, by: 5, why: superseded}", "create: {topic: team, title: Team}",
                            "extend: {topic: team, heading: All, seqs: 4}"))  # fmt: skip
    if with_git:
        ids.append(commit(library.root, clock, "June"))
    return library, clock, ids


def told(differences: Sequence[Difference]) -> list[tuple[Any, ...]]:
    """The differences but for summaries: kind, topic, seqs, and what else is said."""
    return [
        (one.kind, one.topic, one.seqs, *(part for part in (one.source, one.by, one.why, one.before) if part))
        for one in differences
        if one.kind != "summary"
    ]


# History


def test_history_has_one_shape_with_git_and_without(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    plain, _, _ = grown(tmp_path / "a", with_git=False)
    kept, _, ids = grown(tmp_path / "b", with_git=True)
    by_evidence, by_git = plain.history(), kept.history()
    assert [row.what for row in by_git] == ["June", "May"]
    assert [row.commit for row in by_git] == [ids[1], ids[0]]
    assert {row.author for row in by_git} == {"Maya Lindqvist"}
    assert [row.what for row in by_evidence] == ["2 entries flushed, 1 superseded", "3 entries flushed"]
    assert (
        [row.at for row in by_evidence]
        == [row.at for row in by_git]
        == ["2026-06-01T08:00:00Z", "2026-05-02T08:00:00Z"]
    )
    for rows in (by_evidence, by_git):
        assert [set(row.topics) for row in rows] == [{"maya", "team"}, {"maya"}]
        assert [row.retired for row in rows] == [(Gone(1, 5, "superseded"),), ()]
        assert set(rows[0].seqs) >= {4, 5}
        assert rows[1].seqs == (1, 2, 3)


def test_what_was_written_and_flushed_within_a_second_is_told_newest_first(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: NOW + timedelta(microseconds=500_000))
    library.write("Maya works at Fjord Labs.")
    library.flush(planner="lexical")
    assert [row.what for row in library.history(seq=1)] == ["flushed", "written"]


@pytest.mark.parametrize("with_git", [True, False])
def test_a_topic_has_its_own_history(tmp_path: Path, with_git: bool) -> None:
    library, _, _ = grown(tmp_path, with_git=with_git)
    assert len(library.history("maya")) == 2
    [row] = library.history("team")
    assert row.at == "2026-06-01T08:00:00Z"
    assert row.seqs == (4,)
    assert len(library.history("maya", most=1)) == 1


def test_a_topic_is_followed_through_its_renames(tmp_path: Path) -> None:
    library, clock, _ = grown(tmp_path, with_git=True)
    git(library.root, "mv", "topics/maya.md", "topics/work ü.md")
    commit(library.root, clock, "renamed")
    assert [row.what for row in library.history("work ü")] == ["renamed", "June", "May"]
    assert library.history("work ü")[0].topics == ("maya", "work ü")


def test_a_topic_is_followed_in_a_folder_of_a_repository_too(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    library, clock, _ = grown(tmp_path, with_git=True)
    (library.root / "topics" / "deep").mkdir()
    git(library.root, "mv", "topics/maya.md", "topics/deep/maya.md")
    commit(library.root, clock, "renamed")
    rows = library.history("deep/maya")
    assert [(row.what, row.topics) for row in rows] == [
        ("renamed", ("maya", "deep/maya")), ("June", ("maya",)), ("May", ("maya",))]  # fmt: skip


@pytest.mark.parametrize("with_git", [True, False])
def test_an_entry_has_a_life(tmp_path: Path, with_git: bool) -> None:
    library, _, ids = grown(tmp_path, with_git=with_git)
    rows = library.history(seq=1)
    evidence = [(row.at[:10], row.what) for row in rows if not row.commit]
    assert evidence == [("2026-06-01", "superseded by 5"), ("2026-05-02", "flushed"), ("2026-05-02", "written")]
    assert [row.commit for row in rows if row.commit] == list(reversed(ids))
    topic = library.root / "topics" / "maya.md"
    topic.write_text(topic.read_text().replace("berth 12", "berth 31"))
    library.check(fix=True)
    assert next(row.what for row in library.history(seq=2) if not row.commit) == "its words changed (revision 2)"
    with pytest.raises(UnknownSeq):
        library.history(seq=99)


def test_an_entry_inside_a_joined_line_is_found_in_the_commits(tmp_path: Path) -> None:
    library, clock, _ = grown(tmp_path, with_git=True)
    library.write(["Ines cycles to work.", "Ines cycles on Tuesdays.", "Ines cycles far."])
    library.flush(plan=plan(tmp_path, "join: {seqs: 6-8, text: 'Ines cycles to work on Tuesdays, far.', conf: 1}",
                            "extend: {topic: team, heading: All, seqs: 6-8}"))  # fmt: skip
    joined = commit(library.root, clock, "July")
    assert joined in [row.commit for row in library.history(seq=7)]


@pytest.mark.parametrize("with_git", [True, False])
def test_an_undo_is_history_too(tmp_path: Path, with_git: bool) -> None:
    library, clock, _ = grown(tmp_path, with_git=with_git)
    clock.pass_days(1)
    library.undo()
    if with_git:
        assert library.history()[0] == Row("", "not committed yet", ("maya", "team"), (1, 4, 5), ())
        commit(library.root, clock, "back")
    newest = library.history()[0]
    assert newest.at == "2026-06-02T08:00:00Z"
    assert {4, 5} <= set(newest.seqs)
    if not with_git:
        assert newest.what == "undone, 2 entries back in CURRENT, 1 entry restored"


def test_a_library_that_git_does_not_know_yet_is_told_by_evidence(tmp_path: Path) -> None:
    library, _, _ = grown(tmp_path, with_git=False)
    git(tmp_path, "init", "-q")
    assert [row.commit for row in library.history()] == ["", ""]
    git(tmp_path, "add", ".")
    assert [row.commit for row in library.history()] == ["", ""]
    assert library.diff().label == "the first commit, which is still to come"


def test_a_library_in_a_folder_has_only_its_own_history(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "code.py").write_text("print(1)\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "code")
    library, _, ids = grown(tmp_path, with_git=True)
    assert not (library.root / ".git").exists()
    (tmp_path / "code.py").write_text("print(2)\n")
    assert [row.commit for row in library.history()] == list(reversed(ids))
    assert library.diff().differences == ()
    assert told(library.diff(ids[0]).differences)


def test_the_users_own_diff_settings_change_nothing(tmp_path: Path) -> None:
    library, _, _ = grown(tmp_path, with_git=True)
    rows = library.history()
    for key in ("diff.noprefix", "diff.mnemonicPrefix", "log.showSignature", "core.quotePath"):
        git(library.root, "config", key, "true")
    git(library.root, "config", "diff.external", "false")
    git(library.root, "config", "color.ui", "always")
    assert library.history() == rows


# Diff


def test_diff_tells_what_changed_since_the_last_commit(tmp_path: Path) -> None:
    library, _, _ = grown(tmp_path, with_git=True)
    assert library.diff().differences == ()
    library.write("The window faces east.")
    topic = library.root / "topics" / "maya.md"
    topic.write_text(topic.read_text().replace("berth 12", "berth 31") + "\nA thought of mine.\n- typed by hand\n")
    found = library.diff()
    assert found.commit == git(library.root, "rev-parse", "HEAD")
    assert told(found.differences) == [
        ("changed", "maya", (2,), "The boat Terna has berth 12."),
        ("added", "maya", ()),
        ("prose", "maya", ()),
        ("added", "CURRENT", (6,)),
    ]
    typed = next(one for one in found.differences if one.kind == "added" and one.topic == "maya")
    assert topic.read_text().splitlines()[typed.line - 1] == "- typed by hand"
    assert told(library.diff(topic="CURRENT").differences) == [("added", "CURRENT", (6,))]


def test_diff_since_a_revision_or_a_date_tells_what_was_replaced_and_by_what(tmp_path: Path) -> None:
    library, _, ids = grown(tmp_path, with_git=True)
    expected = [
        ("added", "maya", (5,)),
        ("retired", "maya", (1,), 5, "superseded"),
        ("created", "team", ()),
        ("added", "team", (4,)),
    ]
    for since in (ids[0], "HEAD~1", "2026-05-03", "2026-05-03T10:00", f"{ids[0]}..{ids[1]}", f"{ids[0]}.."):
        found = library.diff(since)
        assert told(found.differences) == expected, since
        assert "May" in found.label
    assert told(library.diff("2026-05").differences)[:2] == [("created", "maya", ()), ("added", "maya", (2,))]
    assert library.diff("2026-07").differences == ()
    # a range tells what was known then, also after it was taken back
    library.undo()
    assert told(library.diff(f"{ids[0]}..{ids[1]}").differences) == expected
    with pytest.raises(BadInput, match="no revision 'nonsense'"):
        library.diff("nonsense")
    with pytest.raises(BadInput, match="no revision '--output=x'"):
        library.diff("--output=x")


def test_without_git_the_last_flush_and_evidence_tell_the_same(tmp_path: Path) -> None:
    library, _, _ = grown(tmp_path, with_git=False)
    expected = [
        ("added", "maya", (5,)),
        ("retired", "maya", (1,), 5, "superseded"),
        ("created", "team", ()),
        ("added", "team", (4,)),
    ]
    found = library.diff()
    assert "before the flush at 2026-06-01T08:00:00Z" in found.label
    moved = [("moved" if kind == "added" else kind, *rest) for kind, *rest in expected]
    assert [one[:3] for one in told(found.differences)] == [one[:3] for one in moved]
    assert "+- <seq=5," in found.text
    by_date = library.diff("2026-05-03")
    assert told(by_date.differences) == [one for one in expected if one[0] != "created"]
    assert by_date.text == ""
    with pytest.raises(BadInput, match="without git"):
        library.diff("HEAD~1")


def test_evidence_knows_what_was_written_before_a_date_and_flushed_after(tmp_path: Path) -> None:
    library, _, _ = grown(tmp_path, with_git=False)
    assert told(library.diff("2026-05-20").differences) == [
        ("added", "maya", (5,)),
        ("retired", "maya", (1,), 5, "superseded"),
        ("moved", "team", (4,), "CURRENT"),
    ]


def test_a_topic_that_was_renamed_is_told_once(tmp_path: Path) -> None:
    library, _, _ = grown(tmp_path, with_git=True)
    (library.root / "topics" / "maya.md").rename(library.root / "topics" / "work.md")
    assert told(library.diff().differences) == [("renamed", "work", (), "maya")]


def test_entries_that_moved_between_topics_say_where_they_come_from(tmp_path: Path) -> None:
    library, _, _ = grown(tmp_path, with_git=True)
    library.merge(["maya", "team"])
    assert told(library.diff().differences) == [
        ("moved", "maya", (4,), "team"),
        ("removed", "team", (), "merged into maya"),
    ]


@pytest.mark.parametrize("with_git", [True, False])
def test_a_topic_that_is_gone_still_has_a_past(tmp_path: Path, with_git: bool) -> None:
    library, clock, _ = grown(tmp_path, with_git=with_git)
    (library.root / "topics" / "maya.md").unlink()
    assert library.diff(topic="maya").differences[0].kind in ("removed", "retired")
    with pytest.raises(UnknownTopic):
        library.diff(topic="never")
    if with_git:
        commit(library.root, clock, "no maya")
        assert [row.what for row in library.history("maya")] == ["no maya", "June", "May"]
    with pytest.raises(UnknownTopic):
        library.history("never")


def test_a_joined_line_and_a_changed_signature_are_named(tmp_path: Path) -> None:
    library, _, _ = grown(tmp_path, with_git=True)
    topic = library.root / "topics" / "maya.md"
    text = topic.read_text()
    text = re.sub(r"- <seq=3,[^>]*> .*\n", "", text)
    text = re.sub(r"<seq=2, [^>]*> (.*)\n", r"<seq=2-3> \1 The shed needs salt.\n", text)
    topic.write_text(text.replace("seq=5, ", "seq=5, time=2026-06, "))
    found = told(library.diff().differences)
    assert ("joined", "maya", (2, 3), "The boat Terna has berth 12.\nThe shed needs salt.") in found
    assert ("marked", "maya", (5,)) in found


def test_a_deleted_line_is_gone_until_evidence_knows(tmp_path: Path) -> None:
    library, _, _ = grown(tmp_path, with_git=True)
    topic = library.root / "topics" / "maya.md"
    topic.write_text("".join(line for line in topic.read_text().splitlines(True) if "berth" not in line))
    assert ("retired", "maya", (2,), "gone") in told(library.diff().differences)
    library.check(fix=True)
    assert ("retired", "maya", (2,), "deleted") in told(library.diff().differences)


def test_as_of_works_the_same_with_and_without_git(tmp_path: Path) -> None:
    library, _, _ = grown(tmp_path, with_git=True)
    done = infinimem("ask", "Where does Maya work?", "--as-of", "2026-02", "-k", "1", "--json", folder=library.root)
    assert [piece["seqs"] for piece in json.loads(done.stdout)["evidence"]] == [[1]]


# The commands


def test_the_commands_print_tables_that_programs_can_read(tmp_path: Path) -> None:
    library, _, ids = grown(tmp_path, with_git=True)
    done = infinimem("history", folder=library.root)
    assert [line.split("\t")[:3] for line in done.stdout.splitlines()] == [
        ["2026-06-01 08:00", ids[1], "June"], ["2026-05-02 08:00", ids[0], "May"]]  # fmt: skip
    entry = infinimem("history", "1", folder=library.root)
    assert "\tsuperseded by 5\t" in entry.stdout
    assert "no entry has seq 99" in infinimem("history", "99", folder=library.root, code=2).stderr
    changed = infinimem("diff", "HEAD~1", folder=library.root)
    assert "  + 5  Maya joined Nordlys as a staff engineer.\n" in changed.stdout
    assert "  - 1  Maya works at Fjord Labs.  (superseded by 5)\n" in changed.stdout
    assert changed.stderr.startswith(f"6 changes since 2026-05-02 {ids[0]} May")
    assert infinimem("diff", "team", folder=library.root).stdout == ""
    assert "\x1b" not in done.stdout + changed.stdout
    text = infinimem("diff", "HEAD~1", "--text", folder=library.root)
    assert text.stdout.startswith("--- a/CURRENT.md") or text.stdout.startswith("--- a/topics/maya.md")
    infinimem("diff", "nonsense", folder=library.root, code=2)


def test_a_topic_with_the_name_of_a_number_is_a_topic(tmp_path: Path) -> None:
    library, clock, ids = grown(tmp_path, with_git=True)
    (library.root / "topics" / "1.md").write_text(HEADER.format(id=1, summary="x", title="One"))
    commit(library.root, clock, "one")
    assert [row["what"] for row in json.loads(infinimem("history", "1", "--json", folder=library.root).stdout)] == [
        "one"
    ]
    assert ids[0] in infinimem("history", "#1", folder=library.root).stdout
