"""YAML as front matter has it: no key twice, no alias without end, one line where one is wanted."""

from __future__ import annotations

import re
from typing import Any

import yaml

SafeLoader: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
BREAKS = re.compile("[\n\r\x85\u2028\u2029\ufeff]")
LARGEST_TREE = 100_000


class NoDuplicates(SafeLoader):  # type: ignore[misc]
    """YAML silently keeps the last of two equal keys; a union merge makes such headers."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """A node's value. For 2026-13-45, `!!int ""` or `!!bool maybe` the reader fails with whatever came up."""
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, OverflowError, LookupError, AttributeError) as error:
            what = f"{node.value!r} is not what it looks like: {error}"
            raise yaml.constructor.ConstructorError(None, None, what, node.start_mark) from error


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


class OneLine(yaml.SafeDumper):
    """YAML folds a string with line breaks over several lines unless it is quoted."""


def quote_breaks(dumper: OneLine, value: str) -> yaml.Node:
    """A string, in double quotes if anything in it could be taken for a line break."""
    style = '"' if BREAKS.search(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


OneLine.add_representer(str, quote_breaks)


def size_of(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a tree is with every alias written out; raises `ValueError` where that has no bounds."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = LARGEST_TREE + 1  # what refers to itself has no end
    pairs = isinstance(node, yaml.MappingNode)
    children = [one for pair in node.value for one in pair] if pairs else node.value
    size = 1 + sum(size_of(child, known) for child in children)
    if size > LARGEST_TREE:
        raise ValueError("its aliases unfold without end")
    known[id(node)] = size
    return size
