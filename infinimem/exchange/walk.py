"""Walking through a file of records, an array or lines: what is broken is listed with its place, the rest is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from infinimem.exchange.inputs import LONGEST_LINE, Input, lines_of
from infinimem.exchange.json_stream import LONG_NUMBER, Broken, JsonStream
from infinimem.exchange.message import Reading, Unread

ReadRecord = Callable[[JsonStream, int], Reading]
"""Reads the object that comes next, whose number from 1 it is told; what is wrong in it may be raised as `Broken`."""


def begins_json(head: str) -> bool:
    """Whether a beginning is that of a JSON object or array."""
    return head[:1] in ("[", "{")


def records_of(source: Input) -> Iterator[tuple[str, dict[str, Any]] | Unread]:
    """Each JSON object of a file of JSON lines with its place `name:line`; what is none is a problem."""
    with source.open() as file:
        for number, line in lines_of(file):
            place = f"{source.name}:{number}"
            if line is None:
                yield Unread(place, f"a line of more than {LONGEST_LINE >> 20} MB")
            elif line.strip():
                yield record_at(place, line)


def record_at(place: str, line: bytes) -> tuple[str, dict[str, Any]] | Unread:
    """The object that a line is, or what is wrong with it."""
    try:
        value = json.loads(line.decode("utf-8", "surrogateescape"), strict=False)
    except json.JSONDecodeError as error:
        return Unread(place, f"this is no JSON ({error.msg.lower()})")
    except (ValueError, RecursionError) as error:
        why = "nested too deep" if isinstance(error, RecursionError) else LONG_NUMBER
        return Unread(place, f"this cannot be read ({why})")
    return (place, value) if isinstance(value, dict) else Unread(place, "this is no JSON object")


def each_record(
    source: Input, read_record: ReadRecord, *, kind: str = "conversation", inside: tuple[str, ...] = ()
) -> Reading:
    """What is read of each record of an array, which may be a member (one of `inside`) of an object.

    An object without such a member is one record by itself.
    """
    with source.open() as file:
        stream = JsonStream(file)
        try:
            yield from in_file(stream, source.name, read_record, kind, inside)
            if stream.peek():
                raise Broken("something behind the end of it", stream.byte)
        except Broken as error:
            yield Unread(source.name, f"{error}; nothing is read from there on")


def in_file(stream: JsonStream, name: str, read_record: ReadRecord, kind: str, inside: tuple[str, ...]) -> Reading:
    """The records of a file, wherever its array is. Raises `Broken`."""
    if stream.peek() != "{":
        yield from in_array(stream, name, read_record, kind)
    elif not inside or stream.first_name() not in inside:
        yield from read_record(stream, 1)
    else:
        for key in stream.members():
            if key in inside and stream.peek() == "[":
                yield from in_array(stream, name, read_record, kind)
            else:
                stream.value()


def in_array(stream: JsonStream, name: str, read_record: ReadRecord, kind: str) -> Reading:
    """The records of the array that comes next."""
    faults: list[Unread] = []

    def note(number: int, error: Broken) -> None:
        faults.append(Unread(f"{name}, {kind} {number + 1}", f"{error}; the rest of it is not read"))

    for number in stream.elements(note):
        yield from faults
        faults.clear()
        try:
            if stream.peek() == "{":
                yield from read_record(stream, number + 1)
            else:
                stream.value()
                yield Unread(f"{name}, {kind} {number + 1}", f"this is no {kind}")
        except Broken as error:
            stream.fail(error)
    yield from faults
