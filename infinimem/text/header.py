"""YAML front matter: read for what it says, edited by replacing only a key's own lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from infinimem.errors import Unreadable
from infinimem.model import Header, Problem, Span
from infinimem.text.lines import BOM, ending_of

KEY_LINE = re.compile(r"""(?P<key>[^\s#:'"\[\]{}&*!|>%@`,-][^\s:]*|"[^"\\]*"|'[^']*')[ \t]*:(?=\s|$)""")
SafeLoader: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NoDuplicates(SafeLoader):  # type: ignore[misc]
    """YAML silently keeps the last of two equal keys; a union merge makes such headers."""


def refuse_duplicates(loader: Any, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    """Build a mapping, or say which key occurs twice."""
    seen: set[str] = set()
    for key, _ in node.value:
        name = key.value if isinstance(key.value, str) else repr(key.value)
        if name in seen and key.tag != "tag:yaml.org,2002:merge":
            raise yaml.constructor.ConstructorError(None, None, f"the key {name!r} occurs twice", key.start_mark)
        seen.add(name)
    loader.flatten_mapping(node)
    built: dict[Any, Any] = yaml.constructor.BaseConstructor.construct_mapping(loader, node, deep=True)
    return built


NoDuplicates.add_constructor("tag:yaml.org,2002:map", refuse_duplicates)


def find_header(lines: tuple[str, ...]) -> Span:
    """The lines of the front matter with both fences; an empty span when there is none."""
    if not lines or lines[0].removeprefix(BOM).rstrip() != "---":
        return Span(0, 0)
    for at in range(1, len(lines)):
        if lines[at].rstrip() in ("---", "..."):
            return Span(0, at + 1)
    return Span(0, 0)


def load_yaml(text: str) -> Any:
    """YAML as plain values; raises `yaml.YAMLError`, also for duplicate keys and impossible dates."""
    try:
        return yaml.load(text, Loader=NoDuplicates)
    except (ValueError, OverflowError, TypeError, RecursionError) as error:  # 2026-13-45, unhashable keys
        raise yaml.YAMLError(str(error)) from error


def parse_header(path: str, lines: tuple[str, ...]) -> tuple[Header, tuple[Problem, ...]]:
    """The front matter and what is wrong with it. A broken one has no fields and blocks rewriting."""
    span = find_header(lines)
    if span.stop == 0:
        if lines and lines[0].removeprefix(BOM).rstrip() == "---" and any(map(KEY_LINE.match, lines[1:3])):
            message = "the front matter is not closed; end it with a line of ---"
            return Header(), (Problem(path, 1, message, code="front-matter"),)
        return Header(), ()
    text = "".join(lines[1 : span.stop - 1])
    try:
        fields = load_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = 2 + mark.line if mark is not None else 1
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        message = f"the front matter cannot be read ({what}); correct it, until then the file is left as it is"
        return Header(span), (Problem(path, min(line, span.stop), message, code="front-matter"),)
    if fields is None:
        return Header(span), ()
    if not isinstance(fields, Mapping):
        message = "the front matter is not a list of `key: value`; correct it, until then the file is left as it is"
        return Header(span), (Problem(path, 2, message, code="front-matter"),)
    return Header(span, {str(key): value for key, value in fields.items()}), ()


def key_span(lines: tuple[str, ...], header: Header, key: str) -> Span:
    """The lines of a top-level key and its value; an empty span when the header lacks it."""
    start = -1
    for at in range(header.span.start + 1, header.span.stop - 1):
        line = lines[at]
        match = KEY_LINE.match(line)
        if start >= 0 and (match or line.startswith("#")):
            return Span(start, at)
        if match and match["key"].strip("\"'") == key:
            start = at
    return Span(start, header.span.stop - 1) if start >= 0 else Span(0, 0)


def render_scalar(value: str) -> str:
    """A string as one line of YAML, plain where that reads back as the same string."""
    dumped = yaml.dump(value, allow_unicode=True, width=float("inf"), default_flow_style=True)
    line = dumped.removesuffix("\n").removesuffix("\n...")
    if "\n" in line:
        line = yaml.dump(value, allow_unicode=True, width=float("inf"), default_style='"').removesuffix("\n")
    return line


def set_key(path: str, lines: tuple[str, ...], key: str, rendered: str) -> tuple[str, ...]:
    """The lines with one top-level key set to `rendered`, YAML whose first line follows `key:`.

    Only that key's lines change. The result is read again: where it would say anything else than
    the old header with this key changed, `Unreadable` is raised and nothing is returned.
    """
    header, problems = parse_header(path, lines)
    if problems or not header.span.stop:
        raise Unreadable(f"{path}: the front matter cannot be edited safely; correct it by hand")
    ending = ending_of(lines)
    first, *rest = rendered.split("\n")
    new = [f"{key}: {first}".rstrip() + ending, *(line + ending for line in rest)]
    old = key_span(lines, header, key)
    at = old if old.stop else Span(header.span.stop - 1, header.span.stop - 1)
    edited = (*lines[: at.start], *new, *lines[at.stop :])
    expected = {**header.fields, key: load_yaml("".join(new))[key]}
    after, problems = parse_header(path, edited)
    if problems or dict(after.fields) != expected or list(after.fields) != list(expected):
        raise Unreadable(f"{path}: the front matter cannot be edited safely; put `{key}:` on a line of its own")
    return edited
