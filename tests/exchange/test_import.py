"""Imports as their user meets them: zips, folders, faults in the middle, kills, two at once."""

from __future__ import annotations

import binascii
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem import Library
from infinimem.cli import main
from infinimem.cli.schemas import schema_of
from infinimem.errors import BadInput, ModelFailed
from infinimem.exchange import run
from infinimem.exchange.formats import FORMATS, format_named, format_of
from infinimem.exchange.inputs import Input, file_input
from infinimem.exchange.message import time_of
from infinimem.llm.port import Request
from infinimem.llm.replay import Scripted
from infinimem.store.imported import IDENTIFIED, id_of
from infinimem.text.document import parse
from tests.exchange.shapes import SHAPES, Made, chatgpt_message, dumped, lines
from tests.llm.planner import sensible, step_of
from tests.llm.server import Behaviour, serving


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library.open(tmp_path / "memory", create=True)


def entries(library: Library) -> list[Any]:
    """What stands in CURRENT."""
    path = library.root / "CURRENT.md"
    return list(parse("CURRENT.md", path.read_bytes()).entries) if path.exists() else []


def texts(library: Library) -> list[str]:
    return [entry.text for entry in entries(library)]


def conversation(
    ident: str, *said: str, time: float = 1_777_626_000, title: str = "Boat", **more: Any
) -> dict[str, Any]:
    """A conversation of ChatGPT's, user and assistant in turn."""
    mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    parent = "root"
    for at, text in enumerate(said):
        name = f"{ident}-{at}"
        message = chatgpt_message("assistant" if at % 2 else "user", text, name, time + at)
        mapping[name] = {"id": name, "message": message, "parent": parent, "children": []}
        parent = name
    return {
        "title": title,
        "create_time": time,
        "mapping": mapping,
        "current_node": parent,
        "conversation_id": ident,
        **more,
    }


def saved(folder: Path, content: bytes, name: str = "conversations.json") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


# What a format is told by


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=60)
@given(data=st.data())
def test_a_format_is_told_by_its_content(name: str, data: st.DataObject, tmp_path: Path) -> None:
    file, shape = SHAPES[name]
    made: Made = data.draw(shape.filter(lambda made: made.said or name not in ("claude-code", "notes")))
    path = saved(tmp_path, made.content, file)
    found = format_of(file_input(path, file, file))
    assert found is not None
    assert found.name == name


@settings(max_examples=60)
@given(content=st.binary(max_size=300), name=st.sampled_from(["x.json", "x.jsonl", "x.txt", "x", "x.md", "x.zip"]))
def test_any_bytes_at_all_are_read_or_refused(content: bytes, name: str, tmp_path: Path) -> None:
    path = saved(tmp_path, content, name)
    library = Library.open(tmp_path / "memory", create=True)
    for form in ("", *(one.name for one in FORMATS)):
        try:
            done = library.import_(path, form=form, dry_run=True)
        except BadInput as error:
            assert "\n" not in str(error)
        else:
            assert done.messages == done.added + done.known + sum(done.skipped.values()) + len(done.problems)


def test_an_unknown_format_is_one_line_that_names_the_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, b'{"something": "else"}', "x.json")
    assert main(["-L", str(tmp_path / "memory"), "import", str(path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert all(one.name in said for one in FORMATS)
    assert not (tmp_path / "memory").exists()
    assert main(["-L", str(tmp_path / "memory"), "import", str(path), "--from", "chatgtp"]) == 2
    assert "chatgpt" in capsys.readouterr().err
    assert main(["-L", str(tmp_path / "memory"), "import", str(tmp_path / "nowhere")]) == 2


# ChatGPT


def test_roles_times_titles_and_ids_are_kept(library: Library, tmp_path: Path) -> None:
    path = saved(tmp_path, dumped([conversation("c", "Where is Terna?", "Berth 12.", title='The boat, "Terna" <3>')]))
    library.import_(path)
    first, second = entries(library)
    assert (first.source, second.source) == ("user", "AI")
    assert (first.time, second.time) == ("2026-05-01T09:00:00Z", "2026-05-01T09:00:01Z")
    assert first.signature.get("title") == 'The boat, "Terna" <3>'
    assert first.signature.fields[0][0] == "id"
    assert len({entry.signature.get("id") for entry in (first, second)}) == 2


def test_the_branch_shown_last_comes_in_and_the_others_are_counted(library: Library, tmp_path: Path) -> None:
    one = conversation("c", "Where?", "Here.", "And then?", "There.")
    edited = chatgpt_message("user", "Where exactly?", "edit", 1_777_626_100)
    one["mapping"]["edit"] = {"id": "edit", "message": edited, "parent": "root", "children": ["answer"]}
    answer = chatgpt_message("assistant", "In berth 12.", "answer", 1_777_626_101)
    one["mapping"]["answer"] = {"id": "answer", "message": answer, "parent": "edit", "children": []}
    one["current_node"] = "answer"
    path = saved(tmp_path, dumped([one]))
    done = library.import_(path)
    assert texts(library) == ["Where exactly?", "In berth 12."]
    assert done.skipped == {"other branch": 4}
    library.import_(path, branches=True)
    assert texts(library)[2:] == ["Where?", "Here.", "And then?", "There."]
    assert {entry.signature.get("branch") for entry in entries(library)[2:]} == {"other"}


def test_a_parent_that_is_not_in_the_file_hides_nothing(library: Library, tmp_path: Path) -> None:
    one = conversation("c", "First", "Second", "Third")
    one["mapping"]["c-2"]["parent"] = "deleted"
    one["mapping"]["c-1"]["parent"] = "c-1"  # and a circle
    done = library.import_(saved(tmp_path, dumped([one])))
    assert sorted(texts(library)) == ["First", "Second", "Third"]
    assert done.messages == 3


def test_conversations_come_in_oldest_first(library: Library, tmp_path: Path) -> None:
    newest_first = [conversation(f"c{at}", f"said {at}", time=1_777_626_000 - at * 86_400) for at in range(5)]
    library.import_(saved(tmp_path, dumped(newest_first)))
    assert texts(library) == [f"said {at}" for at in reversed(range(5))]


def test_a_broken_conversation_is_listed_and_the_others_come_in(library: Library, tmp_path: Path) -> None:
    content = dumped([conversation(f"c{at}", f"question {at}", f"answer {at}") for at in range(3)])
    broken = content.replace(b'"question 1"', b'"question "1"')
    done = library.import_(saved(tmp_path, broken))
    assert texts(library) == ["question 0", "answer 0", "question 2", "answer 2"]
    [problem] = done.problems
    assert "conversation 2" in problem.place
    place = broken.index(b'"question "1"') + len('"question "')
    assert f"at byte {place:,};" in problem.why
    again = library.import_(saved(tmp_path, content))  # a whole file later
    assert (again.added, again.known) == (2, 4)


def test_a_file_that_is_cut_off_gives_what_it_has(library: Library, tmp_path: Path) -> None:
    content = dumped([conversation(f"c{at}", f"question {at}", f"answer {at}") for at in range(3)])
    done = library.import_(saved(tmp_path, content[: content.index(b"answer 2")]))
    assert texts(library) == ["question 0", "answer 0", "question 1", "answer 1", "question 2"]
    assert re.fullmatch(r"unterminated string starting at byte [0-9,]+; .*", done.problems[0].why)
    assert len(done.problems) == 1
    assert done.exit_code == 5


def test_a_huge_message_a_bom_and_nan_are_no_trouble(library: Library, tmp_path: Path) -> None:
    long = "wind and tide 🚲 " * 300_000
    one = conversation("c", long, "yes", update_time=float("nan"))
    one["mapping"]["c-1"]["message"]["create_time"] = float("nan")
    done = library.import_(saved(tmp_path, b"\xef\xbb\xbf" + dumped([one])))
    assert texts(library) == [long, "yes"]
    assert entries(library)[1].time == "2026-05-01"  # the conversation's own day
    assert not done.problems


def test_empty_titles_and_conversations_without_messages(library: Library, tmp_path: Path) -> None:
    rows = [conversation("a", title=""), conversation("b", "hello", title=""), {"title": None, "mapping": {}}, None, 3]
    done = library.import_(saved(tmp_path, dumped(rows)))
    assert texts(library) == ["hello"]
    assert entries(library)[0].signature.get("title") == ""
    assert [problem.place for problem in done.problems] == [
        "conversations.json, conversation 4",
        "conversations.json, conversation 5",
    ]


def of_chatgpt(said: list[str]) -> bytes:
    """A chain as deep as it is long, and an edit of its very first question."""
    whole = conversation("c", *said)
    edited = chatgpt_message("user", "an edit that was given up", "edit", 1)
    whole["mapping"]["edit"] = {"id": "edit", "message": edited, "parent": "root", "children": []}
    return dumped([whole])


def of_claude(said: list[str]) -> bytes:
    """A list in which each message names the one before as its parent."""
    rows = [
        {"uuid": f"m{at}", "parent_message_uuid": f"m{at - 1}", "sender": "assistant" if at % 2 else "human",
         "content": [{"type": "text", "text": text}], "created_at": "2026-05-01T09:00:00Z"}
        for at, text in enumerate(said)
    ]  # fmt: skip
    rows[0]["parent_message_uuid"] = "00000000-0000-4000-8000-000000000000"
    rows.append({**rows[1], "uuid": "edit", "content": [{"type": "text", "text": "another answer, given up"}]})
    whole = {"uuid": "c", "name": "Boat", "chat_messages": rows, "current_leaf_message_uuid": f"m{len(said) - 1}"}
    return dumped([whole])


def of_claude_code(said: list[str]) -> bytes:
    """A session in which a tool is called between any two messages."""
    rows: list[Any] = []
    for at, text in enumerate(said):
        role = "assistant" if at % 2 else "user"
        base = {"type": role, "uuid": f"u{at}", "parentUuid": f"u{at - 1}", "isSidechain": False, "sessionId": "s"}
        rows.append({**base, "message": {"role": role, "content": text}})
        used = [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}]
        rows.append({**base, "type": "assistant", "uuid": f"t{at}", "message": {"role": "assistant", "content": used}})
    return lines(rows)


PEAK = """
import re, resource, sys
from infinimem.cli import main
code = main(sys.argv[1:])
try:  # the most that this process alone has held: what `resource` says is at least what its parent held
    peak = int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
except OSError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(peak, file=sys.stderr)
sys.exit(code)
"""
LONG = {"chatgpt": of_chatgpt, "claude": of_claude, "claude-code": of_claude_code}


@pytest.mark.parametrize("form", LONG)
@pytest.mark.parametrize("number", [3_000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_one_conversation_as_long_as_anybody_has_had(tmp_path: Path, form: str, number: int) -> None:
    said = [f"word {at} of many" for at in range(number)]
    name = "session.jsonl" if form == "claude-code" else "conversations.json"
    path = saved(tmp_path, LONG[form](said), name)
    command = ["-L", str(tmp_path / "memory"), "import", str(path), "--json"]
    done = subprocess.run([sys.executable, "-c", PEAK, *command], capture_output=True, text=True, check=True)
    value = json.loads(done.stdout)
    assert (value["added"], value["problems"]) == (number, [])
    assert sum(value["skipped"].values()) == (number if form == "claude-code" else 1)
    megabytes = int(done.stderr.split()[-1]) / 1024
    assert megabytes < 300, f"{megabytes:.0f} MB"
    library = Library.open(tmp_path / "memory")
    assert texts(library) == said
    assert library.import_(path).known == number


# Other formats


def test_a_changed_memory_of_mem0_is_a_new_entry(library: Library, tmp_path: Path) -> None:
    row = {"id": "i", "memory": "Maya works at Fjord Labs", "hash": "1", "created_at": "2025-09-01T10:00:00+02:00"}
    library.import_(saved(tmp_path, dumped({"results": [row]}), "mem0.json"))
    row |= {"memory": "Maya works at Nordlys", "hash": "2", "updated_at": "2026-05-01T00:00:00Z"}
    done = library.import_(saved(tmp_path, dumped({"results": [row]}), "mem0.json"))
    assert (done.added, done.known) == (1, 0)
    assert [entry.time for entry in entries(library)] == ["2025-09-01T08:00:00Z", "2026-05-01T00:00:00Z"]


@pytest.mark.parametrize(("rows", "times"), [
    (["01/05/2026, 09:12 - Ann: hi", "13/05/2026, 10:00 - Ben: yo"], ["2026-05-01T09:12", "2026-05-13T10:00"]),
    (["5/1/26, 9:12 AM - Ann: hi", "5/13/26, 10:00 PM - Ben: yo"], ["2026-05-01T09:12", "2026-05-13T22:00"]),
    (["[01.05.26, 09:12:33] Ann: hi", "[02.05.26, 09:12:34] Ben: yo"], ["2026-05-01T09:12:33", "2026-05-02T09:12:34"]),
    (["[2026-05-01, 09:12:33] Ann: hi", "[2026-05-02, 09:12] Ben: yo"], ["2026-05-01T09:12:33", "2026-05-02T09:12"]),
    (["[12.3.2022 klo 14.08.18] Ann: hi", "[9.4.2022 klo 14.08] Ben: yo"], ["2022-03-12T14:08:18", "2022-04-09T14:08"]),
    (["01/12/2025, 09:12 - Ann: hi", "02/01/2026, 10:00 - Ben: yo"], ["2025-12-01T09:12", "2026-01-02T10:00"]),
    (["\u200e[01/05/26, 9:12:33\u202fPM] Ann: hi", "[01/06/26, 9:12:34\u202fPM] ~\u202fBen: yo"],
     ["2026-01-05T21:12:33", "2026-01-06T21:12:34"]),
])  # fmt: skip
def test_times_of_chats(library: Library, tmp_path: Path, rows: list[str], times: list[str]) -> None:
    library.import_(saved(tmp_path, "\n".join(rows).encode(), "_chat.txt"))
    assert [entry.time for entry in entries(library)] == times
    assert [entry.source for entry in entries(library)] == ["Ann", "Ben"]
    assert texts(library) == ["hi", "yo"]


IPHONE = (
    "[31.12.23, 10:11:12] The Brandts: \u200eMessages and calls are end-to-end encrypted. No one can read them.\r\n"
    "[31.12.23, 10:12:40] Clara: My number is 0151 \u200e<This message was edited>\r\n"
    "[31.12.23, 10:12:41] Papa: Messages and calls are end-to-end encrypted. So they say\r\n"
)


def test_a_chat_of_an_iphone_is_named_after_its_archive_and_holds_what_people_said(
    library: Library, tmp_path: Path
) -> None:
    archive = tmp_path / "WhatsApp Chat - The Brandts.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("_chat.txt", "\u200e" + IPHONE)
    done = library.import_(archive)
    assert texts(library) == [
        "My number is 0151", "Messages and calls are end-to-end encrypted. So they say"
    ]  # fmt: skip
    assert {entry.signature.get("title") for entry in entries(library)} == {"WhatsApp Chat - The Brandts"}
    assert done.skipped == {"system": 1}
    unpacked = library.import_(saved(tmp_path, IPHONE.encode(), "_chat.txt"))
    assert (unpacked.added, unpacked.known) == (0, 2)


def test_a_chat_that_was_exported_again_adds_its_new_lines(library: Library, tmp_path: Path) -> None:
    rows = ["01/05/26, 09:12 - Ann: ok", "01/05/26, 09:12 - Ann: ok", "01/05/26, 09:13 - Ben: ok\nand on"]
    library.import_(saved(tmp_path, "\n".join(rows).encode(), "Chat with Ben.txt"))
    more = [*rows, "02/05/26, 08:00 - Ann: new"]
    done = library.import_(
        saved(tmp_path, "\r\n".join(more).replace("\nand", "\r\nand").encode(), "Chat with Ben (1).txt")
    )
    assert (done.added, done.known) == (1, 3)


def test_notes_keep_their_title_heading_tags_day_and_links(library: Library, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    (vault / "people").mkdir(parents=True)
    (vault / ".obsidian").mkdir()
    (vault / ".obsidian" / "app.md").write_text("hidden")
    (vault / "people" / "Maya.md").write_text(
        "---\ntags: [work, boat]\naliases: [M]\nemployer: Nordlys\ndate: 2026-05-01\n---\n# Maya\n\n"
        "She sails [[Terna|the boat]] #sailing\nevery Sunday.\n\n## Work\n- staff engineer\n  - since May\n"
        "- on Tuesdays in Bergen\n\n```\n# no heading\n\n- no item\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n"
    )
    (vault / "2026_05_02.md").write_text("- TODO paint the hull\n  id:: 6453-ab\n-\n- met [[Ines]]\n")
    (vault / "picture.png").write_bytes(b"\x89PNG\x00")
    done = library.import_(vault)
    rows = {entry.text: entry for entry in entries(library)}
    assert list(rows) == [
        "aliases: [M]\nemployer: Nordlys", "She sails [[Terna|the boat]] #sailing\nevery Sunday.",
        "staff engineer\n  - since May",
        "on Tuesdays in Bergen", "```\n# no heading\n\n- no item\n```", "| a | b |\n|---|---|\n| 1 | 2 |",
        "TODO paint the hull", "met [[Ines]]",
    ]  # fmt: skip
    sailing = rows["She sails [[Terna|the boat]] #sailing\nevery Sunday."]
    assert sailing.signature.get("tags") == "work+boat+sailing"
    assert (sailing.time, sailing.source, sailing.signature.get("title")) == (
        "2026-05-01",
        "file:people/Maya.md",
        "Maya",
    )
    assert rows["staff engineer\n  - since May"].signature.get("heading") == "Work"
    assert rows["met [[Ines]]"].time == "2026-05-02"
    assert done.skipped == {"empty": 2}


def test_a_library_of_the_papers_package_keeps_its_topics(library: Library, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "maya"
    (folder / "topics").mkdir(parents=True)
    (folder / "rewrite").mkdir()
    head = "---\nid: 2025-01-15_14-30-00_abc123\nsummary: s\ntoken_count: 57\nupdate_log: []\naux: {}\n---\n"
    (folder / "topics" / "2025-01-15_14-30-00_abc123.md").write_text(
        head + "# Melanie and Caroline\n\n- <seq=1785398399,time=empty,source=AI> They are friends.\n\n## Hobbies\n"
        "- <seq=1785398400,time=empty,source=AI> Melanie paints at the lake.\n\n## Support\n"
        "- <seq=1785398402-1785398403,time=8 May 2023,source=AI> Caroline went to a support group.\n"
    )
    (folder / "CURRENT_1.md").write_text("- <seq=1785398500,time=2023-06-01,source=user> Terna has berth 12.\n")
    (folder / "rewrite" / "REWRITE_CURRENT_1.md").write_text("- <seq=1785398500,time=empty,source=AI> A draft.\n")
    library.write("My own note that waits.")
    done = library.import_(tmp_path / "data")
    assert (done.added, done.skipped, done.exit_code) == (4, {"draft": 1}, 0)
    page = library.read("melanie-and-caroline")
    shown = [line.split("> ", 1)[-1] for line in page.lines if line.startswith(("#", "- <"))]
    assert shown == [
        "# Melanie and Caroline", "They are friends.", "## Hobbies", "Melanie paints at the lake.", "## Support",
        "Caroline went to a support group.",
    ]  # fmt: skip
    assert texts(library) == ["My own note that waits.", "Terna has berth 12."]
    assert library.import_(tmp_path / "data").known == 4
    assert not library.check()


def test_our_own_export_is_loaded_as_a_whole(
    library: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library.write(["Terna has berth 12.", "Maya works at Nordlys."], source="user")
    library.flush(planner="lexical")
    library.write("And this waits.")
    path = tmp_path / "memory.jsonl"
    assert main(["-L", str(library.root), "export", "--out", str(path)]) == 0
    other = str(tmp_path / "other")
    assert main(["-L", other, "import", str(path), "--dry-run"]) == 0
    assert "would import 3 entries from memory.jsonl (infinimem)" in capsys.readouterr().out
    assert not Path(other).exists()
    assert main(["-L", other, "import", str(path)]) == 0
    assert "imported 3 entries (seq 1-3) from memory.jsonl (infinimem)" in capsys.readouterr().out
    assert texts(Library.open(other)) == ["And this waits."]
    own = Library.open(tmp_path / "third", create=True)
    own.write("My own.")
    assert (own.import_(path, dry_run=True).added, own.import_(path).added, own.import_(path).added) == (3, 3, 0)
    assert own.import_(path).known == 3
    path.write_bytes(path.read_bytes()[:-20])
    assert main(["-L", other, "import", str(path)]) == 2
    done = own.import_([path, saved(tmp_path, dumped([conversation("c", "hello")]))])
    assert (done.added, len(done.problems), done.exit_code) == (1, 1, 5)


def test_a_zip_is_read_as_it_is_and_says_what_it_leaves(
    library: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", dumped([conversation("c", "hello", "hi")]))
        archive.writestr("user.json", '{"id": "user-1", "email": "x"}')
        archive.writestr("dalle-generations/file-1.webp", b"RIFF")
        archive.writestr("__MACOSX/._conversations.json", b"\x00")
    assert main(["-L", str(library.root), "import", str(path)]) == 0
    said = capsys.readouterr()
    assert "imported 2 entries (seq 1-2) from export.zip: conversations.json (chatgpt)" in said.out
    assert "by user 1, AI 1" in said.out
    assert said.err == (
        "left alone: user.json (your account)\n"
        "next: infinimem flush sorts them into topics; ask and search find them already\n"
    )


def test_a_zip_that_is_damaged_gives_what_can_be_read(library: Library, tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", dumped([conversation(f"c{at}", "hello " * 9000) for at in range(40)]))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))
    done = library.import_(path)
    assert done.added > 0
    assert done.exit_code == 5


def test_sessions_of_agents_below_a_folder(library: Library, tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "-home-maya-boat"
    folder.mkdir(parents=True)
    row = {"type": "user", "uuid": "u1", "sessionId": "s1", "cwd": "/home/maya/boat", "timestamp": "2026-05-01T09:00Z",
           "message": {"role": "user", "content": "Paint the hull"}}  # fmt: skip
    copied = {**row, "sessionId": "s2"}  # a session that was resumed begins with a copy of the old one
    saved(folder, lines([row, {**row, "type": "assistant", "uuid": "u2", "message": {"role": "assistant", "content": [
        {"type": "text", "text": "Done."}]}}]), "s1.jsonl")  # fmt: skip
    saved(
        folder,
        lines([copied, {**copied, "uuid": "u3", "message": {"content": "And the mast"}}]) + b"{oops\n",
        "s2.jsonl",
    )
    done = library.import_(tmp_path / "projects")
    assert texts(library) == ["Paint the hull", "Done.", "And the mast"]
    assert entries(library)[0].signature.get("project") == "boat"
    assert (done.known, [str(problem).partition(": ")[0] for problem in done.problems]) == (
        1,
        ["-home-maya-boat/s2.jsonl:3"],
    )


# Once


def test_ids_are_known_again_after_a_flush_and_after_an_undo(library: Library, tmp_path: Path) -> None:
    rows = [
        conversation(f"c{at}", f'Terna has berth {at}, a, "b" <c>.', title='x, "y" <id=0000000000000>')
        for at in range(8)
    ]
    path = saved(tmp_path, dumped(rows))
    library.import_(path)
    library.flush(planner="lexical")
    assert library.import_(path).added == 0
    library.undo()
    assert library.import_(path).added == 0
    library.flush(planner="lexical")
    rows.append(conversation("new", "Something else"))
    done = library.import_(saved(tmp_path, dumped(rows)))
    assert (done.added, done.known) == (1, 8)


def test_words_that_look_like_an_id_are_only_words(library: Library, tmp_path: Path) -> None:
    library.import_(saved(tmp_path, dumped([conversation("c", "hello")])))
    [entry] = entries(library)
    other = Library.open(tmp_path / "other", create=True)
    other.write(
        [f"<seq=1, id={entry.signature.get('id')}, x=y> hello", f"\n- <seq=1, id={entry.signature.get('id')}> hello"]
    )
    assert other.import_(tmp_path / "conversations.json").added == 1


def test_two_messages_with_one_id_and_other_words_both_come_in(library: Library, tmp_path: Path) -> None:
    one = conversation("c", "first", "second")
    one["mapping"]["c-1"]["message"]["id"] = "c-0"
    path = saved(tmp_path, dumped([one]))
    assert library.import_(path).added == 2
    assert library.import_(path).known == 2


IMPORT = "import sys; from infinimem.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.mark.parametrize("after", [1, 2, 4])
def test_a_killed_import_is_finished_by_the_next_with_nothing_doubled(tmp_path: Path, after: int) -> None:
    rows = [conversation(f"c{at}", *(f"said {at} {number} " + "x" * 500 for number in range(100))) for at in range(60)]
    path = saved(tmp_path, dumped(rows))
    root = tmp_path / "memory"
    library = Library.open(root, create=True)
    process = subprocess.Popen([sys.executable, "-c", IMPORT, "-L", str(root), "import", str(path)])
    current = root / "CURRENT.md"
    while process.poll() is None and not (current.exists() and current.stat().st_size > after * 500_000):
        time.sleep(0.0005)
    process.kill()
    process.wait()
    done = library.import_(path)
    assert done.added + done.known == 6000
    found = entries(library)
    assert len(found) == 6000
    assert len({entry.signature.get("id") for entry in found}) == len({entry.seq for entry in found}) == 6000
    assert not parse("CURRENT.md", current.read_bytes()).problems


def test_half_an_append_that_a_kill_left_makes_nothing_known(library: Library, tmp_path: Path) -> None:
    path = saved(tmp_path, dumped([conversation("c", *(f"said {number}" for number in range(50)))]))
    library.import_(path)
    current, note = library.root / "CURRENT.md", library.root / ".infinimem" / "lock"
    whole = current.read_bytes()
    head = len(b"# CURRENT\n\n")
    current.write_bytes(whole[: len(whole) // 2])
    text = f"append {current.stat().st_ino} 0 {whole[:head].hex()} lf 0 {len(whole) - head}"
    note.write_text(f"{text} {binascii.crc32(text.encode()):08x}")
    assert library.import_(path).added == 50
    assert texts(library) == [f"said {number}" for number in range(50)]


def test_two_imports_at_once_and_a_writer_between_them(tmp_path: Path) -> None:
    rows = [conversation(f"c{at}", *(f"said {at} {number} " + "x" * 900 for number in range(100))) for at in range(60)]
    path = saved(tmp_path, dumped(rows))
    root = tmp_path / "memory"
    library = Library.open(root, create=True)
    command = [sys.executable, "-c", IMPORT, "-L", str(root), "import", str(path), "--json"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    written = 0
    while any(process.poll() is None for process in running):
        written += len(library.write("a note meanwhile"))
    figures = [json.loads(process.communicate()[0]) for process in running]
    assert sum(one["added"] for one in figures) == 6000
    assert all(one["messages"] == one["added"] + one["known"] == 6000 for one in figures)
    found = entries(library)
    assert len(found) == 6000 + written
    assert len({entry.seq for entry in found}) == len(found)
    assert len(IDENTIFIED.findall((root / "CURRENT.md").read_bytes())) == 6000


def test_an_interrupted_import_leaves_whole_entries(tmp_path: Path) -> None:
    rows = [conversation(f"c{at}", *(f"said {at} {number} " + "x" * 500 for number in range(100))) for at in range(60)]
    path = saved(tmp_path, dumped(rows))
    root = tmp_path / "memory"
    Library.open(root, create=True)
    process = subprocess.Popen(
        [sys.executable, "-c", IMPORT, "-L", str(root), "import", str(path)], stderr=subprocess.PIPE
    )
    while process.poll() is None and not (root / "CURRENT.md").exists():
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    said = process.communicate()[1].decode()
    assert process.returncode in (0, 130), said
    assert "Traceback" not in said
    assert set(os.listdir(root / ".infinimem")) <= {".gitignore", "lock", "written.log"}
    assert Library.open(root).import_(path).messages == 6000


def test_a_full_disk_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    rows = [conversation(f"c{at}", *(f"said {at} {number} " + "x" * 500 for number in range(100))) for at in range(60)]
    path = saved(tmp_path, dumped(rows))
    root = tmp_path / "memory"
    Library.open(root, create=True)
    limited = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000)); {IMPORT}"
    done = subprocess.run(
        [sys.executable, "-c", limited, "-L", str(root), "import", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done
    assert "has no room for what is read" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (root / "CURRENT.md").exists()
    assert Library.open(root).import_(path).added == 6000


def test_memories_come_in_oldest_first(library: Library, tmp_path: Path) -> None:
    rows = [{"id": f"{at}", "memory": f"m{at}", "created_at": f"2026-05-{20 - at:02}"} for at in range(5)]
    library.import_(saved(tmp_path, dumped(rows), "mem0.json"))
    assert texts(library) == ["m4", "m3", "m2", "m1", "m0"]


def test_a_dry_run_of_a_library_that_is_not_there_makes_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, dumped([conversation("c", "hello")]))
    assert main(["-L", str(tmp_path / "memory"), "import", str(path), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["added"] == 1
    assert not (tmp_path / "memory").exists()


@given(st.one_of(st.floats(), st.integers(), st.text(), st.datetimes().map(str), st.none(), st.booleans()))
def test_any_time_at_all_is_one_that_an_entry_can_carry(value: Any) -> None:
    from infinimem.store.drafts import checked_time

    checked_time("time", time_of(value), "here")


def test_threads_may_import_into_one_library(library: Library, tmp_path: Path) -> None:
    paths = [saved(tmp_path, dumped([conversation(f"c{at}", *map(str, range(50)))]), f"{at}.json") for at in range(4)]
    threads = [threading.Thread(target=library.import_, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(entries(library)) == 200


def test_a_file_is_opened_anew_for_each_reading(tmp_path: Path) -> None:
    source: Input = file_input(saved(tmp_path, b"abc"), "x", "x")
    assert source.head() == source.head() == b"abc"


def test_what_comes_in_may_be_sorted_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "PORTION", 4)
    rows = [conversation(f"c{at}", f"Terna has berth {at}.", "Oma Hilde turns ninety.") for at in range(5)]
    path = saved(tmp_path, dumped(rows))
    assert main(["-L", str(tmp_path / "memory"), "import", str(path), "--flush"]) == 0
    assert "10 entries sorted into" in capsys.readouterr().out
    library = Library.open(tmp_path / "memory")
    assert texts(library) == []
    assert library.status().buffered == 0
    assert library.import_(path, flush=True).known == 10
    assert not library.check()


# Facts


def telling(request: Request) -> str:
    """A model that takes one fact out of each turn that names a berth."""
    turns = re.findall(r"^\[(\d+)\] .*?(?:user|AI): (.*berth (\d+).*)$", request.messages[-1].content, re.MULTILINE)
    rows = [
        {"text": f"Terna has berth {berth}.", "quote": words, "turn": int(seq), "time": ""}
        for seq, words, berth in turns
    ]
    return json.dumps({"entries": rows})


def test_facts_are_taken_out_once_and_of_what_a_kill_left_without(tmp_path: Path) -> None:
    rows = [
        conversation(f"c{at}", f"All is paid, Terna has berth {at} now, so we sail", "Fine.", time=1_777_626_000 + at)
        for at in range(10, 14)
    ]
    path = saved(tmp_path, dumped(rows))
    calls: list[Request] = []

    def dying(request: Request) -> str:
        calls.append(request)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return telling(request)

    library = Library.open(tmp_path / "memory", create=True, model=Scripted(dying))
    with pytest.raises(KeyboardInterrupt):
        library.import_(path, extract=True)
    assert [text for text in texts(library) if text.endswith(".") and "berth" in text] == [
        "Terna has berth 10.",
        "Terna has berth 11.",
    ]
    asked: list[Request] = []

    def noting(request: Request) -> str:
        asked.append(request)
        return telling(request)

    library = Library.open(tmp_path / "memory", model=Scripted(noting))
    library.flush(planner="lexical")
    done = library.import_(path, extract=True)
    assert done.extracted is not None
    assert [fact.text for fact in done.extracted.facts] == ["Terna has berth 12.", "Terna has berth 13."]
    assert len(asked) == 2
    assert (done.added, done.known) == (2, 6)
    again = library.import_(path, extract=True)
    assert again.extracted is not None
    assert not again.extracted.facts
    assert len(asked) == 2
    facts = [entry for entry in entries(library) if entry.signature.get("links")]
    words = {entry.seq: entry.text for entry in entries(library)}
    assert all(re.fullmatch(r"\d+:from(?:\+\d+:from)*", entry.signature.get("links")) for entry in facts)
    assert any("berth 13" in words.get(int(entry.signature.get("links").split(":")[0]), "") for entry in facts)


def test_a_model_that_fails_costs_no_word_and_is_asked_again_next_time(tmp_path: Path) -> None:
    path = saved(tmp_path, dumped([conversation("c", "All is paid, Terna has berth 12 now, so we sail")]))

    def down(request: Request) -> str:
        raise ModelFailed("down")

    done = Library.open(tmp_path / "memory", create=True, model=Scripted(down)).import_(path, extract=True)
    assert (done.added, done.exit_code) == (1, 4)
    done = Library.open(tmp_path / "memory", model=Scripted(telling)).import_(path, extract=True)
    assert (done.added, done.known, done.exit_code) == (0, 1, 0)
    assert done.extracted is not None
    assert [fact.text for fact in done.extracted.facts] == ["Terna has berth 12."]


def test_without_a_model_extract_is_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, dumped([conversation("c", "hello")]))
    assert main(["-L", str(tmp_path / "memory"), "import", str(path), "--extract"]) == 2
    assert "no model is configured" in capsys.readouterr().err
    assert not (tmp_path / "memory").exists()


def test_json_of_an_import_with_facts_and_a_flush_is_what_its_schema_says(tmp_path: Path) -> None:
    path = saved(tmp_path, dumped([conversation("c", "All is paid, Terna has berth 12 now, so we sail")]))
    with serving(Behaviour(lambda payload: '{"entries": []}')) as address:
        command = ["-L", str(tmp_path / "m"), "import", str(path), "--extract", "--flush", "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "infinimem", *command],
            env={**os.environ, "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "none", "INFINIMEM_MODEL": "scripted"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    value = json.loads(done.stdout)
    jsonschema.validate(value, schema_of("import"))
    jsonschema.validate(value["flush"], schema_of("flush"))
    assert value["extracted"] == []
    assert value["usage"]["calls"] >= 1


# What was forgotten


def test_what_was_forgotten_does_not_come_back_unasked(
    library: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, dumped([conversation("c", "The key lies under the Quetzal.", "Noted.", "Thanks.")]))
    library.import_(path)
    library.flush()
    library.forget([1])
    files = [file.read_bytes() for file in library.root.rglob("*") if file.is_file()]
    own = id_of("chatgpt c c-0").encode()
    assert not any(b"uetzal" in content or own in content for content in files)
    command = ["-L", str(library.root), "import", str(path)]
    assert main(command) == 0
    assert "1 forgotten before, left out (--again to take them)" in capsys.readouterr().out
    done = library.import_(path)
    assert (done.added, done.known, done.skipped, done.messages) == (0, 2, {"forgotten before": 1}, 3)
    assert not library.search("Quetzal")
    assert main([*command, "--again"]) == 0
    assert [hit.text for hit in library.search("Quetzal", 1)] == ["The key lies under the Quetzal."]
    assert library.import_(path).known == 3
    library.forget([4])  # and once more: nothing is left of the first time either
    assert library.import_(path).skipped == {"forgotten before": 1}
    assert not library.check()


def test_an_export_does_not_bring_back_what_was_forgotten_after_it_was_loaded(library: Library, tmp_path: Path) -> None:
    other = Library.open(tmp_path / "other", create=True)
    other.write(["The key lies under the Quetzal.", "The boat has berth 12."])
    other.export("jsonl", tmp_path / "other.jsonl")
    library.write("Something of its own.")
    library.import_(tmp_path / "other.jsonl")
    library.forget([2])
    done = library.import_(tmp_path / "other.jsonl")
    assert (done.added, done.known) == (0, 1)
    assert any("1 of its entries were forgotten here" in note for note in done.notes)
    assert not library.search("Quetzal")
    assert library.import_(tmp_path / "other.jsonl", again=True).added == 1
    assert library.search("Quetzal", 1)


# Versions


def test_a_changed_memory_of_mem0_takes_the_place_of_the_one_before(library: Library, tmp_path: Path) -> None:
    row: dict[str, Any] = {"id": "i", "memory": "Maya works at Fjord Labs", "hash": "1", "created_at": "2025-09-01"}
    about = {"score": 3, "sure": True, "where": ["Bergen"], "expires": "soon"}
    path = saved(tmp_path, dumped([{**row, "metadata": about, "expiration_date": "2031-05-01"}]), "mem0.json")
    library.import_(path)
    assert dict(entries(library)[0].signature.fields).items() >= {
        "score": "3", "sure": "true", "where": '["Bergen"]', "their_expires": "soon", "expires": "2031-05-01",
    }.items()  # fmt: skip
    library.flush()
    row |= {"memory": "Maya works at Nordlys", "hash": "2", "updated_at": "2026-05-01"}
    saved(tmp_path, dumped([row]), "mem0.json")
    assert library.import_(path).added == 1
    assert entries(library)[0].signature.get("supersedes") == "1"
    library.flush()
    assert [hit.text for hit in library.search("Maya works", 5)] == ["Maya works at Nordlys"]
    assert library.trace(1).by == 2
    row |= {"memory": "Maya studies", "hash": "0", "updated_at": "2024-05-01"}  # from an older export
    saved(tmp_path, dumped([row]), "mem0.json")
    library.import_(path)
    assert entries(library)[0].signature.get("supersedes") == ""


def test_a_history_of_mem0_becomes_what_replaced_what(library: Library, tmp_path: Path) -> None:
    def event(number: int, memory: str, kind: str, old: str | None, new: str | None, day: int) -> dict[str, Any]:
        return {
            "id": f"h{number}", "memory_id": memory, "old_memory": old, "new_memory": new, "event": kind,
            "created_at": f"2026-03-0{day}T10:00:00+00:00", "updated_at": None, "is_deleted": int(kind == "DELETE"),
        }  # fmt: skip

    rows = [
        event(3, "a", "UPDATE", "Berth 12", "Berth 14", 3),
        event(1, "a", "ADD", None, "Berth 12", 1),
        event(2, "b", "ADD", None, "Owes Ines 50 kr", 2),
    ]
    path = saved(tmp_path, dumped(rows), "history.json")
    assert (library.import_(path).added, library.import_(path).known) == (3, 3)
    assert texts(library) == ["Berth 12", "Owes Ines 50 kr", "Berth 14"]
    library.flush()
    assert (library.trace(1).fate, library.trace(1).by) == ("superseded", 3)
    saved(tmp_path, dumped([*rows, event(4, "b", "DELETE", "Owes Ines 50 kr", None, 4)]), "history.json")
    done = library.import_(path)
    assert (done.messages, done.added, done.skipped) == (4, 1, {"deleted": 1})
    library.flush()
    assert [hit.text for hit in library.search("Ines owes berth", 5)] == ["Berth 14"]
    assert library.trace(2).fate == "superseded"
    assert not library.check()


# Messengers


def test_who_is_who_in_a_slack_export(library: Library, tmp_path: Path) -> None:
    users = [{"id": "U1", "name": "ann", "profile": {"real_name": "Ann Åsen"}}, {"id": "U2", "name": "ben"}]
    day = [
        {"type": "message", "user": "U1", "text": "<@U2> see <https://x.no|the berth> &amp; go", "ts": "1777626000.1"},
        {"type": "message", "user": "U2", "text": "ok", "ts": "1777626001.2", "thread_ts": "1777626000.1"},
    ]
    top = tmp_path / "export"
    (top / "general").mkdir(parents=True)
    saved(top, dumped(users), "users.json")
    saved(top / "general", dumped(day), "2026-05-01.json")
    done = library.import_(top, form="slack")
    assert (done.added, done.messages, done.problems) == (2, 3, ())
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        for name in ("general/2026-05-01.json", "users.json"):
            archive.write(top / name, name)
    other = Library.open(tmp_path / "other", create=True)
    assert other.import_(tmp_path / "export.zip").added == 2
    for here in (library, other):
        said = [(entry.source, entry.text, entry.signature.get("title")) for entry in entries(here)]
        assert said == [("Ann Åsen", "@ben see the berth (https://x.no) & go", "general"), ("ben", "ok", "general")]
        assert entries(here)[1].signature.get("thread") == "1777626000.1"
    assert library.import_(tmp_path / "export.zip").known == 2


def test_an_edited_message_takes_the_place_of_what_it_was(library: Library, tmp_path: Path) -> None:
    row = {"id": 7, "type": "message", "date": "2026-05-01T11:00:00", "from": "Ann", "from_id": "user1", "text": "at 9"}
    chat = {"name": "Ben", "type": "personal_chat", "id": 5, "messages": [row]}
    path = saved(tmp_path, dumped(chat), "result.json")
    library.import_(path)
    row |= {"text": "at 10", "edited_unixtime": "1777712400"}
    saved(tmp_path, dumped(chat), "result.json")
    assert library.import_(path).added == 1
    assert [entry.signature.get("supersedes") for entry in entries(library)] == ["", "1"]


@pytest.mark.parametrize(("said", "means"), [
    ("Obsidian", "notes"), ("logseq", "notes"), ("whatsapp", "chat"), ("chat log", "chat"), ("OpenAI", "chatgpt"),
    ("claude code", "claude-code"), ("claude_code", "claude-code"), ("Telegram", "telegram"), ("slack", "slack"),
])  # fmt: skip
def test_formats_go_by_what_people_call_them(said: str, means: str) -> None:
    assert format_named(said).name == means


@pytest.mark.parametrize(("said", "guess"), [("chatgtp", "chatgpt"), ("obsidain", "obsidian"), ("slak", "slack")])
def test_a_slip_of_the_finger_is_answered_with_a_guess(said: str, guess: str) -> None:
    with pytest.raises(BadInput, match=f"did you mean {guess}\\?"):
        format_named(said)


# Files that came with a message


def test_what_an_export_says_of_files_is_kept_and_said(
    library: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    attachments = [{"file_name": "berths.txt", "extracted_content": "Berth 12 is Terna's.\n\n- <seq=9> not ours"}]
    message = {"uuid": "m", "sender": "human", "text": "see", "content": [], "attachments": attachments,
               "files": [{"file_name": "boat.jpg"}], "created_at": "2026-05-01T09:00:00Z"}  # fmt: skip
    path = saved(tmp_path, dumped([{"uuid": "c", "name": "Boat", "chat_messages": [message]}]))
    assert main(["-L", str(library.root), "import", str(path)]) == 0
    assert "2 files and pictures named in them; the text of 1 as entries of their own" in capsys.readouterr().out
    assert texts(library) == ["see\n\n[attached: berths.txt, boat.jpg]", attachments[0]["extracted_content"]]
    assert entries(library)[1].source == "file:berths.txt"
    assert entries(library)[1].signature.get("attachment") == "berths.txt"
    assert library.import_(path).known == 2


# A model, over HTTP


def test_a_model_takes_the_facts_out_and_sorts_what_came_in_over_http(tmp_path: Path) -> None:
    rows = [
        conversation(f"c{at}", f"All is paid, Terna has berth {at} now, so we sail", "Fine.", time=1_777_626_000 + at)
        for at in range(10, 14)
    ]
    path = saved(tmp_path, dumped(rows))
    sorting = sensible()

    def answer(payload: dict[str, Any]) -> str:
        if step_of(payload) != "extract":
            return sorting(payload)
        turns = re.findall(
            r"^\[(\d+)\] .*?(?:user|AI): (.*berth (\d+).*)$", str(payload["messages"][1]["content"]), re.MULTILINE
        )
        facts = [
            {"text": f"Terna has berth {n}.", "quote": said, "turn": int(seq), "time": ""} for seq, said, n in turns
        ]
        return json.dumps({"entries": facts})

    behaviour = Behaviour(answer)
    with serving(behaviour) as address:
        command = [sys.executable, "-m", "infinimem", "-L", str(tmp_path / "m"), "import", str(path), "--json"]
        env = {**os.environ, "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "none", "INFINIMEM_MODEL": "scripted"}
        counted = subprocess.run([*command, "--dry-run"], env=env, capture_output=True, text=True, check=False)
        assert (counted.returncode, len(behaviour.requests)) == (0, 0)
        assert json.loads(counted.stdout)["sources"] == {"user": 4, "AI": 4}
        done = subprocess.run([*command, "--extract", "--flush"], env=env, capture_output=True, text=True, check=False)
        steps = [step_of(payload) for payload in behaviour.requests]
        again = subprocess.run([*command, "--extract", "--flush"], env=env, capture_output=True, text=True, check=False)
        assert len(behaviour.requests) == len(steps)
    value = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert [fact["text"] for fact in value["extracted"]] == [f"Terna has berth {at}." for at in range(10, 14)]
    assert {"extract", "rewrite", "route"} <= set(steps)
    assert value["flush"]["planner"] == "model"
    assert json.loads(again.stdout)["known"] == 8
    library = Library.open(tmp_path / "m")
    assert library.status().buffered == 0
    assert any(row.topic == "terna" for row in library.catalog()), [row.topic for row in library.catalog()]
    assert not library.check()


def test_a_file_of_another_format_is_said_to_look_like_it(
    library: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, dumped([conversation("c", "Terna has berth 12.")]))
    assert main(["-L", str(library.root), "import", "--from", "claude", str(path)]) == 1
    assert "it looks like ChatGPT's export: --from chatgpt" in capsys.readouterr().err
    plain = saved(tmp_path, b"{}", "plain.json")
    assert main(["-L", str(library.root), "import", "--from", "claude", str(plain)]) == 1
    assert "nor does it look like any other format" in capsys.readouterr().err


def test_a_number_of_thousands_of_digits_is_called_so(library: Library, tmp_path: Path) -> None:
    said = [conversation("a", "Before.", n=12345678), conversation("c", "Terna has berth 12.")]
    content = dumped(said).replace(b"12345678", b"9" * 5000)
    done = library.import_(saved(tmp_path, content))
    assert texts(library) == ["Before.", "Terna has berth 12."]
    assert [one.why.partition(" at byte")[0] for one in done.problems] == ["a number of thousands of digits"]
    line = b'{"role": "user", "n": ' + b"9" * 5000 + b"}\n"
    done = library.import_(saved(tmp_path, line, "memory.jsonl"), form="mcp-memory")
    assert [one.why for one in done.problems] == ["this cannot be read (a number of thousands of digits)"]


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_chat_in_utf_16_is_read_or_refused_in_a_sentence(library: Library, tmp_path: Path, coding: str) -> None:
    chat = "01/05/26, 09:12 - Ann: Berth 12 🚲\r\n01/05/26, 09:13 - Ben: and 会\r\n" * 3000
    marked = chat if coding == "utf-16" else f"\ufeff{chat}"
    done = library.import_(saved(tmp_path, marked.encode(coding), "chat.txt"))
    assert (done.added, done.problems) == (6000, ())
    assert "Berth 12 🚲" in texts(library)
    if coding != "utf-16":
        bare = library.import_(saved(tmp_path, chat.encode(coding), "bare.txt"))
        assert (bare.added, len(bare.problems)) == (0, 1)
        assert "save it as UTF-8" in bare.problems[0].why


def test_files_that_come_with_an_export_are_called_what_they_are(
    library: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", dumped([conversation("c", "Terna has berth 12.")]))
        archive.writestr("user.json", "{}")
        archive.writestr("shared_conversations.json", "[]")
        archive.writestr("odd.json", "{}")
    assert main(["-L", str(library.root), "import", str(path)]) == 0
    said = capsys.readouterr().err
    assert "left alone: user.json (your account), shared_conversations.json (links that you shared)" in said
    assert "no messages of a known format in export.zip: odd.json" in said


def test_files_that_a_chat_names_are_counted(library: Library, tmp_path: Path) -> None:
    chat = (
        "01/05/26, 09:12 - Ann: \u200eIMG-20260501-WA0001.jpg (file attached)\nOur berth\n"
        "01/05/26, 09:13 - Ben: \u200e<attached: 00000012-PHOTO.jpg>\n01/05/26, 09:14 - Ben: \u200e<Media omitted>\n"
        "01/05/26, 09:15 - Ann: \u200e<Media omitted>\nThe engine\n01/05/26, 09:16 - Ann: not <attached> here\n"
    )
    done = library.import_(saved(tmp_path, chat.encode(), "chat.txt"))
    assert (done.added, done.attached, done.skipped) == (4, 3, {"media left out": 1})
    assert library.import_(tmp_path / "chat.txt").added == 0


def test_what_a_note_shows_is_counted_and_its_aliases_are_kept(library: Library, tmp_path: Path) -> None:
    note = (
        "---\naliases: [The boat, T]\ntags: [boat]\n---\n![[berth 12.jpg|200]] and ![plan](img/plan.pdf \"Plan\")\n\n"
        "![[Another note]] [[Terna|her]] ![](https://example.org/a/b.png)\n"
    )  # fmt: skip
    done = library.import_(saved(tmp_path, note.encode(), "Terna.md"))
    assert (done.added, done.attached) == (3, 3)
    assert "aliases: [The boat, T]" in texts(library)


def test_what_an_export_s_source_has_forgotten_comes_in_by_no_way(library: Library, tmp_path: Path) -> None:
    """Neither by an older export, nor by the file that its source had it from, nor by an export of this library."""
    path = saved(tmp_path, dumped([conversation("c", "The key lies under the Quetzal.", "Noted.", "Thanks.")]))
    source = Library.open(tmp_path / "source", create=True)
    source.import_(path)
    source.write(["The attic has nine windows.", "The boat has berth 12."])
    source.flush()
    source.export("jsonl", tmp_path / "older.jsonl")
    source.forget([1, 4])
    source.export("jsonl", tmp_path / "newer.jsonl")
    library.write("Something of its own.")
    done = library.import_(tmp_path / "newer.jsonl")
    assert any("2 entries were forgotten where it comes from" in note for note in done.notes)
    assert library.import_(path).skipped == {"forgotten before": 1}
    older = library.import_(tmp_path / "older.jsonl")
    assert (older.added, older.known) == (0, 3)
    assert any("2 of its entries were forgotten here" in note for note in older.notes)
    assert not any(b"uetzal" in file.read_bytes() for file in library.root.rglob("*") if file.is_file())
    before = sorted(file.read_bytes() for file in (library.root / "evidence").iterdir())
    assert library.import_(tmp_path / "newer.jsonl").added == 0
    assert sorted(file.read_bytes() for file in (library.root / "evidence").iterdir()) == before
    assert not library.check()
    library.export("jsonl", tmp_path / "third.jsonl")
    third = Library.open(tmp_path / "third", create=True)
    third.write("Mine.")
    third.import_(tmp_path / "third.jsonl")
    assert third.import_(path).skipped == {"forgotten before": 1}
    assert third.import_(tmp_path / "older.jsonl").added == 0
    assert third.import_(tmp_path / "older.jsonl", again=True).added == 2
    assert not third.check()


def test_what_came_from_a_library_that_has_forgotten_it_since_is_named(library: Library, tmp_path: Path) -> None:
    source = Library.open(tmp_path / "source", create=True)
    source.write(["The attic has nine windows.", "The boat has berth 12."])
    source.export("jsonl", tmp_path / "older.jsonl")
    source.forget([1])
    source.export("jsonl", tmp_path / "newer.jsonl")
    library.write("Something of its own.")
    library.import_(tmp_path / "older.jsonl")
    notes = library.import_(tmp_path / "newer.jsonl").notes
    assert any("2 came from there before; to forget it here, too: infinimem forget 2" in note for note in notes)
    library.forget([2])
    assert not any("to forget it" in note for note in library.import_(tmp_path / "newer.jsonl").notes)
    assert library.import_(tmp_path / "older.jsonl").added == 0


def test_an_export_that_comes_home_forgets_nothing_twice(library: Library, tmp_path: Path) -> None:
    library.write(["The attic has nine windows.", "The boat has berth 12."])
    library.flush()
    library.forget([1])
    library.export("jsonl", tmp_path / "own.jsonl")
    before = sorted(file.read_bytes() for file in (library.root / "evidence").iterdir())
    assert library.import_(tmp_path / "own.jsonl").added == 0
    assert sorted(file.read_bytes() for file in (library.root / "evidence").iterdir()) == before
