"""YAML front matter: read for what it says, edited by replacing only a key's own lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from infinimem.errors import Unreadable
from infinimem.model import Header, Problem, Span
from infinimem.text.lines import BOM, CONFLICT, ending_of, is_blank, undecodable

if TYPE_CHECKING:
    import yaml

KEY_LINE = re.compile(r"""(?P<key>[^\s#:'"\[\]{}&*!|>%@`,-][^\s:]*|"[^"\\]*"|'[^']*')[ \t]*:(?=\s|$)""")
LONGEST_REMEMBERED = 1 << 14


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
    return read_yaml(text)[1]


def read_yaml(text: str) -> tuple[yaml.Node | None, Any]:
    """YAML as its tree, which knows where things stand and how they were written, and as plain values, not to be
    changed: the same front matter is read again and again while a document is edited."""
    return (read_anew if len(text) <= LONGEST_REMEMBERED else read_anew.__wrapped__)(text)


@lru_cache(maxsize=64)
def read_anew(text: str) -> tuple[yaml.Node | None, Any]:
    """YAML as its tree, which knows where things stand and how they were written, and as plain values."""
    import yaml  # here and below, because it takes 10 ms to import, and most commands of one shell read no YAML

    from infinimem.text.strict_yaml import NoDuplicates, size_of

    try:
        loader = NoDuplicates(text)
        node = loader.get_single_node()
        if node is None:
            return None, None
        if "*" in text:
            size_of(node, {})
        return node, loader.construct_document(node)
    except (ValueError, TypeError, RecursionError) as error:  # lone surrogates, unhashable keys, endless aliases
        raise yaml.YAMLError(str(error)) from error


def parse_header(path: str, lines: tuple[str, ...]) -> tuple[Header, tuple[Problem, ...]]:
    """The front matter and what is wrong with it. A broken one has no fields and blocks rewriting."""
    span = find_header(lines)
    if span.stop == 0:
        if lines and lines[0].removeprefix(BOM).rstrip() == "---" and any(map(KEY_LINE.match, lines[1:3])):
            message = "the front matter is not closed; end it with a line of ---"
            return Header(), (Problem(path, 1, message, code="front-matter"),)
        return Header(), ()
    odd = undecodable(path, lines[: span.stop])
    if odd:
        return Header(span), odd
    conflict = next((at for at in range(span.stop) if CONFLICT.match(lines[at])), -1)
    if conflict >= 0:
        return Header(span), (unresolved(path, conflict),)
    import yaml

    text = inner_text(lines, span)
    try:
        node, fields = read_yaml(text)
    except yaml.YAMLError as error:
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        message = f"the front matter cannot be read ({what}); correct it, until then the file is left as it is"
        line = 2 + text.count("\n", 0, place_of(error, text))
        return Header(span), (Problem(path, min(line, span.stop), message, code="front-matter"),)
    if fields is None:
        return Header(span), ()
    if not isinstance(fields, Mapping) or not isinstance(node, yaml.MappingNode):
        message = "the front matter is not a list of `key: value`; correct it, until then the file is left as it is"
        return Header(span), (Problem(path, 2, message, code="front-matter"),)
    named = {str(key): value for key, value in fields.items()}
    # An id is a file's name: 0123, no and 2025-01-15 are what they look like.
    for name, value in node.value:
        if name.value == "id" and isinstance(value, yaml.ScalarNode):
            named["id"] = value.value
    return Header(span, named), ()


def unresolved(path: str, at: int) -> Problem:
    """The problem of a conflict that git left at line `at`, 0-based."""
    message = "a git conflict is not resolved; resolve it, until then the file is left as it is"
    return Problem(path, at + 1, message, code="conflict")


def inner_text(lines: tuple[str, ...], span: Span) -> str:
    """What stands between the fences."""
    return "".join(lines[1 : span.stop - 1])


def place_of(error: yaml.YAMLError, text: str) -> int:
    """The character at which reading gave up. A mark's own line counts U+2028 and lone carriage returns as breaks."""
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        return int(mark.index)
    import yaml

    odd = yaml.reader.Reader.NON_PRINTABLE.search(text)
    return odd.start() if odd else 0


def key_span(lines: tuple[str, ...], header: Header, key: str) -> Span:
    """The lines of a top-level key and its value; an empty span when the header lacks it.

    Blank lines and comments between it and the next key are not its own.
    """
    import yaml

    from infinimem.text.strict_yaml import SafeLoader

    text = inner_text(lines, header.span)
    try:
        node = yaml.compose(text, Loader=SafeLoader)
    except (yaml.YAMLError, UnicodeEncodeError):
        return Span(0, 0)
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        return Span(0, 0)
    starts = [1 + text.count("\n", 0, name.start_mark.index) for name, _ in node.value]
    stops = [*starts[1:], header.span.stop - 1]
    for (name, _), start, stop in zip(node.value, starts, stops, strict=True):
        if name.value == key:
            while stop > start + 1 and (is_blank(lines[stop - 1]) or lines[stop - 1].startswith("#")):
                stop -= 1
            return Span(start, stop)
    return Span(0, 0)


def render_scalar(value: str) -> str:
    """A string as one line of YAML, plain where that reads back as the same string."""
    plain = dump_line(value, default_flow_style=True, allow_unicode=True)
    if reads_back(plain, value):
        return plain
    quoted = dump_line(value, default_style='"', allow_unicode=True)
    # U+0085 and U+2028 are line breaks to YAML, and a byte order mark is none of its text
    return quoted if reads_back(quoted, value) else dump_line(value, default_style='"', allow_unicode=False)


def dump_line(value: str, **style: Any) -> str:
    """YAML of a string, without the end-of-document mark that a lone plain one gets."""
    import yaml

    return str(yaml.dump(value, width=float("inf"), **style)).removesuffix("\n").removesuffix("\n...")


def reads_back(rendered: str, value: str) -> bool:
    """Whether one line of YAML, put after a key, is that string."""
    if "\n" in rendered:
        return False
    import yaml

    try:
        return bool(load_yaml(f"key: {rendered}\n") == {"key": value})
    except yaml.YAMLError:
        return False


def render_flow(value: Any) -> str:
    """A value as one line of YAML."""
    import yaml

    from infinimem.text.strict_yaml import OneLine

    line = yaml.dump(
        value, Dumper=OneLine, default_flow_style=True, allow_unicode=True, width=float("inf"), sort_keys=False
    )
    return str(line).removesuffix("\n").removesuffix("\n...")


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
    new = [f"{key}: {first}{ending}" if first else f"{key}:{ending}", *(line + ending for line in rest)]
    given, wrong = parse_header(path, ("---\n", *new, "---\n"))
    if wrong or list(given.fields) != [key] or given.span.stop != len(new) + 2:
        raise Unreadable(f"{path}: {key!r} cannot be set to {rendered!r}")
    old = key_span(lines, header, key)
    at = old if old.stop else Span(header.span.stop - 1, header.span.stop - 1)
    edited = (*lines[: at.start], *new, *lines[at.stop :])
    after, problems = parse_header(path, edited)
    # Compared as they print: .nan is unequal to itself, and 1 is equal to true.
    if problems or repr(dict(after.fields)) != repr({**header.fields, **given.fields}):
        raise Unreadable(f"{path}: the front matter cannot be edited safely; put `{key}:` on a line of its own")
    return edited
