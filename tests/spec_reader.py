"""A reader of libraries made from docs/format.md alone; it imports nothing of infinimem, and a test compares them."""

import re
from collections.abc import Iterator
from pathlib import Path

FIELD = r'[A-Za-z_][A-Za-z0-9_.-]*=(?:"(?:[^"\\\n]|\\[^\n])*"|[^,<>"\n]*)'
ITEM = re.compile(rf"([ \t]*)[-*+][ \t]+<({FIELD}(?:, *{FIELD})*)>([ \t]?)(.*)", re.DOTALL)
FENCE = re.compile(r"([ \t]*(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)*)(`{3,}(?=[^`]*$)|~{3,})")
FATES = ("retire", "forget", "unflush", "restore")


def fields_of(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for field in re.findall(FIELD, text):
        key, _, value = field.partition("=")
        if value[:1] == '"':
            value = re.sub(r"\\(.)", lambda m: {"n": "\n", "r": "\r"}.get(m[1], m[1]), value[1:-1])
        elif value != value.strip() or (key == "seq" and "seq" in fields):
            return {}
        fields.setdefault(key, value)
    return fields


def numbers(value: str) -> list[int]:
    found: list[int] = []
    for first, last in re.findall(r"([0-9]+)(?:-([0-9]+))?", value):
        low, high = int(first), int(last or first)
        found += range(low, high + 1) if 0 < low <= high < low + 10_000 else [0, 0]
    whole = re.fullmatch(r"[0-9]{1,18}(-[0-9]{1,18})?(\+[0-9]{1,18}(-[0-9]{1,18})?)*", value)
    return found if whole and len(found) == len(set(found)) else []


def width(line: str) -> int:
    return len(line[: len(line) - len(line.lstrip(" \t"))].expandtabs(4))


def fenced(lines: list[str], at: int) -> int:
    """The line that closes the code fence opened here; 0 for none."""
    fence = FENCE.match(lines[at])
    indent = width(re.sub(r"[^ \t]", " ", fence[1]) + "x") if fence else 0
    for end, line in enumerate(lines[at + 1 :] if fence else (), at + 1):
        if line.strip(" \t\r") and width(line) < indent > 1:
            break
        if fence and re.fullmatch(rf"[ \t]*{fence[2]}{fence[2][0]}*[ \t\r]*", line) and width(line) <= max(indent, 1):
            return end
    return 0


def items(content: bytes) -> Iterator[tuple[int, dict[str, str], str]]:
    text = content.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    lines = (text.replace("\r\n", "\n") if re.match("[^\n]*\r\n", text) else text).split("\n")
    ends = (end + 1 for end, line in enumerate(lines) if end and line.rstrip() in ("---", "..."))
    at = next(ends, 0) if lines[0].rstrip() == "---" else 0
    while at < len(lines):
        item, stop = ITEM.match(lines[at]), at + 1
        fields = fields_of(item[2]) if item else {}
        if next(iter(fields), "") == "event":
            yield stop, fields, ""
        elif item and numbers(fields.get("seq", "")):
            words = [item[4]] if item[3] + item[4] else []
            for end, line in enumerate(lines[stop:], stop):
                blank, more = not line.strip(" \t\r"), width(line) - width(item[1])
                is_block = re.match(r" {0,3}#{1,6}([ \t]|$)", line) or fenced(lines, end)
                if not blank and more < (2 if is_block else 1):
                    break
                if not blank or (more > 1 and stop == end):
                    words += [between.lstrip(" \t") for between in lines[stop:end]]
                    words.append(re.sub(r"^(\t| {1,2})", "", line.removeprefix(item[1])))
                    stop = end + 1
            yield at + 1, fields, "\n".join(words)
        at = stop if item and fields else max(at, fenced(lines, at)) + 1


def library(root: Path) -> tuple[dict[str, list[tuple[int, dict[str, str], str]]], dict[int, dict[str, str]]]:
    paths = [root / "CURRENT.md", *root.glob("topics/**/*.md"), *sorted(root.glob("evidence/*.md"))]
    read = {path.relative_to(root).as_posix(): list(items(path.read_bytes())) for path in paths if path.is_file()}
    events = [fields for path in read if path[:9] == "evidence/" for _, fields, _ in read[path] if "event" in fields]
    last = {number: said for said in events if said["event"] in FATES for number in numbers(said["seq"])}
    return read, {number: said for number, said in last.items() if said["event"] in FATES[:2]}
