"""The command line as its user meets it: transcripts, real processes, real folders, a real terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from rich.cells import cell_len

from infinimem import Library
from infinimem.cli import main
from infinimem.cli.commands import COMMANDS, build
from infinimem.cli.demo import sample_library
from infinimem.cli.schemas import ABOUT, schema_of
from infinimem.cli.show import cut, wrap

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.md"))
PROGRAM = Path(sys.executable).parent
HEAVY = "json yaml rich openai numpy pydantic watchdog rank_bm25 tantivy Stemmer re2 sqlite3 asyncio".split()


def environment(home: Path, **more: str) -> dict[str, str]:
    """A user with nothing set up: own folders, no library, no colour."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "PATH": f"{PROGRAM}:{kept.get('PATH', '')}",
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "LC_ALL": "C.UTF-8",
        **more,
    }


def shell(command: str, folder: Path, home: Path | None = None, **more: str) -> tuple[str, int]:
    """What a command line prints, both streams as they come, and its exit code."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder, env=environment(home or folder, **more), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120,
    )  # fmt: skip
    return done.stdout, done.returncode


def until_stopped(command: str, folder: Path, home: Path, **more: str) -> tuple[str, int]:
    """What a command prints that runs until it is stopped, which it is after its first line; and its exit code."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command}"],
        cwd=folder, env=environment(home, **more), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    first = process.stdout.readline()
    process.terminate()
    rest, _ = process.communicate(timeout=120)
    return first + rest, process.returncode


def infinimem(*arguments: str, folder: Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """One command as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "infinimem", *arguments],
        cwd=folder, env=environment(folder), input=stdin, capture_output=True, check=False, timeout=120,
    )  # fmt: skip


# Transcripts


def scenes(text: str) -> Iterator[tuple[str, list[str], int]]:
    """Each command of a transcript, the lines shown below it, and its exit code."""
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for scene in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *rest = scene.rstrip("\n").split("\n")
            while rest and (rest[0].startswith("> ") or rest[0] == ">"):
                command += "\n" + rest.pop(0)[2:]
            code = 0
            if rest and re.fullmatch(r"\[\d+\]", rest[-1]):
                code = int(rest.pop()[1:-1])
            yield command, rest, code


def matches(shown: Sequence[str], printed: str) -> bool:
    """Whether a command printed what is shown; … stands for anything in a line, alone for any lines."""
    lines = [
        r"(?:.*\n)*?" if line == "…" else ".*".join(re.escape(part) for part in line.split("…")) + r"\n"
        for line in shown
    ]
    return re.fullmatch("".join(lines), printed) is not None


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_transcript_still_holds(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    home = folder if path.stem == "write" else tmp_path
    for command, shown, code in scenes(path.read_text("utf-8")):
        printed, actual = shell(command, folder, home)
        assert matches(shown, printed), f"$ {command}\nprinted:\n{printed}\nshown:\n" + "\n".join(shown)
        assert actual == code, f"$ {command}\n{printed}exit code {actual}, not {code}"


# Help


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library as the examples of the help assume it: 41 entries flushed, 12 replaced by 41, 42 to 44 waiting."""
    root = tmp_path_factory.mktemp("prepared") / "memory"
    now = datetime(2026, 5, 2, 8, tzinfo=UTC)
    library = Library.open(root, create=True, clock=lambda: now)
    library.write([f"Shelf {number} of the pantry holds jar {number * 7}." for number in range(1, 12)])
    library.write("Maya works at Fjord Labs.", source="user", time="2025-09-01")
    library.write([f"On day {number} Ines cycled {number * 3} km." for number in range(13, 41)], source="Ines")
    plan = root.parent / "plan.yaml"
    plan.write_text(
        "plan: 1\nsteps:\n- create: {topic: maya-work, title: Maya's work}\n"
        "- extend: {topic: maya-work, heading: Employers, seqs: 12}\n"
        "- extend: {topic: maya-work, heading: Colleagues, seqs: 13-40}\n"
        "- create: {topic: maya-home, title: At home}\n- extend: {topic: maya-home, heading: Pantry, seqs: 1-11}\n"
    )
    library.flush(plan=plan)
    library.write("Maya joined Nordlys as a staff engineer.", time="2026-05-01", supersedes=[12])
    plan.write_text("plan: 1\nsteps:\n- extend: {topic: maya-work, heading: Employers, seqs: 41}\n"
                    "- retire: {seq: 12, by: 41, why: superseded}\n")  # fmt: skip
    library.flush(plan=plan)
    library.write(["Ines said: Bergen on Tuesdays.", "The pantry needs salt."], source="Ines", time="2026-05-02")
    library.write("A line\nand its continuation.")
    return root


@pytest.fixture
def memory(prepared: Path, tmp_path: Path) -> Path:
    """A copy of the prepared library to spoil."""
    shutil.copytree(prepared, tmp_path / "memory")
    return tmp_path / "memory"


def help_of(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main([name, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_examples_that_run(name: str, memory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = help_of(name, capsys)
    examples = [line.strip()[2:] for line in text.splitlines() if line.strip().startswith("$ ")]
    assert examples, text
    for example in examples:
        assert f"infinimem {name}" in example
        run = until_stopped if name == "watch" else shell
        printed, code = run(example, memory, memory.parent, EDITOR="true")
        assert code == 0, f"$ {example}\n{printed}"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_shared_options_and_every_option_a_help(name: str) -> None:
    options = {option: parameter for parameter in build(name).params for option in parameter.opts}
    assert {"--json", "--library", "-L", "--debug"} <= set(options)
    assert all(getattr(parameter, "help", "") for parameter in options.values())


def test_the_help_names_every_command_and_imports_none(tmp_path: Path) -> None:
    code = (
        "import sys; from infinimem.cli import main; main(['--help'])\n"
        "print(*(name for name in sys.modules if name.startswith('infinimem.cli.')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(re.search(rf"^  {name} ", done.stdout, re.MULTILINE) for name in COMMANDS)
    commands = {f"infinimem.cli.{module}" for module, _ in COMMANDS.values()}
    assert not commands & set(done.stderr.split())


def test_without_arguments_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "Usage: infinimem" in capsys.readouterr().out


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    from infinimem import __version__

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"infinimem {__version__}\n"


# What is imported


def loaded_by(folder: Path, *arguments: str) -> set[str]:
    code = (
        f"import sys; from infinimem.cli import main; assert main({list(arguments)!r}) == 0\n"
        f"print(*(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment(folder), capture_output=True, text=True, check=True
    )
    return set(done.stderr.split("\n")[-2].split())


def test_write_loads_nothing_heavy(memory: Path) -> None:
    assert loaded_by(memory, "write", "a fact", "--source", "user", "--time", "2026-05") == set()


def test_status_loads_neither_models_nor_ranking(memory: Path) -> None:
    assert not loaded_by(memory, "status") & {"openai", "numpy", "rank_bm25", "rich", "pydantic", "watchdog"}


@pytest.mark.parametrize("command", ["search Maya", "ask Maya", "catalog", "timeline Maya"])
def test_a_cold_search_needs_no_numpy(memory: Path, command: str) -> None:
    assert not loaded_by(memory, *command.split()) & {"numpy", "rank_bm25"}


@pytest.mark.parametrize("command", ["status", "catalog", "search Maya", "ask Maya", "grep Maya", "read maya-work",
                                     "trace 12", "config", "stats", "stats --cost", "schema", "check",
                                     "history", "history 12", "diff", "flush --dry-run", "flush"])  # fmt: skip
def test_what_goes_into_a_pipe_is_written_without_rich(memory: Path, command: str) -> None:
    assert "rich" not in loaded_by(memory, *command.split())


# JSON


def json_of(folder: Path, *arguments: str) -> Any:
    done = infinimem(*arguments, "--json", folder=folder)
    assert done.returncode in (0, 1, 5), done.stderr
    return json.loads(done.stdout)


OUTPUTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("init", ("init", ".")),
    ("status", ("status",)),
    ("catalog", ("catalog",)),
    ("search", ("search", "Maya", "Nordlys")),
    ("search", ("search", "Fjord", "--all")),
    ("grep", ("grep", "Maya", "-C", "1", "--all")),
    ("catalog", ("catalog", "--as-of", "2026-02")),
    ("timeline", ("timeline", "maya-work")),
    ("read", ("read", "maya-work:1-20")),
    ("trace", ("trace", "12")),
    ("trace", ("trace", "41-43")),
    ("ask", ("ask", "Where does Maya work?")),
    ("ask", ("ask", "xylophone")),
    ("write", ("write", "one", "one", "The pantry needs salt.")),
    ("recover", ("recover", "42")),
    ("merge-driver", ("merge-driver", "CURRENT.md", "CURRENT.md", "CURRENT.md")),
    ("import", ("import", "topics", "--from", "notes")),
    ("review", ("review",)),
    ("feedback", ("feedback", "good")),
    ("reconsolidate", ("reconsolidate", "--dry-run")),
    ("review", ("review", "12", "--valid")),
    ("check", ("check",)),
    ("check-preview", ("check", "--fix", "--dry-run")),
    ("history", ("history",)),
    ("history", ("history", "maya-work")),
    ("history", ("history", "12")),
    ("history-summary", ("history", "maya-work", "--summary")),
    ("history-headings", ("history", "maya-work", "--headings")),
    ("diff", ("diff",)),
    ("diff", ("diff", "--text")),
    ("diff", ("diff", "2026-05-01")),
    ("stats", ("stats",)),
    ("stats-cost", ("stats", "--cost")),
    ("export", ("export", "--out", "out.jsonl")),
    ("init", ("init", "again", "--from", "out.jsonl")),
    ("settings", ("config",)),
    ("schema", ("schema",)),
    ("mcp", ("mcp",)),
    ("flush", ("flush", "--if-due", "--dry-run")),
    ("flush-estimate", ("flush", "--estimate")),
    ("flush-root", ("flush", "--root", ".")),
    ("ask-root", ("ask", "--root", ".", "Where does Maya work?")),
    ("search-root", ("search", "--root", ".", "Nordlys")),
    ("flush", ("flush",)),
    ("undo", ("undo",)),
    ("split", ("split", "maya-work", "--dry-run")),
    ("split", ("split", "maya-work")),
    ("merge", ("merge", "maya-work", "maya-home")),
    ("forget", ("forget", "13", "--dry-run")),
    ("forget-root", ("forget", "--root", ".", "--where", "source=Ines", "--dry-run")),
    ("forget", ("forget", "--where", "source=Ines", "--yes")),
    ("split", ("split", "41", "Maya joined Nordlys", "as a staff engineer.")),
    ("trace", ("trace", "41")),
)


def test_what_json_prints_is_what_its_schema_says(memory: Path) -> None:
    for name, arguments in OUTPUTS:
        value = json_of(memory, *arguments)
        jsonschema.validate(value, schema_of(name))
    elsewhere = {
        "plan",
        "config",
        "demo",
        "write-extract",
        "export-lines",
        "edit",
        "watch",
        "review-take",
    }  # which have tests of their own
    assert {name for name, _ in OUTPUTS} | elsewhere == set(ABOUT)


@pytest.mark.parametrize("name", ABOUT)
def test_every_schema_is_one(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", name]) == 0
    schema = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema == schema_of(name)


def test_there_is_a_schema_for_every_command() -> None:
    assert {*COMMANDS, "plan", "settings"} == {name if name in COMMANDS else name.split("-")[0] for name in ABOUT}


def test_a_plan_that_flush_writes_is_one_by_its_schema(memory: Path) -> None:
    import yaml

    done = infinimem("flush", "--plan-out", "-", folder=memory)
    jsonschema.validate(yaml.safe_load(done.stdout), schema_of("plan"))


def test_a_configuration_that_loads_is_one_by_its_schema(memory: Path) -> None:
    good = {"format": 1, "flush": {"max_age": "30m"}, "ask.k": 3, "language": "german"}
    jsonschema.validate(good, schema_of("config"))
    (memory / "infinimem.yaml").write_text("format: 1\nflush:\n  max_age: 30m\nask.k: 3\nlanguage: german\n")
    assert json_of(memory, "config")["settings"][1] == {
        "name": "flush.max_age", "value": 1800.0, "origin": f"{memory}/infinimem.yaml:3",
        "about": "CURRENT is due when its oldest entry is older (90s, 30m, 1h, 2d)",
    }  # fmt: skip
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"flush": {"max_agee": 3}}, schema_of("config"))


def test_search_prints_the_fields_of_a_hit(memory: Path) -> None:
    [hit] = json_of(memory, "search", "Nordlys", "-k", "1")
    [same] = Library.open(memory).search("Nordlys", k=1)
    for name in ("topic", "line", "text", "time", "source"):
        assert hit[name] == getattr(same, name)
    assert hit["seqs"] == list(same.seqs)
    assert hit["score"] == pytest.approx(same.score, abs=1e-4)


def test_bytes_that_are_no_text_make_valid_json(memory: Path) -> None:
    (memory / "topics" / "latin.md").write_bytes(b"na\xefve notes about herons\n")
    done = infinimem("read", "latin", "--json", folder=memory)
    assert json.loads(done.stdout)["lines"] == ["na\udcefve notes about herons"]
    assert infinimem("read", "latin", folder=memory).stdout == b"na\xefve notes about herons\n"


# A terminal


def terminal(command: str, folder: Path, columns: int = 60, **more: str) -> tuple[str, int]:
    """What a command line shows on a terminal of that width."""
    import fcntl
    import struct
    import termios

    process, screen = pty.fork()
    if not process:
        os.chdir(folder)
        os.execvpe("bash", ["bash", "-c", command], environment(folder, **{"TERM": "xterm", **more}))
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown = b""
    while select.select([screen], [], [], 60)[0]:
        try:
            piece = os.read(screen, 65536)
        except OSError:  # the other side has closed
            break
        if not piece:
            break
        shown += piece
    os.close(screen)
    _, status = os.waitpid(process, 0)
    return shown.decode("utf-8").replace("\r\n", "\n"), os.waitstatus_to_exitcode(status)


COLOUR = re.compile("\x1b\\[[0-9;]*m|\x1b]8;[^\x1b]*\x1b\\\\")


def test_growth_is_drawn_on_a_terminal_and_listed_in_a_pipe(memory: Path) -> None:
    screen, code = terminal("infinimem stats", memory, NO_COLOR="1")
    assert code == 0
    # what was noted at the clock of the test, what flushed at that of the machine
    assert re.search(r"^  2026-05 +44  █{30}  -1$", screen, re.MULTILINE), screen
    piped, _ = shell("infinimem stats", memory)
    assert "\n2026-05\t44\t1\n" in piped
    assert "█" not in piped


@pytest.mark.parametrize(
    ("more", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False)],
)
def test_colour_is_for_terminals_that_want_it(memory: Path, more: Mapping[str, str], coloured: bool) -> None:
    looking = "ask Where does Maya work?", "search Maya", "grep Maya", "read maya-work", "catalog", "status"
    for command in (*looking, "history", "diff", "diff --text"):
        shown, code = terminal(f"infinimem {command}", memory, **more)
        assert code == 0
        assert bool(COLOUR.search(shown)) is coloured, command


def test_colour_can_be_forced_into_a_pipe(memory: Path) -> None:
    assert COLOUR.search(shell("infinimem search Maya", memory)[0]) is None
    assert COLOUR.search(shell("infinimem grep Maya", memory, FORCE_COLOR="1")[0]) is not None


def test_evidence_is_wrapped_on_a_terminal_and_raw_in_a_pipe(memory: Path) -> None:
    text = "The lighthouse keeper " + "wrote and wrote and " * 10 + "slept."
    infinimem("write", text, folder=memory)
    shown, _ = terminal("infinimem ask lighthouse keeper -k 1", memory, columns=50)
    assert max(cell_len(COLOUR.sub("", line)) for line in shown.splitlines()[1:]) <= 50
    assert text in shell("infinimem ask lighthouse keeper -k 1", memory)[0]


def test_a_note_cannot_repaint_the_terminal(memory: Path) -> None:
    infinimem("write", "lighthouse \x1b[2J\x07 keeper", folder=memory)
    for command in ("ask lighthouse", "search lighthouse", "grep lighthouse", "read CURRENT", "trace 45"):
        shown, _ = terminal(f"infinimem {command}", memory, NO_COLOR="1")
        assert "lighthouse" in shown
        assert "\x1b[2J" not in shown
        assert "\x07" not in shown


def test_what_a_user_wrote_is_no_markup(memory: Path) -> None:
    words = "lighthouse [bold]keeper[/bold] [/] :smile: https://herons.example 12.5"
    infinimem("write", words, folder=memory)
    (memory / "topics" / "guest.md").write_text(f'---\nsummary: "{words} \\e[2J"\n---\nSomething else.\n')
    for command in ("ask lighthouse -k 1", "search lighthouse -k 1", "read CURRENT", "trace 45", "catalog guest"):
        shown, _ = terminal(f"infinimem {command}", memory, columns=160)
        assert words in shown, command
        assert "\x1b[2J" not in shown


def test_bytes_that_are_no_text_are_shown_as_such(memory: Path) -> None:
    (memory / "topics" / "latin.md").write_bytes(b"na\xefve notes about herons\n")
    for command in ("ask herons -k 1", "search herons -k 1", "read latin", "grep herons"):
        shown, code = terminal(f"infinimem {command}", memory, columns=160, NO_COLOR="1")
        assert code == 0
        assert re.search("na[?\ufffd]ve notes about", shown), command


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_catalog_keeps_to_the_width_and_its_ids_stay_whole(memory: Path, columns: int) -> None:
    summary = "高さは三百三十三メートル " * 9
    (memory / "topics" / "東京タワーの高さ.md").write_text(f"---\nsummary: {summary}\n---\n塔。\n")
    shown, _ = terminal("infinimem catalog", memory, columns=columns, NO_COLOR="1")
    rows = shown.splitlines()
    assert [row.split()[0] for row in rows] == ["maya-home", "maya-work", "東京タワーの高さ"]
    assert all(row.split()[1].isdigit() for row in rows)
    assert max(cell_len(row) for row in rows) <= columns
    assert rows[2].endswith("…")


def test_lines_are_numbered_on_a_terminal(memory: Path) -> None:
    shown, _ = terminal("infinimem read CURRENT:1-3", memory, NO_COLOR="1", columns=200)
    assert shown.startswith("1  # CURRENT\n")
    assert not infinimem("read", "CURRENT", folder=memory).stdout.startswith(b"1")


def test_progress_is_drawn_on_a_terminal_and_wiped(memory: Path) -> None:
    shown, code = terminal("infinimem flush", memory)
    assert code == 0
    assert "commit" in shown
    assert shown.rindex("\x1b[2K") > shown.rindex("commit")
    assert shown.index("flushed") > shown.rindex("\x1b[2K")
    assert "commit" not in shell("infinimem undo && infinimem flush", memory)[0]


def test_a_large_first_index_shows_its_progress(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "m", create=True)
    for number in range(30):
        lines = "".join(f"- <seq={number * 1000 + at + 1}> Note {at} on herons and tides.\n" for at in range(900))
        (library.root / "topics" / f"t{number}.md").write_text(f"---\nid: t{number}\ntoken_count: 9\n---\n{lines}" * 2)
    shown, code = terminal("infinimem status", library.root)
    assert code == 0
    assert re.search(r"indexing .*\d+/3\d", COLOUR.sub("", shown))


def test_writing_on_a_terminal_without_a_text_asks_for_one(memory: Path) -> None:
    shown, code = terminal("infinimem write", memory, columns=200)
    assert (code, shown.count("\n")) == (2, 1)
    assert "infinimem write -" in shown


# Pipes, signals, broken things


def test_a_broken_pipe_ends_quietly(memory: Path) -> None:
    for command in ("grep .", "catalog", "schema plan", "read maya-work", "--help", "write a b c"):
        printed, code = shell(f"set -o pipefail; infinimem {command} | true", memory)
        assert (printed, code) == ("", 0), command


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_behind_the_output_is_said_on_one_line(memory: Path) -> None:
    for unbuffered in ("", "1"):
        printed, code = shell("infinimem catalog > /dev/full", memory, PYTHONUNBUFFERED=unbuffered)
        assert code == 3
        assert printed.startswith("infinimem: standard output cannot be written")
        assert printed.count("\n") == 1


def test_closed_streams_are_no_accident(memory: Path) -> None:
    assert shell("infinimem status >&-", memory) == ("", 0)
    assert shell("infinimem write x <&-", memory)[1] == 0
    assert shell("infinimem write <&-", memory)[1] == 2
    assert shell("infinimem trace 99 2>&-", memory) == ("", 2)


def test_an_interrupt_is_130_and_one_line(memory: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "infinimem", "write", "-"],
        cwd=memory, env=environment(memory), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    before = (memory / "CURRENT.md").read_bytes()
    process.stdin.write(b"half a thought")
    process.stdin.flush()
    with pytest.raises(subprocess.TimeoutExpired):  # it is waiting for the other half
        process.wait(1.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b"")
    assert err.startswith(b"infinimem: interrupted")
    assert err.count(b"\n") == 1
    assert (memory / "CURRENT.md").read_bytes() == before


def test_a_bug_is_one_line_unless_debugged(
    memory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def burst(self: Library) -> None:
        raise RuntimeError("the roof\nis on fire")

    monkeypatch.setattr(Library, "status", burst)
    assert main(["-L", str(memory), "status"]) == 3
    said = capsys.readouterr().err
    assert said.startswith("infinimem: unexpected RuntimeError: the roof is on fire; ")
    assert "--debug" in said
    assert said.count("\n") == 1
    assert main(["-L", str(memory), "status", "--debug"]) == 3
    assert "Traceback" in capsys.readouterr().err


def test_a_failing_file_is_one_line(memory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (memory / "CURRENT.md").unlink()
    (memory / "CURRENT.md").mkdir()
    assert main(["-L", str(memory), "write", "x"]) == 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "CURRENT.md" in said


def test_data_in_a_pipe_is_utf_8_whatever_the_locale(memory: Path) -> None:
    infinimem("write", "Grüße vom lighthouse in 東京", folder=memory)
    printed = infinimem("search", "Grüße", "-k", "1", folder=memory).stdout
    assert "Grüße vom lighthouse in 東京" in printed.decode("utf-8")
    done, _ = shell("infinimem search lighthouse -k 1", memory, LC_ALL="POSIX", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert "東京" in done


def test_arguments_that_are_no_text_are_refused(memory: Path) -> None:
    before = (memory / "CURRENT.md").read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "infinimem", "write", b"na\xefve"],
        cwd=memory, env=environment(memory), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith(b"infinimem: text 1 ")
    assert (memory / "CURRENT.md").read_bytes() == before


def test_a_failed_first_write_makes_no_library(tmp_path: Path) -> None:
    assert infinimem("-L", "new", "write", "x", "--time", "never", folder=tmp_path).returncode == 2
    assert not (tmp_path / "new").exists()


def test_a_chat_keeps_what_it_says_byte_for_byte(memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "  two\n\nlines\t<seq=3> and \u2028 more \n"
    chat = json.dumps([{"role": "user", "content": text}])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(chat.encode())))
    assert main(["-L", str(memory), "write", "--chat"]) == 0
    assert text.rstrip("\n") in {entry.text.rstrip("\n") for entry in entries_of(memory)}


def entries_of(root: Path) -> Sequence[Any]:
    from infinimem.text.document import parse

    return parse("CURRENT.md", (root / "CURRENT.md").read_bytes()).entries


# Completion


def completed(line: str, folder: Path) -> list[str]:
    words = line.split(" ")
    return shell("infinimem", folder, _INFINIMEM_COMPLETE="complete_bash", COMP_WORDS=line,
                 COMP_CWORD=str(len(words) - 1))[0].split()  # fmt: skip


def test_commands_options_and_topics_are_completed(memory: Path) -> None:
    assert completed("infinimem sta", memory) == ["status", "stats"]
    assert completed("infinimem read ", memory) == ["CURRENT", "maya-home", "maya-work"]
    assert completed("infinimem merge maya-work maya-h", memory) == ["maya-home"]
    assert completed(f"infinimem -L {memory} read maya-w", memory.parent) == ["maya-work"]
    assert "--dry-run" in completed("infinimem flush --d", memory)
    assert completed("infinimem read x", memory.parent) == []


# Text for people


def test_a_text_is_cut_by_the_columns_that_it_takes() -> None:
    assert [cut(text, 6) for text in ("abcdef", "abcdefg", "e\u0301" * 6)] == ["abcdef", "abcde…", "e\u0301" * 6]
    assert cut("東京タワー", 6) == "東京 …"


@pytest.mark.parametrize(
    ("text", "room", "lines"),
    [
        ("one two three", 8, ["one two", "three"]),
        ("", 8, [""]),
        ("a\n\n  indented words here", 12, ["a", "", "  indented", "  words here"]),
        ("unbreakablelongword", 8, ["unbreaka", "blelongw", "ord"]),
        ("東京タワーは高い", 8, ["東京タワ", "ーは高い"]),
    ],
)
def test_text_is_wrapped_to_the_room(text: str, room: int, lines: list[str]) -> None:
    assert list(wrap(text, room)) == lines


# The demo


def test_the_demo_runs_every_command_for_real(tmp_path: Path) -> None:
    before = sorted(sample_library().rglob("*"))
    printed, code = shell("infinimem demo", tmp_path, TMPDIR=str(tmp_path))
    assert code == 0, printed
    for command in ("status", "catalog", "ask", "write", "flush", "trace", "undo"):
        assert f"\n$ infinimem {command}" in printed
    [copy] = tmp_path.glob("infinimem-demo-*/memory")
    assert str(copy) in printed
    assert "superseded by" in printed
    assert "not in memory" in printed
    assert sorted(sample_library().rglob("*")) == before
    value = json.loads(shell("infinimem demo --json 2>/dev/null", tmp_path, TMPDIR=str(tmp_path))[0])
    jsonschema.validate(value, schema_of("demo"))
    assert all(step["exit_code"] in (0, 1) for step in value["steps"])


def test_a_line_break_in_a_source_forges_no_result(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    library.write("the ferry is late", source="user\nfake-topic:1\t2026-01-01\tuser\tforged")
    for command in ("search", "ask"):
        done = subprocess.run(
            [sys.executable, "-m", "infinimem", "-L", str(library.root), command, "ferry"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert not any(line.startswith("fake-topic") for line in done.stdout.splitlines())


HUGE = "9" * 5000


@pytest.mark.parametrize(
    "line", ['{"text": "a", "text": "b"}', '{"text": "a", "n": NaN}', f'{{"text": "a", "n": {HUGE}}}']
)
def test_json_that_would_become_something_else_is_refused(tmp_path: Path, line: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "infinimem", "-L", str(tmp_path / "m"), "write", "--jsonl"],
        input=f'{{"text": "good"}}\n{line}\n',
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "<stdin>:2: this is no JSON" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_file_name_where_standard_input_is_meant_is_refused(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("one\ntwo\n")
    command = [sys.executable, "-m", "infinimem", "-L", str(tmp_path / "m"), "write", "--lines", "list.txt"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (2, "")
    assert "infinimem write --lines < list.txt" in done.stderr


def test_a_plan_from_standard_input(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "m", create=True)
    library.write("the choir sings")
    plan = "plan: 1\nsteps:\n- create: {topic: choir, title: Choir}\n- extend: {topic: choir, seqs: 1}\n"
    command = [sys.executable, "-m", "infinimem", "-L", str(library.root), "flush", "--plan", "-"]
    assert subprocess.run(command, input=plan, capture_output=True, text=True, check=False).returncode == 0
    assert [row.topic for row in library.catalog()] == ["choir"]
