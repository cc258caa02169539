"""Walking through a file that is an array of records: what is broken is listed with its place, the rest is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO

from infinimem.exchange.json_stream import Broken, JsonStream
from infinimem.exchange.message import Reading, Unread

ReadRecord = Callable[[JsonStream, int], Reading]
"""Reads the object that comes next, whose number from 1 it is told; what is wrong in it may be raised as `Broken`."""


def each_record(
    file: IO[bytes], name: str, read_record: ReadRecord, *, kind: str = "conversation", inside: tuple[str, ...] = ()
) -> Reading:
    """What is read of each record of an array, which may be a member (one of `inside`) of an object.

    An object without such a member is one record by itself.
    """
    stream = JsonStream(file)
    try:
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
        if stream.peek():
            raise Broken("something behind the end of it", stream.byte)
    except Broken as error:
        yield Unread(name, f"{error}; nothing is read from there on")


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
