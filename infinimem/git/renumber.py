"""Seqs that two machines both gave: one side's are given new numbers, with all that refers to them."""

from __future__ import annotations

from collections.abc import Mapping

from infinimem.model import Signature
from infinimem.text.document import ITEM
from infinimem.text.signature import (
    parse_fields,
    parse_signature,
    render_fields,
    render_signature,
    renumber_links,
    renumber_seqs,
)

REFERENCES = ("seq", "by", "supersedes", "split_from")
"""Fields of entries and events whose values are seqs, in the grammar of `seq`."""
EVENT = "- <event="

Numbers = Mapping[int, int]


def with_new_field(key: str, value: str, numbers: Numbers) -> str:
    """A field's value with some seqs changed, if it holds seqs."""
    if key == "links":
        return renumber_links(value, numbers)
    return renumber_seqs(value, numbers) if key in REFERENCES else value


def renumbered(signature: Signature, numbers: Numbers) -> Signature:
    """A signature with some seqs changed, its own and those that it refers to."""
    return Signature(
        tuple(numbers.get(seq, seq) for seq in signature.seqs),
        tuple((key, with_new_field(key, value, numbers)) for key, value in signature.fields),
    )


def renumber_line(line: str, numbers: Numbers) -> str:
    """The first line of an entry, or an event, with some seqs changed; as it was where none of them occurs."""
    if line.startswith(EVENT):
        fields, end = parse_fields(line[2:])
        changed = tuple((key, with_new_field(key, value, numbers)) for key, value in fields)
        return line if changed == fields else f"- {render_fields(changed)}{line[2 + end :]}"
    item = ITEM.match(line)
    parsed = parse_signature(line[item.end() :]) if item else None
    if item is None or parsed is None:
        return line
    signature, end = parsed
    changed_one = renumbered(signature, numbers)
    if changed_one == signature:
        return line
    return line[: item.end()] + render_signature(changed_one) + line[item.end() + end :]
