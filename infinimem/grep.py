"""Regular expressions over the files themselves, in linear time whatever the pattern (RE2)."""

from __future__ import annotations

import bisect
import itertools
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infinimem.errors import BadPattern
from infinimem.model import topic_of
from infinimem.text.document import ITEM
from infinimem.text.signature import parse_signature


@dataclass(frozen=True, slots=True)
class Match:
    """A matching line: 1-based, as an editor counts; `seqs` of the entry that it belongs to, () for prose."""

    path: str
    line: int
    text: str
    seqs: tuple[int, ...] = ()
    time: str = ""
    source: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def topic(self) -> str:
        return topic_of(self.path)


def compile_pattern(pattern: str, *, ignore_case: bool = False) -> Any:
    """The pattern for bytes, matching within lines. Raises `BadPattern` with what is wrong."""
    import re2

    if not pattern.isascii() and any("\ud800" <= char <= "\udfff" for char in pattern):
        raise BadPattern(f"the pattern {pattern!a} is not valid Unicode")
    options = re2.Options()
    options.never_nl = True
    options.log_errors = False
    options.case_sensitive = not ignore_case
    options.max_mem = 64 << 20
    try:
        return re2.compile(f"(?m){pattern}", options)
    except re2.error as error:
        message = error.args[0]
        reason = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
        reason = reason.replace("(?m)", "")
        hint = "; look-around and back-references are not supported" if "invalid perl operator" in reason else ""
        raise BadPattern(f"the pattern {pattern!r} cannot be read: {reason}{hint}") from error


def grep(root: Path, paths: Iterable[str], pattern: Any, *, context: int = 0, limit: int = 0) -> Iterator[Match]:
    """The matching lines of some files, in order; unreadable files are passed over (`check` names them).

    `limit` 0 means all of them.
    """
    found = _matches(root, paths, pattern, context)
    return itertools.islice(found, min(limit, sys.maxsize)) if limit else found


def _matches(root: Path, paths: Iterable[str], pattern: Any, context: int) -> Iterator[Match]:
    for path in paths:
        try:
            content = (root / path).read_bytes()
        except OSError:
            continue
        if pattern.search(content) is None:
            continue
        yield from _lines(path, content, pattern, context)


def _lines(path: str, content: bytes, pattern: Any, context: int) -> Iterator[Match]:
    """Each matching line of one file once."""
    lines = content.split(b"\n")
    starts = list(itertools.accumulate((len(line) + 1 for line in lines), initial=0))
    body = _body_start(lines)
    end = len(lines) - (not lines[-1])
    last = -1
    for match in pattern.finditer(content):
        at = bisect.bisect_right(starts, match.start()) - 1
        if at == last or at >= len(lines) or (at == len(lines) - 1 and not lines[at]) or at < body:
            continue
        last = at
        signature = _signature_above(lines, at)
        yield Match(
            path,
            at + 1,
            _text(lines[at]),
            signature.seqs if signature else (),
            signature.get("time") if signature else "",
            signature.get("source") if signature else "",
            tuple(map(_text, lines[max(0, at - context) : at])) if context else (),
            tuple(map(_text, lines[at + 1 : min(end, at + 1 + context)])) if context else (),
        )


def _body_start(lines: list[bytes]) -> int:
    """The first line after our own front matter: what we wrote about a document is not memory."""
    if lines[0].removeprefix(b"\xef\xbb\xbf").rstrip() != b"---":
        return 0
    for at in range(1, min(len(lines), 200)):
        if lines[at].rstrip() in (b"---", b"..."):
            return at + 1
    return 0


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")


def _signature_above(lines: list[bytes], at: int) -> Any:
    """The signature of the entry that a line belongs to; None for prose."""
    while at >= 0:
        line = lines[at].decode("utf-8", "replace")
        item = ITEM.match(line)
        if item is not None:
            parsed = parse_signature(line[item.end() :].rstrip("\r"))
            if parsed is not None:
                return parsed[0]
        if line[:1] not in (" ", "\t", "") and line.strip():
            return None
        at -= 1
    return None
