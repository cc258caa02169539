"""A conversation with edits is a tree: which of its messages are on the branch that was shown last."""

from __future__ import annotations

from collections.abc import Mapping

ROOTS = frozenset({"", "00000000-0000-4000-8000-000000000000", "00000000-0000-0000-0000-000000000000"})
"""What a first message names as its parent."""


def path_to(leaf: str, parents: Mapping[str, str]) -> list[str]:
    """The nodes from the first to a leaf; a circle ends where it closes."""
    path: dict[str, None] = {}
    while leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return list(reversed(path))


def left_aside(leaf: str, parents: Mapping[str, str]) -> set[str]:
    """The nodes that an edit or a new answer took off the branch to `leaf`.

    One whose ancestors are not in the file is not among them: nothing says that it was edited away.
    """
    path = path_to(leaf, parents)
    shown = set(path)
    rooted = not path or parents[path[0]] in ROOTS
    aside: dict[str, bool] = {}
    for node in parents:
        trail: dict[str, None] = {}
        at = node
        while at in parents and at not in shown and at not in aside and at not in trail:
            trail[at] = None
            at = parents[at]
        if at in shown:
            answer = bool(trail)
        elif at in aside:
            answer = aside[at]
        else:
            answer = at in ROOTS and rooted
        aside.update(dict.fromkeys(trail, answer))
    return {node for node, is_aside in aside.items() if is_aside}
