"""A real watch over real files: what it says of saves, what it signs, what it survives, how it ends."""

from __future__ import annotations

import configparser
import json
import plistlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infinimem import Library
from infinimem.store.layout import FLUSH_LOCK
from infinimem.store.lock import exclusive
from tests.watch.watching import LONG, SAVES, Watching, replacing, truncating, watching

NOW = datetime(2026, 5, 2, 8, tzinfo=UTC)
PLAN = """plan: 1
steps:
- create: {topic: maya-work, title: Maya's work}
- extend: {topic: maya-work, heading: Employers, seqs: 1-2}
- create: {topic: boats/terna, title: The boat}
- extend: {topic: boats/terna, heading: Berth, seqs: 3}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A library of two topics, one of them in a folder, and an empty CURRENT."""
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: NOW)
    library.write(["Maya works at Fjord Labs.", "She reports to Ines.", "The boat Terna has berth 12."])
    (tmp_path / "plan.yaml").write_text(PLAN)
    library.flush(plan=tmp_path / "plan.yaml")
    return library.root


def topic(root: Path, name: str = "maya-work") -> Path:
    return root / "topics" / f"{name}.md"


# What was just saved


def test_a_save_of_any_editor_is_checked_by_line_and_signed(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: NOW)
    ways = {save.__name__: save for save in SAVES}
    library.write([f"Kept as {name} keeps it." for name in ways])
    steps = [
        f"- create: {{topic: {name}, title: {name}}}\n- extend: {{topic: {name}, heading: Notes, seqs: {seq}}}\n"
        for seq, name in enumerate(ways, 1)
    ]
    (tmp_path / "plan.yaml").write_text("plan: 1\nsteps:\n" + "".join(steps))
    library.flush(plan=tmp_path / "plan.yaml")
    typed = {
        name: topic(library.root, name).read_bytes() + b"\n- Typed by hand.\n- <seq=oops> Half a signature.\n"
        for name in ways
    }
    with watching(library.root) as watch:
        for name, save in ways.items():
            save(topic(library.root, name), typed[name])
        for _ in ways:
            watch.until("signed")
        assert watch.stop() == 0
    wrong = {(one["path"], one["line"], one["code"]) for one in watch.problems()}
    assert wrong == {(f"topics/{name}.md", text.count(b"\n"), "near-miss") for name, text in typed.items()}
    assert all("write it as" in one["message"] and not one["blocking"] for one in watch.problems())
    signed = {one["path"]: one["seqs"] for one in watch.seen if one["event"] == "signed"}
    assert sorted(signed.values()) == [[seq] for seq in range(len(ways) + 1, 2 * len(ways) + 1)]
    evidence = "".join(file.read_text() for file in (library.root / "evidence").glob("*.md"))
    for name, text in typed.items():
        saved = topic(library.root, name).read_bytes()
        [line] = [line.decode() for line in saved.splitlines() if b"Typed by hand." in line]
        [seq] = signed[f"topics/{name}.md"]
        assert line.startswith(f"- <seq={seq}, source=hand, observed=20")
        ending = b"\r\n" if name == "by_crlf" else b"\n"
        assert saved.replace(line.encode(), b"- Typed by hand.") == text.replace(b"\n", ending)
        assert f"{line}\n" in evidence
        assert library.index().locate(seq) is not None


def test_a_bullet_typed_into_current_is_signed_and_what_is_no_bullet_of_ours_stays_as_it_is(root: Path) -> None:
    guest = root / "topics" / "reading-list.md"
    own = b"- a guest's bullet\n"
    file = topic(root)
    others = b"\n- [ ] a task\n\n> - quoted\n\n```\n- fenced\n```\n\n1. counted\n"
    with watching(root) as watch:
        truncating(guest, own)
        replacing(file, file.read_bytes() + others)
        (root / "CURRENT.md").write_text((root / "CURRENT.md").read_text() + "- The pantry needs salt.\n  And oil.\n")
        assert watch.until("signed", "CURRENT.md")["seqs"] == [4]
        watch.quiet_until_saved(root / "topics" / "later.md")
        assert Library.open(root).write("Another one.") == [5]
        assert watch.stop() == 0
    assert "- <seq=4, source=hand, observed=" in (root / "CURRENT.md").read_text()
    assert guest.read_bytes() == own
    assert others in file.read_bytes()
    assert [one["path"] for one in watch.seen if one["event"] == "signed"] == ["CURRENT.md"]
    assert not [finding for finding in Library.open(root).check() if finding.problem.code in ("lost", "unsigned")]


def test_what_is_wrong_names_file_and_line(root: Path) -> None:
    file = topic(root)
    text = file.read_text()
    with watching(root) as watch:
        file.write_text(text + "<<<<<<< ours\n- one\n=======\n- two\n>>>>>>> theirs\n")
        problem = watch.until("problem", "topics/maya-work.md")
        assert (problem["line"], problem["blocking"]) == (text.count("\n") + 1, True)
        file.write_text("---\nid: maya-work\nsummary: [\n---\n# Maya\n")
        assert watch.until("problem", "topics/maya-work.md")["blocking"]
        file.write_text(text)
        watch.until("saved", "topics/maya-work.md")
        (root / "topics" / "copy.md").write_text(text.replace("id: maya-work", "id: copy"))
        copied = watch.until("problem", "topics/copy.md")
        assert copied["code"] == "doubled"
        assert "topics/maya-work.md:" in copied["message"]
        (root / "infinimem.yaml").write_text("format: 1\nflush.max_age: soon\n")
        setting = watch.until("problem", "infinimem.yaml")
        assert setting["line"] == 2
        assert watch.stop() == 0


def test_swap_backup_and_hidden_files_are_not_even_looked_at(root: Path) -> None:
    with watching(root) as watch:
        for name in (".maya-work.md.swp", "maya-work.md~", "#maya-work.md#", "4913", "maya-work.md.tmp", "x.bak"):
            (root / "topics" / name).write_text("- <seq=oops> half a file")
        for folder in (".obsidian", ".git"):
            (root / folder).mkdir()
            (root / folder / "workspace.md").write_text("- <seq=oops> not ours")
            (root / "topics" / folder).mkdir()
            (root / "topics" / folder / "workspace.md").write_text("- <seq=oops> not ours")
        assert watch.quiet_until_saved(root / "topics" / "later.md") == []
        assert watch.stop() == 0


def test_signing_waits_while_an_editor_says_that_it_has_the_file_open(root: Path) -> None:
    file = topic(root)
    swap = file.with_name(".maya-work.md.swp")
    with watching(root) as watch:
        swap.write_bytes(b"b0VIM 9.0")
        file.write_bytes(file.read_bytes() + b"- Typed in vim.\n")
        assert watch.until("waiting", "topics/maya-work.md")["message"]
        assert b"- Typed in vim." in file.read_bytes()
        swap.unlink()
        assert watch.until("signed", "topics/maya-work.md")["seqs"] == [4]
        assert watch.stop() == 0


def test_new_folders_renamed_files_and_removed_ones_are_seen(root: Path) -> None:
    with watching(root) as watch:
        deep = root / "topics" / "home" / "garden"
        deep.mkdir(parents=True)
        (deep / "herbs.md").write_text("- <seq=oops> thyme\n")
        assert watch.until("problem", "topics/home/garden/herbs.md")["line"] == 1
        topic(root).rename(deep / "maya.md")
        assert watch.until("moved")["path"] == "topics/home/garden/maya.md"
        shutil.rmtree(root / "topics" / "boats")
        watch.until("gone", "topics/boats/terna.md")
        shutil.rmtree(root / "topics")
        watch.until("gone", "topics/home/garden/herbs.md")
        (root / "topics").mkdir()
        (root / "topics" / "anew.md").write_text("- <seq=oops> basil\n")
        watch.until("problem", "topics/anew.md")
        assert watch.stop() == 0


def test_two_thousand_files_at_once(root: Path) -> None:
    folder = root / "topics" / "many"
    folder.mkdir()
    with watching(root) as watch:
        for number in range(2000):
            (folder / f"note-{number}.md").write_text(f"# Note {number}\n\nKept in drawer {number}.\n")
        (folder / "note-77.md").write_text("- <seq=oops> Kept in drawer 77.\n")
        watch.until("problem", "topics/many/note-77.md")
        while sum(one["count"] or 1 for one in watch.seen if one["event"] == "saved") < 2000:
            watch.until("saved")
        assert len(watch.seen) < 300
        assert watch.stop() == 0
    assert Library.open(root).search("drawer 1234", k=1)[0].topic == "many/note-1234"


# Flushing


def test_it_flushes_when_current_is_due_by_size(root: Path) -> None:
    (root / "infinimem.yaml").write_text("format: 1\nflush.max_tokens: 200\n")
    with watching(root) as watch:
        words = "the keeper of the lighthouse counted {} ships and {} gulls before the fog came in".format
        Library.open(root).write([words(number, number * 7) for number in range(20)])
        flushed = watch.until("flushed")
        assert flushed["seqs"] == list(range(4, 24))
        assert watch.stop() == 0
    assert not Library.open(root).status().buffered
    assert not watch.problems()


def test_it_flushes_when_current_is_due_by_age_and_takes_new_settings(root: Path) -> None:
    with watching(root) as watch:
        Library.open(root).write("Ines collects stamps from Bergen.")
        watch.until("saved", "CURRENT.md")
        (root / "infinimem.yaml").write_text("format: 1\nflush.max_age: 1s\n")
        assert watch.until("flushed")["seqs"] == [4]
        assert watch.stop() == 0
    assert not Library.open(root).status().buffered


def test_a_flush_that_cannot_be_is_said_and_not_tried_over_and_over(root: Path) -> None:
    (root / "infinimem.yaml").write_text("format: 1\nflush.max_age: 1s\n")
    evidence = next((root / "evidence").glob("*.md"))
    kept = evidence.read_text()
    evidence.write_text(kept + "<<<<<<< ours\n=======\n>>>>>>> theirs\n")
    Library.open(root).write("Ines collects stamps from Bergen.")
    with watching(root) as watch:
        assert "conflict" in watch.until("failed")["message"]
        watch.quiet_until_saved(root / "topics" / "later.md")
        watch.quiet_until_saved(root / "topics" / "even-later.md")
        assert watch.stop() == 0
    assert sum(one["event"] == "failed" for one in watch.seen) == 1
    assert Library.open(root).status().buffered == 1


def test_signing_waits_for_a_flush_at_work(root: Path) -> None:
    file = topic(root)
    with watching(root) as watch:
        with exclusive(root / FLUSH_LOCK):
            file.write_bytes(file.read_bytes() + b"- Typed meanwhile.\n- <seq=oops>\n")
            watch.until("problem", "topics/maya-work.md")
            watch.quiet_until_saved(root / "topics" / "later.md")
            assert b"- Typed meanwhile." in file.read_bytes()
        watch.until("signed", "topics/maya-work.md")
        assert watch.stop() == 0


# Git


def git(root: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=Maya", "-c", "user.email=maya@example.org", *arguments],
        cwd=root,
        check=True,
        capture_output=True,
    )


def test_a_checkout_of_another_branch_and_a_rebase(root: Path) -> None:
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "before")
    git(root, "switch", "-qc", "other")
    folder = root / "topics" / "many"
    folder.mkdir()
    for number in range(300):
        (folder / f"note-{number}.md").write_text(f"---\nid: many/note-{number}\n---\n# Note\n\n- drawer {number}\n")
    topic(root, "boats/terna").unlink()
    git(root, "add", ".")
    git(root, "commit", "-qm", "after")
    git(root, "switch", "-q", "main")
    with watching(root) as watch:
        git(root, "switch", "-q", "other")
        watch.until("saved", wanted=lambda one: one["count"] == 300)
        watch.until("gone", "topics/boats/terna.md")
        git(root, "switch", "-q", "main")
        watch.until("gone", wanted=lambda one: one["count"] == 300)
        topic(root).write_text(topic(root).read_text() + "\nProse on main.\n")
        git(root, "commit", "-qam", "prose")
        git(root, "switch", "-q", "other")
        git(root, "rebase", "-q", "main")
        while sum(one["count"] for one in watch.seen if one["event"] == "saved") < 600:
            watch.until("saved")
        assert watch.stop() == 0
    assert not watch.problems()
    done = subprocess.run(["git", "status", "--short"], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == ""


def test_nothing_is_looked_at_while_git_changes_files_nor_written_until_a_merge_is_done(root: Path) -> None:
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "before")
    file = topic(root)
    with watching(root) as watch:
        lock = root / ".git" / "index.lock"
        lock.write_bytes(b"")
        file.write_bytes(file.read_bytes() + b"- Typed by hand.\n- <seq=oops>\n")
        assert "git is at work" in watch.until("waiting")["message"]
        assert not watch.problems()
        (root / ".git" / "MERGE_HEAD").write_text("0" * 40 + "\n")
        lock.unlink()
        watch.until("problem", "topics/maya-work.md")
        assert "in the middle of a merge" in watch.until("waiting")["message"]
        assert b"\n- Typed by hand." in file.read_bytes()
        (root / ".git" / "MERGE_HEAD").unlink()
        watch.until("signed", "topics/maya-work.md")
        assert watch.stop() == 0


# Coming and going


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_0_and_a_last_line(root: Path, number: int) -> None:
    with watching(root) as watch:
        assert watch.stop(number) == 0
    assert watch.seen[-1]["event"] == "stopped"
    assert not watch.talk


def test_a_signal_in_the_middle_of_a_flush_leaves_the_library_before_or_after(root: Path) -> None:
    words = "the keeper of the lighthouse counted {} ships, {} gulls and {} seals before the fog came in".format
    Library.open(root).write([words(number, number * 7, number * 5) for number in range(250)])
    wanted = set(range(1, 254))
    with watching(root) as watch:
        (root / FLUSH_LOCK).touch()
        while free(root / FLUSH_LOCK):  # until the flush is at work
            assert watch.process.poll() is None
        assert watch.stop() == 0
    assert watch.seen[-1]["event"] == "stopped"
    assert free(root / FLUSH_LOCK)
    library = Library.open(root)
    assert not [finding for finding in library.check() if finding.problem.code in ("lost", "deleted", "doubled")]
    library.flush()
    shown = {seq for row in library.catalog() for entry in entries_of(root, row.path) for seq in entry}
    assert shown == wanted


def free(lock: Path) -> bool:
    import fcntl

    with lock.open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def entries_of(root: Path, path: str) -> list[tuple[int, ...]]:
    from infinimem.store.read import read_file

    return [entry.seqs for entry in read_file(root, path).document.entries]


def test_a_library_that_vanishes_is_waited_for(root: Path) -> None:
    away = root.with_name("away")
    with watching(root) as watch:
        root.rename(away)
        assert "waiting" in watch.until("lost")["message"]
        assert not root.exists()
        away.rename(root)
        watch.until("back")
        watch.until("watching")
        topic(root).write_text(topic(root).read_text() + "- <seq=oops>\n")
        watch.until("problem", "topics/maya-work.md")
        shutil.rmtree(root, ignore_errors=True)
        watch.until("lost")
        assert watch.stop() == 0
    assert not root.exists() or not any((root / "topics").rglob("*.md"))


def test_a_second_watch_says_so_and_leaves_the_first_alone(root: Path) -> None:
    with watching(root) as watch:
        second = Watching(root)
        assert second.wait() == 3
        assert f"process {watch.process.pid}" in "".join(second.talk)
        topic(root).write_text(topic(root).read_text() + "- <seq=oops>\n")
        watch.until("problem", "topics/maya-work.md")
        assert watch.stop() == 0
    with watching(root) as again:
        assert again.stop() == 0


def test_by_the_clock_it_sees_the_same(root: Path) -> None:
    with watching(root, "--poll") as watch:
        replacing(topic(root), topic(root).read_bytes() + b"- Typed by hand.\n- <seq=oops>\n")
        watch.until("problem", "topics/maya-work.md")
        watch.until("signed", "topics/maya-work.md")
        assert watch.stop() == 0


LIMITS = ("max_inotify_instances", "max_inotify_watches")


@pytest.mark.parametrize("limit", LIMITS)
def test_where_the_kernel_has_no_events_left_it_goes_by_the_clock(root: Path, limit: str) -> None:
    setting = f'echo 1 > /proc/sys/user/{limit} && exec "$@"'
    if "instances" in limit:
        setting = setting.replace("echo 1", "echo 0")
    before = ["unshare", "--user", "--map-root-user", "sh", "-c", setting, "sh"]
    try:
        allowed = subprocess.run([*before, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        pytest.skip("this system has no user namespaces to limit")
    with watching(root, before=before) as watch:
        said = [one["message"] for one in watch.seen if one["event"] == "polling"]
        assert len(said) == 1 and "limit reached" in said[0]
        topic(root).write_text(topic(root).read_text() + "- <seq=oops>\n")
        watch.until("problem", "topics/maya-work.md")
        assert watch.stop() == 0


def commands_in_docs() -> Iterator[list[str]]:
    """What the units in the docs run."""
    text = (Path(__file__).parents[2] / "docs" / "watch.md").read_text("utf-8")
    unit = configparser.RawConfigParser(strict=False)
    unit.read_string(re.findall(r"```ini\n(.*?)```", text, re.DOTALL)[0])
    yield shlex.split(unit["Service"]["ExecStart"])
    yield plistlib.loads(re.findall(r"```xml\n(.*?)```", text, re.DOTALL)[0].encode())["ProgramArguments"]


@pytest.mark.parametrize("command", [*commands_in_docs()], ids=["systemd", "launchd"])
def test_the_units_in_the_docs_run_a_watch(root: Path, command: list[str]) -> None:
    assert command[0].endswith("/infinimem") and command[1] == "--library" and command[-1] == "watch"
    with plain(root, *command[3:-1]) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("watching")
        process.terminate()
        assert process.wait(LONG) == 0


@contextmanager
def plain(root: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A watch whose output is read as it is."""
    with subprocess.Popen(
        [sys.executable, "-m", "infinimem", "-L", str(root), "watch", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def test_a_person_reads_lines_with_places_and_the_talk_is_apart(root: Path) -> None:
    file = topic(root)
    with plain(root) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stderr.readline() == f"watching {root}: 2 topics; Ctrl-C stops\n"
        file.write_text(file.read_text() + "- <seq=oops> x\n")
        lines = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        out, talk = process.communicate(timeout=LONG)
    assert lines[0] == "topics/maya-work.md: saved\n"
    assert lines[1].startswith(f"topics/maya-work.md:{file.read_text().count(chr(10))}: looks like an entry")
    assert (out, talk, process.returncode) == ("", "stopped\n", 0)
    assert "\x1b" not in "".join(lines)


def test_a_reader_that_leaves_ends_it_quietly(root: Path) -> None:
    with plain(root, "--json") as process:
        assert process.stdout is not None and process.stderr is not None
        assert json.loads(process.stdout.readline())["event"] == "watching"
        process.stdout.close()
        topic(root).write_text(topic(root).read_text() + "- <seq=oops> x\n")
        assert process.wait(LONG) == 0
        assert process.stderr.read() == ""
