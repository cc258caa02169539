"""`infinimem edit` with real programs as editors, and places that are links on a real terminal."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

from infinimem import Library
from infinimem.cli.edit import editor_command
from infinimem.cli.schemas import schema_of
from tests.cli.test_commands import environment, terminal
from tests.watch.test_watch import root, topic
from tests.watch.watching import watching

__all__ = ["root"]  # the fixture


def editor(folder: Path, body: str, name: str = "editor") -> str:
    """A program that edits the file it is given, as a person would, and notes how it was called."""
    script = folder / name
    script.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {shlex.quote(str(folder / "called"))}\nfor file; do :; done\n{body}\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def edit(root: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "infinimem", "edit", *arguments],
        cwd=root, env=environment(root.parent, **variables), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def files_of(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        path.relative_to(root).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in root.rglob("*")
        if path.is_file() and ".infinimem" not in path.parts
    }


def test_what_was_typed_is_signed_and_what_is_wrong_has_its_line(root: Path) -> None:
    program = editor(root.parent, 'printf -- "- Typed by hand.\\n- <seq=oops> x\\n" >> "$file"')
    done = edit(root, "maya-work", EDITOR=program)
    assert (done.returncode, done.stderr) == (0, "")
    wrong, signed = done.stdout.splitlines()
    last = topic(root).read_text().count("\n")
    assert wrong.startswith(f"topics/maya-work.md:{last}: looks like an entry but is none")
    assert signed == "topics/maya-work.md: 1 bullet signed as 4"
    assert re.search(r"^- <seq=4, source=hand, observed=\S+> Typed by hand\.$", topic(root).read_text(), re.M)
    assert Path((root.parent / "called").read_text().strip()) == topic(root)


def test_nothing_changed_writes_nothing(root: Path) -> None:
    before = files_of(root)
    done = edit(root, "maya-work", EDITOR="true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "nothing was changed\n")
    assert files_of(root) == before


def test_current_is_edited_too_and_all_is_well(root: Path) -> None:
    done = edit(root, "CURRENT", EDITOR=editor(root.parent, 'echo "- salt" >> "$file"'))
    assert (done.returncode, done.stdout, done.stderr) == (0, "CURRENT.md: 1 bullet signed as 4\n", "all is well\n")
    assert Library.open(root).write("The next one.") == [5]


def test_what_blocks_is_exit_code_3_and_nothing_is_signed(root: Path) -> None:
    program = editor(root.parent, 'printf -- "- typed\\n<<<<<<< ours\\n" >> "$file"')
    done = edit(root, "maya-work", EDITOR=program)
    assert done.returncode == 3
    assert "a git conflict is not resolved" in done.stdout
    assert "\n- typed\n" in topic(root).read_text()


def test_what_was_reworded_and_deleted_is_said_with_what_it_means(root: Path) -> None:
    """`all is well` was all that was said of a deletion."""
    first, second = re.findall(r"^- <seq=(\d+)", topic(root).read_text(), re.M)[:2]
    words = f's/^(- <seq={first}[,>].*)$/$1 Not any more./; $_ = "" if /^- <seq={second}[,>]/'
    done = edit(root, "maya-work", EDITOR=editor(root.parent, f"perl -i -pe '{words}' \"$file\""))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"topics/maya-work.md: {first} reworded; evidence keeps the words of before, "
        "and the next flush notes the new ones",
        f"topics/maya-work.md: {second} deleted; the words are kept: infinimem recover {second} "
        "(infinimem forget erases them)",
    ]
    library = Library.open(root)
    assert library.recover([int(second)]) == [int(second)]
    assert "Not any more." in library.trace(int(first)).here.text  # type: ignore[union-attr]


def test_json_says_what_was_deleted_from_current(root: Path) -> None:
    [seq] = Library.open(root).write("The key is in the box.")
    done = edit(root, "CURRENT", "--json", EDITOR=editor(root.parent, "perl -i -ne 'print unless /box/' \"$file\""))
    value = json.loads(done.stdout)
    jsonschema.validate(value, schema_of("edit"))
    assert (value["deleted"], value["reworded"], value["moved"]) == ([seq], [], [])
    assert Library.open(root).recover([seq]) == [seq]


def test_json_says_the_same(root: Path) -> None:
    program = editor(root.parent, 'echo "this is not for a program"; printf -- "- typed\\n- <seq=oops>\\n" >> "$file"')
    done = edit(root, "maya-work", "--json", EDITOR=program)
    value = json.loads(done.stdout)
    jsonschema.validate(value, schema_of("edit"))
    assert (value["topic"], value["changed"], value["exit_code"], value["signed"]) == ("maya-work", True, 0, [4])
    assert [one["code"] for one in value["problems"]] == ["near-miss"]
    assert "this is not for a program" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "variables", "said"),
    [
        (["maya-wrok"], {"EDITOR": "true"}, "there is no topic 'maya-wrok'; did you mean maya-work?"),
        (["maya-work"], {}, "no editor is set; for example: export EDITOR=nano"),
        (["maya-work"], {"EDITOR": "  "}, "no editor is set; for example: export EDITOR=nano"),
        (["maya-work"], {"VISUAL": "code 'x"}, "$VISUAL cannot be read (No closing quotation); for example: "),
        (["maya-work"], {"EDITOR": "no-such-editor -x"}, "no-such-editor cannot be run (No such file or directory); "),
        (["maya-work"], {"EDITOR": "false"}, "false ended with exit code 1; topics/maya-work.md is as it left it, "),
        (["../outside"], {"EDITOR": "true"}, "there is no topic '../outside'"),
    ],
)
def test_what_cannot_be_is_one_line(root: Path, arguments: list[str], variables: dict[str, str], said: str) -> None:
    before = files_of(root)
    done = edit(root, *arguments, **variables)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"infinimem: {said}")
    assert done.stdout == ""
    assert files_of(root) == before


def test_an_editor_that_fails_after_saving_leaves_its_save_unsigned_but_checked(root: Path) -> None:
    done = edit(
        root, "maya-work", EDITOR=editor(root.parent, 'printf -- "- typed\\n- <seq=oops>\\n" >> "$file"; exit 7')
    )
    assert done.returncode == 2
    assert "looks like an entry" in done.stdout
    assert "ended with exit code 7" in done.stderr
    assert "\n- typed\n" in topic(root).read_text()


def test_ctrl_c_is_for_the_editor(root: Path) -> None:
    program = editor(root.parent, 'kill -INT $PPID; echo "- salt" >> "$file"')
    done = edit(root, "maya-work", EDITOR=program)
    assert (done.returncode, done.stdout) == (0, "topics/maya-work.md: 1 bullet signed as 4\n")


def test_an_editor_does_not_inherit_that_interrupts_are_ignored(root: Path) -> None:
    done = edit(root, "maya-work", EDITOR=editor(root.parent, "kill -INT $$; exit 0"))
    assert done.returncode == 2
    assert f"was ended by signal {signal.SIGINT.value}" in done.stderr


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("vim", ["vim", "+12", "FILE"]),
        ("/usr/bin/nano -w", ["/usr/bin/nano", "-w", "+12", "FILE"]),
        ("emacsclient -t", ["emacsclient", "-t", "+12", "FILE"]),
        ("code", ["code", "--wait", "-g", "FILE:12"]),
        ("code -n -w", ["code", "-n", "-w", "-g", "FILE:12"]),
        ("subl", ["subl", "--wait", "FILE:12"]),
        ("gvim", ["gvim", "--nofork", "+12", "FILE"]),
        ("hx", ["hx", "FILE:12"]),
        ("'/opt/my editor/run' --fast", ["/opt/my editor/run", "--fast", "FILE"]),
    ],
)
def test_each_editor_is_told_the_line_in_its_own_way(
    setting: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", setting)
    file = Path("/library/topics/maya work.md")
    assert editor_command(file, 12) == [word.replace("FILE", str(file)) for word in expected]
    monkeypatch.setenv("VISUAL", "nano")
    assert editor_command(file, 0) == ["nano", str(file)]


def test_a_line_that_a_citation_names_is_opened(root: Path) -> None:
    program = editor(root.parent, "true", "vim")
    assert edit(root, "[maya-work:14]", EDITOR=program).returncode == 0
    assert (root.parent / "called").read_text().splitlines() == ["+14", str(topic(root))]


def test_a_watch_does_not_sign_under_the_hands_of_an_editor(root: Path) -> None:
    go = root.parent / "go"
    program = editor(root.parent, f'echo "- salt" >> "$file"; until [ -e {shlex.quote(str(go))} ]; do sleep 0.1; done')
    with watching(root) as watch:
        process = subprocess.Popen(
            [sys.executable, "-m", "infinimem", "edit", "maya-work"],
            cwd=root, env=environment(root.parent, EDITOR=program), stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        watch.until("waiting", "topics/maya-work.md")
        assert "\n- salt\n" in topic(root).read_text()
        go.touch()
        assert process.communicate(timeout=60)[0] == "topics/maya-work.md: 1 bullet signed as 4\n"
        assert watch.quiet_until_saved(root / "topics" / "later.md") in ([], [watch.seen[-2]])
        assert watch.stop() == 0
    assert not [one for one in watch.seen if one["event"] == "signed"]


@pytest.mark.skipif(shutil.which("vim") is None, reason="vim is not here")
def test_a_real_vim(root: Path) -> None:
    keys = "vim -u NONE -es -c 'normal Go- Typed in vim.' -c x"
    assert edit(root, "maya-work", EDITOR=keys).stdout == "topics/maya-work.md: 1 bullet signed as 4\n"
    assert "Typed in vim." in topic(root).read_text()


# Links

LINK = re.compile("\x1b]8;[^;\x1b]*;file://([^/]*)(/[^\x1b#]*)(?:#([0-9]+))?\x1b\\\\(.*?)\x1b]8;;\x1b\\\\")
COMMANDS = ["search Fjord", "ask Fjord", "grep Fjord", "trace 1", "check", "catalog"]


def links(shown: str) -> Iterator[tuple[str, str, str]]:
    for host, path, line, text in LINK.findall(shown):
        assert host == os.uname().nodename
        yield path, line, re.sub("\x1b\\[[0-9;]*m", "", text)


@pytest.fixture
def spaced(root: Path) -> Path:
    """The library in a folder whose name needs care in an address, with something for `check` to find."""
    topic(root).write_text(topic(root).read_text() + "- <seq=oops> x\n")
    return root.rename(root.with_name("Gedächtnis #1 100%"))


@pytest.mark.parametrize("command", COMMANDS)
def test_places_are_links_on_a_terminal(spaced: Path, command: str) -> None:
    shown, _ = terminal(f"infinimem {command}", spaced, columns=200, TERM="xterm-256color")
    found = list(links(shown))
    assert found, shown
    from urllib.parse import unquote

    for path, line, text in found:
        file = Path(unquote(path))
        assert file.is_file()
        assert not line or int(line) <= file.read_text().count("\n")
        assert not line or text.strip("[]").endswith(f":{line}")
    wanted = "" if command == "catalog" else {"check": str(topic(spaced).read_text().count("\n"))}.get(command)
    if wanted is not None:
        assert wanted in [line for _, line, _ in found]


def test_links_are_for_terminals_that_have_them_and_users_who_want_them(root: Path) -> None:
    settings = ["TERM=dumb", "TERM=linux", "NO_COLOR=1", "INFINIMEM_HYPERLINKS=never"]
    command = "; ".join(f"{setting} infinimem search Fjord" for setting in settings)
    shown, _ = terminal(f"{command}; NO_COLOR=1 infinimem catalog", root, TERM="xterm-256color")
    assert shown.count("works at Fjord") == len(settings)
    assert "\x1b]8" not in shown


def test_no_link_goes_into_a_pipe_or_json(root: Path) -> None:
    topic(root).write_text(topic(root).read_text() + "- <seq=oops> x\n")
    piped = [f"infinimem {command} | cat" for command in COMMANDS]
    others = ["FORCE_COLOR=1 infinimem search Fjord | cat", "infinimem search Fjord --json", "infinimem check --json"]
    shown, _ = terminal("; ".join([*piped, *others]), root, TERM="xterm-256color")
    assert shown.count("Fjord") + shown.count("maya-work") >= len(piped) + len(others)
    assert "\x1b]8" not in shown
