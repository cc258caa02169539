"""The schema of one line of an export: what it is of, a document, one of the pieces that follow it, or the end."""

from __future__ import annotations

from typing import Any

from infinimem.exchange.export.json_lines import COUNTED, FORMAT, VERSION
from infinimem.exchange.export.pieces import ENDINGS, KINDS

Schema = dict[str, Any]


def text(about: str) -> Schema:
    """A string."""
    return {"type": "string", "description": about}


def piece(name: str, needed: Schema, optional: Schema) -> Schema:
    """A record with a name, the fields that it has, and those that it may have."""
    fields = {"record": {"const": name}, **needed}
    return {"type": "object", "properties": {**fields, **optional}, "required": list(fields)}


NUMBER: Schema = {"type": "integer", "minimum": 0}
PLACE = {"in": text("path of the document that it stands in")}
AFTER = {"after": text("the blank lines that follow, verbatim")}
RAW = {"raw": text("the lines as they stand, where the other fields would be rendered otherwise; it wins"), **AFTER}
FIELDS: Schema = {
    "fields": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "description": "the signature's fields in their order",
    }
}
SEQS: Schema = {"type": "array", "items": {"type": "integer", "minimum": 1}, "minItems": 1}
LINE: Schema = {
    "type": "object",
    "oneOf": [
        piece(
            "library",
            {
                "format": {"const": FORMAT},
                "version": {"const": VERSION, "description": "grows when an older infinimem could not read it"},
                "made_by": text("the program that wrote it"),
                "high": {**NUMBER, "description": "the last seq that was given; it is not given again"},
                "partial": {"type": "boolean", "description": "whether a filter held something back"},
            },
            {},
        ),
        piece(
            "document",
            {
                "path": text("file, relative to the library"),
                "kind": {"enum": list(KINDS), "description": "guest: a page without our id; log: lost from CURRENT"},
            },
            {
                "id": text("topic id"),
                "title": text("first heading, else the id"),
                "summary": text("as the front matter has it"),
                "ending": {"enum": list(ENDINGS), "description": "line terminators; lf where it is absent"},
                "front": text("the front matter with its fences, verbatim"),
                **AFTER,
            },
        ),
        piece("heading", {"level": {**NUMBER, "minimum": 1, "maximum": 6}, "text": text("without its marks")}, RAW),
        piece(
            "entry",
            {
                **PLACE,
                "seqs": SEQS,
                **FIELDS,
                "text": text("what was written; indents of continuation lines taken away"),
            },
            {"headings": {"type": "array", "items": {"type": "string"}, "description": "the path above it"}, **RAW},
        ),
        piece("event", {**PLACE, **FIELDS}, RAW),
        piece("prose", {"text": text("lines that are none of the others, verbatim, with terminators")}, AFTER),
        piece("end", dict.fromkeys(COUNTED.values(), NUMBER), {}),
    ],
}
