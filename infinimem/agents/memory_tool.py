"""Anthropic's memory tool over a library: its six commands on topics and CURRENT, as files below /memories.

    from anthropic import Anthropic
    from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError
    from infinimem import Library
    from infinimem.agents.memory_tool import MemoryTool

    class Memory(MemoryTool, BetaAbstractMemoryTool):
        refused = ToolError

    memory = Memory(Library.open("memory", create=True))
    Anthropic().beta.messages.tool_runner(model=…, messages=…, tools=[memory])

With `AsyncAnthropic`, `AsyncMemoryTool` before `BetaAsyncAbstractMemoryTool` is the same.

The package `anthropic` is not imported here. The texts are those of Anthropic's own implementation. A file is shown
without front matter and signatures; `- ` bullets written into it become entries, a changed one replaces the one it was,
a deleted one is retired: nothing that was said is lost.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from infinimem.consolidate.by_hand import change_text, create_text, remove_topics, rename_topics
from infinimem.errors import InfinimemError
from infinimem.library import Library
from infinimem.model import CURRENT, path_of, topic_of
from infinimem.readers.lines import flat
from infinimem.store.read import list_files, read_file
from infinimem.text.plain import plain_lines

ROOT = "/memories"
DEPTH = 2
"""Levels of folders that a listing shows."""
WIDTH = 6
"""Columns of a line number."""
MOST_LINES = 999_999
ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}")


class Refused(Exception):
    """A command that cannot be carried out; its message is for the model."""


class MemoryTool:
    """The memory tool of a library. Commands may be mappings, or anthropic's own objects."""

    refused: type[Exception] = Refused
    """What is raised for a command that cannot be carried out; with anthropic's tool runner, its `ToolError`."""

    def __init__(self, library: Library, **more: Any) -> None:
        super().__init__(**more)
        library.owner_only("the memory tool, which rewrites whole files,")
        self.library = library

    def run(self, command: Mapping[str, Any] | Any) -> str:
        """What a command gives, for a loop of one's own. Raises `refused`."""
        name = part(command, "command", "")
        known: dict[str, Callable[[Any], str]] = {
            "view": self.view,
            "create": self.create,
            "str_replace": self.str_replace,
            "insert": self.insert,
            "delete": self.delete,
            "rename": self.rename,
        }
        if name not in known:
            raise self.refused(f"Unknown command: {name}. The commands are {', '.join(known)}.")
        return known[name](command)

    def view(self, command: Any) -> str:
        """The names below a folder, or the numbered lines of a file."""
        path = self._part(command, "path")
        name = self._name(path)
        topics = self._topics()
        if not name or self._below(name, topics):
            return self._listing(path, name, topics)
        lines = self._text(path, topics).split("\n")
        if len(lines) > MOST_LINES:
            raise self.refused(f"File {path} exceeds maximum line limit of 999,999 lines.")
        first, last = 1, len(lines)
        view_range = part(command, "view_range", None)
        if view_range and len(view_range) == 2:
            first = max(1, int(view_range[0]))
            last = len(lines) if view_range[1] == -1 else int(view_range[1])
        return f"Here's the content of {path} with line numbers:\n" + numbered(lines[first - 1 : last], first)

    def create(self, command: Any) -> str:
        """Make a file; its bullets are entries."""
        path = self._part(command, "path")
        topic = topic_at(self._name(path))
        if topic in self._topics() or topic == CURRENT:
            raise self.refused(f"File {path} already exists")
        text = self._part(command, "file_text", empty=True)
        self._do(lambda: create_text(self.library.root, self.library.clock(), topic, text))
        return f"File created successfully at: {path}"

    def str_replace(self, command: Any) -> str:
        """Put another text in the place of one that stands there once."""
        path = self._part(command, "path")
        old, new = self._part(command, "old_str", empty=True), self._part(command, "new_str", empty=True)
        shown: list[str] = []

        def change(text: str) -> str:
            places = [] if not old else [match.start() for match in re.finditer(f"(?={re.escape(old)})", text)]
            count = text.count(old)
            if not places:
                raise self.refused(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
            if count > 1:
                lines = ", ".join(str(text[:place].count("\n") + 1) for place in places)
                raise self.refused(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
                    "Please ensure it is unique"
                )
            changed = text.replace(old, new)
            at = text[: places[0]].count("\n")
            lines_now = changed.split("\n")
            first = max(0, at - 2)
            shown.append(numbered(lines_now[first : min(len(lines_now), at + 3)], first + 1))
            return changed

        self._change(path, change)
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n" + shown[0]
        )

    def insert(self, command: Any) -> str:
        """Put a text below a line; 0 is the top."""
        path = self._part(command, "path")
        text = self._part(command, "insert_text", empty=True)
        line = part(command, "insert_line", None)

        def change(old: str) -> str:
            lines = old.split("\n")
            if not lines[-1]:
                lines.pop()
            if isinstance(line, bool) or not isinstance(line, int) or not 0 <= line <= len(lines):
                raise self.refused(
                    f"Invalid `insert_line` parameter: {line}. It should be within the range [0, {len(lines)}]."
                )
            lines.insert(line, text.rstrip("\n"))
            new = "\n".join(lines)
            return new if new.endswith("\n") else f"{new}\n"

        self._change(path, change)
        return f"The file {path} has been edited."

    def delete(self, command: Any) -> str:
        """Remove a file, or a folder with all that is in it; the words stay in evidence."""
        path = self._part(command, "path")
        topics = self._meant(path, "delete")
        self._do(lambda: remove_topics(self.library.root, self.library.clock(), topics))
        return f"Successfully deleted {path}"

    def rename(self, command: Any) -> str:
        """Give a file or a folder another name; the old one stays findable."""
        old, new = self._part(command, "old_path"), self._part(command, "new_path")
        before, name = self._name(old), self._name(new)
        if not before:
            raise self.refused(f"Cannot rename the {ROOT} directory itself")
        there = self._topics()
        if not name or topic_at(name) in there or self._below(name, there):
            raise self.refused(f"The destination {new} already exists")
        topics = self._meant(old, "rename")
        whole = [topic_at(before)] == topics
        names = [(topic, topic_at(name) if whole else name + topic.removeprefix(before)) for topic in topics]
        self._do(lambda: rename_topics(self.library.root, self.library.clock(), names))
        return f"Successfully renamed {old} to {new}"

    def clear_all_memory(self) -> str:
        """Not offered: a library is not emptied by a tool."""
        raise self.refused("A library is not cleared; delete the files that are no longer needed, one by one")

    # Names

    def _part(self, command: Any, name: str, *, empty: bool = False) -> str:
        value = part(command, name, None)
        if not isinstance(value, str) or not (value or empty):
            raise self.refused(f"The {name} parameter is missing")
        return value

    def _name(self, path: str) -> str:
        """What stands below /memories; "" for /memories itself. Never a place outside the library."""
        if path != ROOT and not path.startswith(f"{ROOT}/"):
            raise self.refused(f"Path must start with {ROOT}, got: {path}")
        pieces = [piece for piece in path.removeprefix(ROOT).split("/") if piece]
        if any(piece in (".", "..") or "\\" in piece or "\0" in piece for piece in pieces):
            raise self.refused(f"Path {path} would escape {ROOT} directory")
        return "/".join(pieces)

    def _topics(self) -> dict[str, int]:
        """Every document's id, with the size of its file."""
        files = list_files(self.library.root)
        found = {topic_of(path): seen.size for path, seen in files.items() if not path.startswith("evidence/")}
        return {CURRENT: 0, **found}

    def _below(self, name: str, topics: Mapping[str, int]) -> list[str]:
        return [topic for topic in topics if topic.startswith(f"{name}/")]

    def _meant(self, path: str, verb: str) -> list[str]:
        """The topics that a path to be deleted or renamed means."""
        name = self._name(path)
        if not name:
            raise self.refused(f"Cannot {verb} the {ROOT} directory itself")
        if topic_at(name) == CURRENT:
            raise self.refused(f"Cannot {verb} {path}: it is where new entries go. Edit its lines instead")
        topics = self._topics()
        found = [topic_at(name)] if topic_at(name) in topics else self._below(name, topics)
        if not found:
            raise self.refused(f"The path {path} does not exist")
        return found

    # Effects

    def _text(self, path: str, topics: Mapping[str, int]) -> str:
        topic = topic_at(self._name(path))
        if topic not in topics:
            raise self.refused(f"The path {path} does not exist. Please provide a valid path.")
        found: list[str] = []
        self._do(lambda: found.append("".join(plain_lines(read_file(self.library.root, path_of(topic)).document))))
        return found[0].encode("utf-8", "backslashreplace").decode("utf-8")

    def _change(self, path: str, change: Callable[[str], str]) -> None:
        name = self._name(path)
        topics = self._topics()
        if not name or self._below(name, topics):
            raise self.refused(f"The path {path} is not a file.")
        topic = topic_at(name)
        if topic not in topics:
            raise self.refused(f"The path {path} does not exist. Please provide a valid path.")
        self._do(lambda: change_text(self.library.root, self.library.clock(), topic, change))

    def _do(self, work: Callable[[], object]) -> None:
        """Some work on the library, its errors in the model's words."""
        try:
            work()
        except InfinimemError as error:
            raise self.refused(flat(str(error), 400)) from error

    def _listing(self, path: str, name: str, topics: Mapping[str, int]) -> str:
        """The names below a folder, two levels deep, with their sizes."""
        lead = f"{name}/" if name else ""
        sizes: dict[str, int] = {}
        for topic, size in topics.items():
            if not topic.startswith(lead):
                continue
            pieces = shown_name(topic).removeprefix(lead).split("/")
            for depth in range(1, len(pieces)):
                folder = "/".join(pieces[:depth]) + "/"
                sizes[folder] = sizes.get(folder, 0) + size
            sizes["/".join(pieces)] = size
        shown = sorted(one for one in sizes if one.rstrip("/").count("/") < DEPTH)
        whole = sum(size for topic, size in topics.items() if topic.startswith(lead))
        base = path.rstrip("/") or ROOT
        rows = [f"{human(whole)}\t{base}", *(f"{human(sizes[one])}\t{base}/{one}" for one in shown)]
        head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
        return "\n".join([head, *rows])


class AsyncMemoryTool:
    """The memory tool for async code: each command in a thread, so that the others need not wait for the disk."""

    refused: type[Exception] = Refused
    """As `MemoryTool.refused`."""

    def __init__(self, library: Library, **more: Any) -> None:
        super().__init__(**more)
        self.library = library
        self._tool = MemoryTool(library)
        self._tool.refused = self.refused

    async def run(self, command: Mapping[str, Any] | Any) -> str:
        """What a command gives, for a loop of one's own. Raises `refused`."""
        return await asyncio.to_thread(self._tool.run, command)

    async def view(self, command: Any) -> str:
        """The names below a folder, or the numbered lines of a file."""
        return await asyncio.to_thread(self._tool.view, command)

    async def create(self, command: Any) -> str:
        """Make a file; its bullets are entries."""
        return await asyncio.to_thread(self._tool.create, command)

    async def str_replace(self, command: Any) -> str:
        """Put another text in the place of one that stands there once."""
        return await asyncio.to_thread(self._tool.str_replace, command)

    async def insert(self, command: Any) -> str:
        """Put a text below a line; 0 is the top."""
        return await asyncio.to_thread(self._tool.insert, command)

    async def delete(self, command: Any) -> str:
        """Remove a file, or a folder with all that is in it; the words stay in evidence."""
        return await asyncio.to_thread(self._tool.delete, command)

    async def rename(self, command: Any) -> str:
        """Give a file or a folder another name; the old one stays findable."""
        return await asyncio.to_thread(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        """Not offered: a library is not emptied by a tool."""
        return self._tool.clear_all_memory()


def part(command: Any, name: str, default: Any) -> Any:
    """A parameter of a command, whether it is a mapping or an object."""
    if isinstance(command, Mapping):
        return command.get(name, default)
    return getattr(command if command is not None else SimpleNamespace(), name, default)


def topic_at(name: str) -> str:
    """The topic id that a file name stands for: without `.md`; any other ending belongs to the id."""
    return name.removesuffix(".md")


def shown_name(topic: str) -> str:
    """The file name that a topic is shown under."""
    return topic if ENDING.fullmatch(topic[topic.rfind(".") :] if "." in topic else "") else f"{topic}.md"


def numbered(lines: list[str], first: int) -> str:
    """Lines behind their numbers."""
    return "\n".join(f"{number:>{WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def human(size: int) -> str:
    """A size in bytes as people read it: 0B, 512B, 1.5K."""
    for unit, least in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size >= least:
            value = size / least
            return f"{value:.0f}{unit}" if value == int(value) else f"{value:.1f}{unit}"
    return f"{size}B"
