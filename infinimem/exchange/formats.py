"""The formats that can be imported, and which of them a file has.

A new one is a row here and a module with `recognises` and `read`; `walk.each_record` and `walk.records_of` go through
JSON and JSON lines, and what is wrong in them comes out as a problem with its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

from infinimem.errors import BadInput
from infinimem.exchange.inputs import Input
from infinimem.exchange.message import Reading

Recognise = Callable[[str, str], bool]
"""Whether a file with this name begins like a format; the beginning comes without a mark or white space before it."""


class ReadFile(Protocol):
    """Reads a file as messages; `branches` asks for those too that an edit took out of sight."""

    def __call__(self, source: Input, *, branches: bool = False) -> Reading: ...


@dataclass(frozen=True, slots=True)
class Format:
    """A format by the name that `--from` takes; `suffixes` are those of its files. Its module has what it does.

    A file that `is_library` is loaded as a whole, not message by message; one that `is_edited` changes in its midst.
    """

    name: str
    module: str
    about: str
    suffixes: tuple[str, ...]
    is_library: bool = False
    is_edited: bool = False

    @property
    def recognises(self) -> Recognise:
        """Whether a file begins like this format."""
        recognise: Recognise = import_module(f"infinimem.exchange.{self.module}").recognises
        return recognise

    @property
    def read(self) -> ReadFile:
        """The reader."""
        reader: ReadFile = import_module(f"infinimem.exchange.{self.module}").read
        return reader


LINES = (".jsonl", ".ndjson", ".json")
TEXTS = (".txt", ".log", ".text", ".chat", "")
FORMATS: tuple[Format, ...] = (
    Format("infinimem", "own", "infinimem's own export, JSON lines", LINES, is_library=True),
    Format("mcp-memory", "mcp_memory", "the MCP reference memory server's memory.jsonl", LINES),
    Format("codex", "codex", "Codex sessions, ~/.codex/sessions", LINES),
    Format("claude-code", "claude_code", "Claude Code sessions, ~/.claude/projects", LINES),
    Format("telegram", "telegram", "Telegram's export, result.json", (".json",)),
    Format("slack", "slack", "Slack's export, a folder a channel", (".json",)),
    Format("chatgpt", "chatgpt", "ChatGPT's export", (".json",)),
    Format("claude", "claude", "Claude's export", (".json",)),
    Format("longmemeval", "longmemeval", "LongMemEval", (".json",)),
    Format("locomo", "locomo", "LoCoMo", (".json",)),
    Format("mem0", "mem0", "mem0's memories", (".json",)),
    Format("paper", "paper", "a library of the paper's own package", (".md",)),
    Format("notes", "notes", "Markdown notes: Obsidian, Logseq", (".md", ".markdown"), is_edited=True),
    Format("chat", "chat_log", "chat logs as Name: text, WhatsApp's too", TEXTS),
)


ALIASES = {
    "openai": "chatgpt", "gpt": "chatgpt", "anthropic": "claude", "claude.ai": "claude", "claudecode": "claude-code",
    "mcp": "mcp-memory", "memory": "mcp-memory", "obsidian": "notes", "logseq": "notes", "markdown": "notes",
    "md": "notes", "vault": "notes", "whatsapp": "chat", "chat-log": "chat", "text": "chat", "txt": "chat",
    "signal": "chat", "jsonl": "infinimem", "export": "infinimem", "infini-memory": "paper",
}  # fmt: skip
"""What people call formats by, besides their names."""


BESIDE = {
    "user.json": "your account",
    "users.json": "accounts",
    "user_settings.json": "your settings",
    "message_feedback.json": "your ratings of answers",
    "model_comparisons.json": "answers that you compared",
    "shared_conversations.json": "links that you shared",
    "group_chats.json": "a list of group chats",
    "projects.json": "projects and their files",
    "memories.json": "what Claude noted of you",
    "shopping.json": "shopping research",
    "sora.json": "videos",
    "export_manifest.json": "a list of the export's files",
}
"""Files that come with an export and hold no conversation, and what they hold."""


def beside(name: str) -> str:
    """What a file holds that comes with an export; "" where that is not known."""
    return BESIDE.get(name.rpartition("/")[2].rpartition(": ")[2].lower(), "")


def names() -> str:
    """All names, for a message."""
    return ", ".join(one.name for one in FORMATS)


def format_named(name: str) -> Format:
    """The format with a name, or with another that it goes by. Raises `BadInput`."""
    import difflib

    said = "-".join(name.casefold().replace("_", " ").split())
    wanted = ALIASES.get(said, said)
    for one in FORMATS:
        if one.name == wanted:
            return one
    near = difflib.get_close_matches(said, [*(one.name for one in FORMATS), *ALIASES], 1, 0.6)
    guess = f"; did you mean {near[0]}?" if near else ";"
    raise BadInput(f"there is no format {name!r}{guess} There are {names()}")


def format_of(source: Input) -> Format | None:
    """The format that a file has by its content; None for one that is not known."""
    head = source.head()
    if b"\x00" in head:
        return None
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    return next((one for one in FORMATS if may_be(one, source) and one.recognises(source.within, text)), None)


def is_text(name: str) -> bool:
    """Whether a file calls itself a text."""
    return name.lower().endswith((*LINES, *filter(None, TEXTS), ".md", ".markdown"))


def may_be(one: Format, source: Input) -> bool:
    """Whether a file's name allows a format; a name without a suffix allows any."""
    name = source.within.lower().rpartition("/")[2]
    return "." not in name.lstrip(".") or name.endswith(tuple(end for end in one.suffixes if end))
