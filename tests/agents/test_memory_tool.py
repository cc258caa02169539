"""The memory tool: Anthropic's own implementation beside ours, command for command; and that no invariant breaks."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem import Library
from infinimem.agents.memory_tool import AsyncMemoryTool, MemoryTool, Refused, human
from infinimem.model import Filter
from infinimem.store.evidence import all_records, retirement
from tests.conftest import NIGHTLY
from tests.faults.library_state import assert_conserved
from tests.readers.scripts import library_of

tools = pytest.importorskip("anthropic.lib.tools")
NOW = datetime(2026, 5, 2, 8, tzinfo=UTC)


class Theirs(tools._beta_builtin_memory_tool.BetaLocalFilesystemMemoryTool):  # type: ignore[misc, name-defined]
    """Anthropic's tool over files."""


class Ours(MemoryTool, tools.BetaAbstractMemoryTool):  # type: ignore[misc, name-defined]
    """Our commands behind Anthropic's base class, as the module's documentation shows it."""

    refused = tools.ToolError


class OursAsync(AsyncMemoryTool, tools.BetaAsyncAbstractMemoryTool):  # type: ignore[misc, name-defined]
    """The same for async code."""

    refused = tools.ToolError


def said(tool: Any, command: dict[str, Any]) -> str:
    """What a command gives, or the message of its refusal, through Anthropic's own `call`."""
    try:
        return str(tool.call(command))
    except tools.ToolError as refusal:
        return f"refused: {refusal}"


def opened(path: Path) -> Library:
    return Library.open(path / "memory", create=True, clock=lambda: NOW)


# As files


NOTES = "# Preferences\n\n- likes tea\n- lives in Bergen\n  since 2019\n\nFree words.\n"
FILES: list[dict[str, Any]] = [
    {"command": "create", "path": "/memories/notes.md", "file_text": NOTES},
    {"command": "create", "path": "/memories/notes.md", "file_text": "again"},
    {"command": "view", "path": "/memories/notes.md"},
    {"command": "view", "path": "/memories/notes.md", "view_range": [2, 4]},
    {"command": "view", "path": "/memories/notes.md", "view_range": [5, -1]},
    {"command": "str_replace", "path": "/memories/notes.md", "old_str": "likes tea", "new_str": "likes coffee"},
    {"command": "str_replace", "path": "/memories/notes.md", "old_str": "- l", "new_str": "- L"},
    {"command": "str_replace", "path": "/memories/notes.md", "old_str": "absent", "new_str": "x"},
    {"command": "str_replace", "path": "/memories/none.md", "old_str": "a", "new_str": "b"},
    {"command": "insert", "path": "/memories/notes.md", "insert_line": 3, "insert_text": "- has a cat\n"},
    {"command": "insert", "path": "/memories/notes.md", "insert_line": 0, "insert_text": "First.\n"},
    {"command": "insert", "path": "/memories/notes.md", "insert_line": 99, "insert_text": "far"},
    {"command": "insert", "path": "/memories/none.md", "insert_line": 0, "insert_text": "x"},
    {"command": "view", "path": "/memories/notes.md"},
    {"command": "create", "path": "/memories/work/plan.xml", "file_text": "<plan>\n  <step>one</step>\n</plan>"},
    {"command": "view", "path": "/memories/work/plan.xml"},
    {"command": "rename", "old_path": "/memories/notes.md", "new_path": "/memories/me/tea.md"},
    {"command": "view", "path": "/memories/notes.md"},
    {"command": "view", "path": "/memories/me/tea.md"},
    {"command": "rename", "old_path": "/memories/nothing.md", "new_path": "/memories/x.md"},
    {"command": "rename", "old_path": "/memories/me/tea.md", "new_path": "/memories/work/plan.xml"},
    {"command": "rename", "old_path": "/memories", "new_path": "/memories/x"},
    {"command": "rename", "old_path": "/memories/me", "new_path": "/memories/you"},
    {"command": "view", "path": "/memories/you/tea.md"},
    {"command": "str_replace", "path": "/memories/you", "old_str": "a", "new_str": "b"},
    {"command": "delete", "path": "/memories/work"},
    {"command": "delete", "path": "/memories/work"},
    {"command": "delete", "path": "/memories"},
    {"command": "view", "path": "/etc/passwd"},
    {"command": "view", "path": "/memories/../../etc/passwd"},
    {"command": "create", "path": "/memories/../escape.md", "file_text": "x"},
    {"command": "create", "path": "/memories/empty.md", "file_text": ""},
    {"command": "view", "path": "/memories/empty.md"},
]  # fmt: skip


def test_each_command_says_what_anthropics_own_tool_says(tmp_path: Path) -> None:
    ours, theirs = Ours(opened(tmp_path)), Theirs(str(tmp_path / "theirs"))
    for command in FILES:
        assert said(ours, command) == said(theirs, command), command
    assert ours.library.check() == []
    assert ours.to_dict() == {"type": "memory_20250818", "name": "memory"}


def test_each_command_says_the_same_in_async_code(tmp_path: Path) -> None:
    ours, same = Ours(opened(tmp_path / "a")), OursAsync(opened(tmp_path / "b"))

    async def said_async(command: dict[str, Any]) -> str:
        try:
            return str(await same.call(command))
        except tools.ToolError as refusal:
            return f"refused: {refusal}"

    async def all_said() -> list[str]:
        return [await said_async(command) for command in FILES]

    assert asyncio.run(all_said()) == [said(ours, command) for command in FILES]
    assert same.to_dict() == ours.to_dict()
    assert [page.read_bytes() for page in sorted((ours.library.root / "topics").rglob("*.md"))] == [
        page.read_bytes() for page in sorted((same.library.root / "topics").rglob("*.md"))
    ]
    with pytest.raises(tools.ToolError, match="not cleared"):
        asyncio.run(same.clear_all_memory())


def test_async_commands_that_run_side_by_side_all_arrive(tmp_path: Path) -> None:
    tool = AsyncMemoryTool(opened(tmp_path))

    async def all_at_once() -> list[str]:
        made = [
            tool.run({"command": "create", "path": f"/memories/note-{number}.md", "file_text": f"- Fact {number}.\n"})
            for number in range(12)
        ]
        return await asyncio.gather(*made)

    assert len(asyncio.run(all_at_once())) == 12
    assert sorted(hit.text for hit in tool.library.search("fact", k=20)) == sorted(f"Fact {n}." for n in range(12))
    assert tool.library.check() == []
    with pytest.raises(Refused, match="Unknown command: format"):
        asyncio.run(tool.run({"command": "format"}))


def test_a_listing_shows_two_levels_with_sizes(tmp_path: Path) -> None:
    tool = Ours(opened(tmp_path))
    for path in ("a.md", "deep/er/est/b.md", "deep/c.txt", "deep/er/d.md"):
        tool.call({"command": "create", "path": f"/memories/{path}", "file_text": "x\n"})
    listing = said(tool, {"command": "view", "path": "/memories"}).split("\n")
    assert listing[0] == "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:"
    names = [row.split("\t")[1] for row in listing[1:]]
    assert names == [
        "/memories", "/memories/CURRENT.md", "/memories/a.md", "/memories/deep/", "/memories/deep/c.txt",
        "/memories/deep/er/",
    ]  # fmt: skip
    assert all(re.fullmatch(r"[0-9.]+[BKMG]", row.split("\t")[0]) for row in listing[1:])
    inner = said(tool, {"command": "view", "path": "/memories/deep"})
    assert "\t/memories/deep/er/est/" in inner and "b.md" not in inner
    assert [human(size) for size in (0, 512, 1536, 2048, 5 << 20)] == ["0B", "512B", "1.5K", "2K", "5M"]


LINE = st.sampled_from(
    ["- likes tea", "- likes coffee", "- lives in Bergen", "  since 2019", "", "# Heading", "Free words.", "* starred",
     "-   wide", "- [ ] task", "```", "- in a fence?", "    deep", "  - nested", "1. ordered", "---", "<plan>",
     "tëxt 日本語", "- likes tea", "\ttab", "> quoted", "- ", "-", "Setext\n====="]
)  # fmt: skip
TEXT = st.lists(LINE, max_size=8).map("\n".join) | st.lists(LINE, max_size=8).map(lambda lines: "\n".join(lines) + "\n")
PATH = st.sampled_from(["/memories/a.md", "/memories/b.md", "/memories/f/c.txt"])
COMMAND = st.one_of(
    st.fixed_dictionaries({"command": st.just("create"), "path": PATH, "file_text": TEXT}),
    st.fixed_dictionaries({"command": st.just("str_replace"), "path": PATH, "old_str": LINE, "new_str": TEXT}),
    st.fixed_dictionaries(
        {"command": st.just("insert"), "path": PATH, "insert_line": st.integers(0, 6), "insert_text": TEXT}
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATH}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATH, "new_path": PATH}),
)
OWN_REFUSAL = re.compile(
    r"refused: topics/\S+ ?.*(would change how another entry is read|cannot be understood|conflict)"
)


@settings(max_examples=2_000 if NIGHTLY else 40)
@given(first=TEXT, commands=st.lists(COMMAND, max_size=8))
def test_any_commands_leave_the_text_that_files_would_have_and_a_sound_library(
    tmp_path_factory: pytest.TempPathFactory, first: str, commands: list[dict[str, Any]]
) -> None:
    """Every word that was ever in an entry is visible or retired in evidence; what cannot be read back is refused."""
    folder = tmp_path_factory.mktemp("tool")
    ours, theirs = Ours(opened(folder)), Theirs(str(folder / "theirs"))
    commands = [{"command": "create", "path": "/memories/a.md", "file_text": first}, *commands]
    for command in commands:
        if command.get("old_str") == "":
            continue  # no place of its own: both refuse, in other words
        before = {path: path.read_bytes() for path in ours.library.root.rglob("*.md")}
        told = said(ours, command)
        if OWN_REFUSAL.match(told):
            assert {path: path.read_bytes() for path in ours.library.root.rglob("*.md")} == before
            continue
        assert told == said(theirs, command), command
        for path in ("/memories/a.md", "/memories/b.md", "/memories/f/c.txt"):
            view = {"command": "view", "path": path}
            assert said(ours, view) == said(theirs, view), (command, path)
    assert ours.library.check() == []
    records = all_records(ours.library.root)
    assert_conserved(ours.library.root, set(records))


# As memory


def test_a_bullet_becomes_an_entry_and_a_changed_one_replaces_it(tmp_path: Path) -> None:
    library = opened(tmp_path)
    tool = Ours(library)
    tool.call({"command": "create", "path": "/memories/maya.md", "file_text": "# Maya\n\n- Works at Fjord Labs.\n"})
    assert (
        (library.root / "topics/maya.md")
        .read_text()
        .endswith("---\n# Maya\n\n- <seq=1, source=AI, observed=2026-05-02T08:00:00Z> Works at Fjord Labs.\n")
    )
    assert [row.summary for row in library.catalog()] != [""]
    change = {"command": "str_replace", "path": "/memories/maya.md", "old_str": "Fjord Labs", "new_str": "Nordlys"}
    tool.call(change)
    [hit] = library.search("Maya works")
    assert (hit.text, hit.seqs, hit.unit.get("supersedes")) == ("Works at Nordlys.", (2,), "1")
    old = library.trace(1)
    assert (old.here, old.fate, old.by) == (None, "superseded", 2)
    assert [hit.text for hit in library.search("Fjord", filter=Filter(retired=True))] == ["Works at Fjord Labs."]
    tool.call({"command": "delete", "path": "/memories/maya.md"})
    assert library.trace(2).fate == "deleted"
    assert library.recover([2]) == [2]
    assert library.check() == []


def test_fields_that_are_not_the_words_own_go_on(tmp_path: Path) -> None:
    library = library_of(
        tmp_path / "memory", {"maya": [{"text": "Owes 900 crowns.", "time": "2026", "sensitivity": "private"}]}
    )
    tool = Ours(library)
    tool.call({"command": "str_replace", "path": "/memories/maya.md", "old_str": "900", "new_str": "800"})
    [hit] = library.search("owes crowns")
    assert dict(hit.unit.fields) == {
        "source": "AI", "supersedes": "1", "observed": "2026-05-02T08:00:00Z", "sensitivity": "private",
    }  # fmt: skip


def test_a_paragraph_that_goes_is_kept_in_evidence(tmp_path: Path) -> None:
    library = opened(tmp_path)
    tool = Ours(library)
    tool.call({"command": "create", "path": "/memories/notes.txt", "file_text": "The key is under the pot.\n\nMore.\n"})
    tool.call({"command": "str_replace", "path": "/memories/notes.txt", "old_str": "under the pot", "new_str": "gone"})
    assert library.recover([1]) == [1]
    assert library.search("pot")[0].text == "The key is under the pot."
    tool.call({"command": "delete", "path": "/memories/notes.txt"})
    kept = [record.entries[0][1].text for record in all_records(library.root).values() if retirement(record)]
    assert kept == ["The key is gone.", "More."]
    assert library.check() == []


def test_current_is_a_file_too(tmp_path: Path) -> None:
    library = opened(tmp_path)
    library.write(["The ferry leaves at seven.", "It rains."], source="Eirik")
    tool = Ours(library)
    path = "/memories/CURRENT.md"
    view = {"command": "view", "path": path}
    assert said(tool, view).split("\n")[3:5] == ["     3\t- The ferry leaves at seven.", "     4\t- It rains."]
    tool.call({"command": "insert", "path": path, "insert_line": 4, "insert_text": "- Bring boots."})
    tool.call({"command": "str_replace", "path": path, "old_str": "at seven", "new_str": "at eight"})
    tool.call({"command": "str_replace", "path": path, "old_str": "- It rains.\n", "new_str": ""})
    assert library.write("After it.") == [5]
    assert [(hit.seqs, hit.text) for hit in library.search("ferry")] == [((4,), "The ferry leaves at eight.")]
    assert (library.trace(1).fate, library.trace(1).by, library.trace(2).fate) == ("superseded", 4, "deleted")
    assert library.check() == []
    report = library.flush(planner="lexical")
    assert set(report.seqs) == {3, 4, 5}
    assert library.check() == []
    for command in (
        {"command": "delete", "path": path},
        {"command": "rename", "old_path": path, "new_path": "/memories/x"},
    ):
        assert "it is where new entries go" in said(tool, command)
    assert said(tool, {"command": "create", "path": path, "file_text": "x"}) == f"refused: File {path} already exists"


def test_other_entries_keep_every_byte_of_theirs(tmp_path: Path) -> None:
    library = library_of(
        tmp_path / "memory",
        {
            "boat": [
                {"text": f"Fact {number}.", "time": "2026-01", "source": "user", "ns": "sea"} for number in range(9)
            ]
        },
    )
    before = (library.root / "topics/boat.md").read_text().split("\n")
    Ours(library).call(
        {"command": "str_replace", "path": "/memories/boat.md", "old_str": "Fact 4.", "new_str": "Four."}
    )
    after = (library.root / "topics/boat.md").read_text().split("\n")
    changed = [line for line in after if line.startswith("- <") and line not in before]
    assert len(after) == len(before) + 2, "two rows in the update log"
    assert changed == ["- <seq=10, source=AI, supersedes=5, observed=2026-05-02T08:00:00Z, ns=sea> Four."]


def test_a_joined_line_that_is_changed_leaves_as_a_whole(tmp_path: Path) -> None:
    library = opened(tmp_path)
    library.write(["Anna likes tea.", "Anna likes cake."])
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "plan: 1\nsteps:\n- join: {seqs: 1-2, text: Anna likes tea and cake.}\n"
        "- create: {topic: anna, title: Anna}\n- extend: {topic: anna, heading: '', seqs: 1-2}\n"
    )
    library.flush(plan=plan)
    Ours(library).call({"command": "str_replace", "path": "/memories/anna.md", "old_str": "cake", "new_str": "bread"})
    assert [library.trace(seq).by for seq in (1, 2)] == [3, 3]
    assert library.check() == []


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"command": "create", "path": "/memories/x.md", "file_text": "  - <seq=1> forged"}, "without `<seq=…>`"),
    ({"command": "create", "path": "/memories/x.md", "file_text": "<<<<<<< ours\n"}, "conflict"),
    ({"command": "create", "path": "/memories/x.md", "file_text": "a\udc80b"}, "not valid Unicode"),
    ({"command": "create", "path": "/memories/.git/config", "file_text": "x"}, "is no topic id"),
    ({"command": "create", "path": "/memories/a\nb.md", "file_text": "x"}, "is no topic id"),
    ({"command": "create", "path": "/memories/con.md", "file_text": "x"}, "reserved"),
    ({"command": "create", "path": "/memories", "file_text": "x"}, "is no topic id"),
    ({"command": "create", "path": "/memories\\..\\x.md", "file_text": "x"}, "Path must start with /memories"),
    ({"command": "create", "path": "/memories/..\\x.md", "file_text": "x"}, "would escape /memories"),
    ({"command": "create", "path": "/memoriesx/y.md", "file_text": "x"}, "Path must start with /memories"),
    ({"command": "create", "path": "/memories/link/x.md", "file_text": "x"}, "symbolic link"),
    ({"command": "view", "path": "/memories/link/secret.md"}, "does not exist"),
    ({"command": "create", "path": "/memories/x.md"}, "file_text parameter is missing"),
    ({"command": "view"}, "path parameter is missing"),
    ({"command": "insert", "path": "/memories/boat.md", "insert_line": None, "insert_text": "x"}, "insert_line"),
    ({"command": "insert", "path": "/memories/guest.md", "insert_line": 0, "insert_text": "x"}, "never changed"),
    ({"command": "delete", "path": "/memories/guest.md"}, "never changed"),
    ({"command": "insert", "path": "/memories/torn.md", "insert_line": 0, "insert_text": "x"}, "torn.md:"),
    ({"command": "rename", "old_path": "/memories/boat.md", "new_path": "/memories/../b.md"}, "would escape"),
    ({"command": "rename", "old_path": "/memories/boat.md", "new_path": "/memories/CURRENT.md"}, "already exists"),
    ({"command": "format", "path": "/memories"}, "Unknown command: format"),
]  # fmt: skip


def test_what_is_refused_changes_nothing_and_says_why(tmp_path: Path) -> None:
    library = library_of(tmp_path / "memory", {"boat": ["The boat Terna."]})
    (library.root / "topics" / "guest.md").write_text("# A guest\n\nNot ours.\n")
    (library.root / "topics" / "torn.md").write_text("---\nid: torn\ntoken_count: 1\n---\n<<<<<<< a\nx\n>>>>>>> b\n")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    (library.root / "topics" / "link").symlink_to(outside)
    tool = MemoryTool(library)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.md")}
    for command, why in REFUSED:
        with pytest.raises(Refused) as refusal:
            tool.run(command)
        assert why in str(refusal.value), command
        assert {path: path.read_bytes() for path in tmp_path.rglob("*.md")} == before, command
    with pytest.raises(Refused):
        tool.clear_all_memory()


def test_from_async_code_and_with_anthropics_runner_types(tmp_path: Path) -> None:
    tool = Ours(opened(tmp_path))

    async def main() -> list[str]:
        create = {"command": "create", "path": "/memories/a.md", "file_text": "- one\n"}
        first = await asyncio.to_thread(tool.call, create)
        inserts = [{"command": "insert", "path": "/memories/a.md", "insert_line": 1, "insert_text": f"- n{number}"}
                   for number in range(12)]  # fmt: skip
        return [first, *await asyncio.gather(*(asyncio.to_thread(tool.call, one) for one in inserts))]

    assert set(asyncio.run(main())[1:]) == {"The file /memories/a.md has been edited."}
    text = said(tool, {"command": "view", "path": "/memories/a.md"})
    assert all(f"- n{number}" in text for number in range(12)), "no edit was lost to another"
    assert tool.library.check() == []
