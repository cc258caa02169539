"""Claude Code's sessions: JSON lines below `~/.claude/projects`, one file a session."""

from __future__ import annotations

import re
from typing import Any

from infinimem.exchange.inputs import Input
from infinimem.exchange.message import (
    Found,
    Message,
    Reading,
    Skipped,
    Unread,
    record_in,
    text_in,
    time_of,
    title_of,
    with_attached,
)
from infinimem.exchange.walk import records_of

ROLES = {"user": "user", "assistant": "AI"}
NO_MESSAGES = frozenset(
    "summary system file-history-snapshot queue-operation progress custom-title ai-title agent-name last-prompt "
    "pr-link attachment permission-mode mode agent-setting tag".split()
)
TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
KNOWN = re.compile(r'"(?:sessionId|leafUuid|isSidechain|parentUuid)"')
COMMAND = re.compile(
    r"\s*<(?:command-name|command-message|command-args|local-command-stdout|local-command-stderr|local-command-caveat"
    r"|bash-input|bash-stdout|bash-stderr|task-notification|system-reminder|user-memory-input)>"
)
REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
INTERRUPTED = re.compile(r"\s*\[Request interrupted by user[^\]]*\]\s*")


def recognises(name: str, head: str) -> bool:
    """Whether a file begins like a session."""
    lines = [line for line in head.split("\n", 20)[:20] if line.strip()]
    return (
        bool(lines) and lines[0].lstrip()[:1] == "{" and any(KNOWN.search(line) and '"type"' in line for line in lines)
    )


def read(source: Input, *, branches: bool = False) -> Reading:
    """What was typed and answered; tools, hooks, reasoning and sub-agents are left out by kind."""
    title = ""
    for row in records_of(source):
        if isinstance(row, Unread):
            yield row
            continue
        place, record = row
        kind = text_in(record.get("type"))
        if kind in TITLES and not title:
            title = title_of(record.get(TITLES[kind]))
        if kind in NO_MESSAGES:
            yield Skipped("system" if kind == "system" else "session notes")
        elif kind not in ROLES:
            yield Unread(place, f"a kind of record that is not known: {kind[:40]!r}")
        else:
            yield read_message(record, place, title, source)


def read_message(record: dict[str, Any], place: str, title: str, source: Input) -> Found:
    """One line of a session that somebody spoke."""
    if record.get("isSidechain"):
        return Skipped("sub-agent")
    if record.get("isMeta") or record.get("isCompactSummary"):
        return Skipped("system")
    message = record_in(record.get("message"))
    content = message.get("content")
    if isinstance(content, str):
        texts, kinds, media = [content], {"text"}, []
    elif isinstance(content, list):
        blocks = [record_in(block) for block in content]
        kinds = {text_in(block.get("type")) for block in blocks}
        texts = [text_in(block.get("text")) for block in blocks if block.get("type") == "text"]
        texts += [block for block in content if isinstance(block, str)]
        media = [
            text_in(block.get("title")) or text_in(block.get("type"))
            for block in blocks
            if block.get("type") in ("image", "document")
        ]
    else:
        return Unread(place, "a message without content")
    if "tool_result" in kinds and not any(text.strip() for text in texts):
        return Skipped("tool")
    texts = [REMINDER.sub("", text) for text in texts]
    if any(COMMAND.match(text) for text in texts):
        return Skipped("commands")
    text = "\n\n".join(text for text in texts if text.strip())
    if INTERRUPTED.fullmatch(text):
        return Skipped("interruptions")
    text = with_attached(text, media)
    if not text.strip():
        return Skipped(
            "tool" if kinds & {"tool_use", "server_tool_use"} else "reasoning" if "thinking" in kinds else "empty"
        )
    session = text_in(record.get("sessionId")) or source.within
    key = text_in(record.get("uuid")) or f"{session} {place.rpartition(':')[2]}"
    fields = project_of(record)
    who = ROLES[text_in(record.get("type"))]
    return Message(
        f"claude-code {key}", text, place, who, time_of(record.get("timestamp")), session, title, fields,
        attached=tuple(media),
    )  # fmt: skip


def project_of(record: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The folder that the session was about, by its own name."""
    folder = text_in(record.get("cwd")).replace("\\", "/").rstrip("/").rpartition("/")[2]
    return (("project", folder),) if folder else ()
