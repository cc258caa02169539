"""A plan on paper: the YAML or JSON document that can be written, read, edited and applied later."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from infinimem.errors import BadPlan
from infinimem.model import Create, Divide, Extend, Join, Link, Merge, Part, Retire, Split, Step, Summarise
from infinimem.plan.rules import RELATIONS
from infinimem.text.signature import parse_seqs, render_seqs

FENCED = re.compile(r"(?:`{3,}|~{3,})[a-z]*\n(.*?)\n?(?:`{3,}|~{3,})", re.DOTALL)  # as models and people answer
OPENING = re.compile(r"(?:\s|#[^\n]*\n|---\s*\n)*(?:plan:|buffer:|steps:|\{\s*\"?(?:plan|buffer|steps)\b)")
SEQS = {
    "type": ["string", "integer"],
    "description": "seqs: 12, 12-15 or 12-15+18",
    "pattern": r"^\d+([-+]\d+)*$",
}
TEXT = {"type": "string", "minLength": 1}
CONF = {"type": "number", "minimum": 0, "maximum": 1, "description": "the planner's confidence; default 1"}


def body(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The JSON schema of one step's body."""
    properties = {**required, **(optional or {}), "conf": CONF}
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


STEPS: dict[str, dict[str, Any]] = {
    "create": body({"topic": TEXT, "title": TEXT}),
    "extend": body({"topic": TEXT, "seqs": SEQS}, {"heading": {"type": "string"}}),
    "join": body({"seqs": SEQS, "text": TEXT}),
    "retire": body({"seq": SEQS, "why": {"enum": ["superseded", "duplicate", "expired", "deleted"]}}, {"by": SEQS}),
    "split": body(
        {
            "topic": TEXT,
            "parts": {
                "type": "array",
                "minItems": 2,
                "items": {
                    "type": "object",
                    "properties": {"topic": TEXT, "title": TEXT, "seqs": SEQS},
                    "required": ["topic", "title", "seqs"],
                    "additionalProperties": False,
                },
            },
        }
    ),
    "merge": body({"topics": {"type": "array", "items": TEXT, "minItems": 2}, "into": TEXT}, {"title": TEXT}),
    "summarise": body({"topic": TEXT, "text": {"type": "string"}}),
    "divide": body({"seq": SEQS, "texts": {"type": "array", "items": TEXT, "minItems": 2}}),
    "link": body(
        {
            "source": {"type": ["string", "integer"], "description": "the seq of a visible entry, or a topic's id"},
            "to": {"type": ["string", "integer"], "description": "the same"},
            "relation": {"enum": list(RELATIONS)},
        },
        {"remove": {"type": "boolean", "description": "take the link away"}},
    ),
}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "infinimem plan",
    "type": "object",
    "required": ["plan", "steps"],
    "properties": {
        "plan": {"const": 1},
        "buffer": {"type": "object", "properties": {"seqs": SEQS, "digest": {"type": "string"}}},
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 1,
                "properties": STEPS,
                "additionalProperties": False,
            },
        },
    },
}


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps, and the buffered entries that they were made for."""

    steps: tuple[Step, ...]
    seqs: tuple[int, ...] = ()
    digest: str = ""


def with_topics(plan: Plan, names: Mapping[str, str]) -> Plan:
    """The plan with some topics called by other names."""

    def renamed(step: Step) -> Step:
        match step:
            case Create() | Extend() | Summarise():
                return replace(step, topic=names.get(step.topic, step.topic))
            case Split():
                parts = tuple(replace(part, topic=names.get(part.topic, part.topic)) for part in step.parts)
                return replace(step, topic=names.get(step.topic, step.topic), parts=parts)
            case Merge():
                topics = tuple(names.get(topic, topic) for topic in step.topics)
                return replace(step, topics=topics, into=names.get(step.into, step.into))
            case Link():
                ends = (names.get(step.source, step.source), names.get(step.to, step.to))
                return replace(step, source=ends[0], to=ends[1])
            case _:
                return step

    return replace(plan, steps=tuple(map(renamed, plan.steps)))


def to_values(steps: Iterable[Step]) -> list[dict[str, Any]]:
    """The steps as plain values, one mapping each."""
    return [value_of(step) for step in steps]


def value_of(step: Step) -> dict[str, Any]:
    """One step as a plain value."""
    conf = {} if step.conf == 1.0 else {"conf": step.conf}
    match step:
        case Create(topic=topic, title=title):
            return {"create": {"topic": topic, "title": title, **conf}}
        case Extend(topic=topic, heading=heading, seqs=seqs):
            return {"extend": {"topic": topic, "heading": heading, "seqs": render_seqs(seqs), **conf}}
        case Join(seqs=seqs, text=text):
            return {"join": {"seqs": render_seqs(seqs), "text": text, **conf}}
        case Retire(seq=seq, by=by, why=why):
            return {"retire": {"seq": seq, **({"by": by} if by else {}), "why": why, **conf}}
        case Split(topic=topic, parts=parts):
            rows = [{"topic": p.topic, "title": p.title, "seqs": render_seqs(p.seqs)} for p in parts]
            return {"split": {"topic": topic, "parts": rows, **conf}}
        case Merge(topics=topics, into=into, title=title):
            return {"merge": {"topics": list(topics), "into": into, "title": title, **conf}}
        case Summarise(topic=topic, text=text):
            return {"summarise": {"topic": topic, "text": text, **conf}}
        case Divide(seq=seq, texts=texts):
            return {"divide": {"seq": seq, "texts": list(texts), **conf}}
        case Link(source=source, to=to, relation=relation, remove=remove):
            gone = {"remove": True} if remove else {}
            return {"link": {"source": end_value(source), "to": end_value(to), "relation": relation, **gone, **conf}}


def end_value(end: str) -> str | int:
    """A seq as a number, a topic as its id."""
    return int(end) if end.isascii() and end.isdigit() else end


def named(step: Step) -> str:
    """A step in a few words."""
    [(kind, body)] = value_of(step).items()
    parts = [str(body[key]) for key in ("topic", "into", "seqs", "seq") if body.get(key)]
    return " ".join([kind, *parts])


def render_plan(plan: Plan) -> str:
    """The plan as a YAML document that a person can read and edit."""
    import yaml

    content = {
        "plan": 1,
        "buffer": {"seqs": render_seqs(plan.seqs), "digest": plan.digest},
        "steps": to_values(plan.steps),
    }
    return str(yaml.dump(content, allow_unicode=True, sort_keys=False, width=110))


def parse_plan(text: str, where: str) -> Plan:
    """The plan in a YAML or JSON document. Raises `BadPlan` that says which step is wrong and how."""
    import yaml

    from infinimem.text.header import load_yaml

    body, above = without_talk(text)
    try:
        content = load_yaml(body)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1 + above}" if mark is not None else ""
        raise BadPlan(f"{where}{line}: this is no YAML or JSON ({getattr(error, 'problem', error)})") from error
    if not isinstance(content, Mapping) or content.get("plan") != 1 or not isinstance(content.get("steps"), list):
        raise BadPlan(f"{where}: this is no plan; it needs `plan: 1` and `steps:` (see: infinimem schema plan)")
    steps = tuple(step_of(step, f"{where}: step {number}") for number, step in enumerate(content["steps"], 1))
    buffer = content.get("buffer") or {}
    if not isinstance(buffer, Mapping):
        raise BadPlan(f"{where}: `buffer` is not a mapping of seqs and digest")
    return Plan(steps, seqs_of(buffer.get("seqs", ""), where, optional=True), str(buffer.get("digest", "")))


def without_talk(text: str) -> tuple[str, int]:
    """The plan in what a chat model answered, perhaps fenced and with talk around it; and the lines above it."""
    whole = FENCED.fullmatch(text.strip())
    if whole:
        return whole[1], 0
    if not OPENING.match(text):
        for fenced in FENCED.finditer(text):
            if OPENING.match(fenced[1]):
                return fenced[1], text.count("\n", 0, fenced.start(1))
    return text, 0


def step_of(value: Any, where: str) -> Step:
    """One step of a plan document."""
    if not isinstance(value, Mapping) or len(value) != 1:
        raise BadPlan(f"{where}: a step is one of {', '.join(STEPS)} with its body")
    [(kind, given)] = value.items()
    if kind not in STEPS:
        raise BadPlan(f"{where}: {kind!r} is no step; use one of {', '.join(STEPS)}")
    if not isinstance(given, Mapping):
        raise BadPlan(f"{where}: the body of {kind} is not a mapping")
    schema = STEPS[kind]
    missing = [key for key in schema["required"] if key not in given]
    unknown = [str(key) for key in given if key not in schema["properties"]]
    if missing or unknown:
        raise BadPlan(f"{where}: {kind} {'lacks ' + missing[0] if missing else 'has no ' + unknown[0]}")
    conf = given.get("conf", 1.0)
    if isinstance(conf, bool) or not isinstance(conf, int | float) or not 0 <= conf <= 1:
        raise BadPlan(f"{where}: conf is a number from 0 to 1")
    conf = float(conf)
    match kind:
        case "create":
            return Create(line_of(given, "topic", where), line_of(given, "title", where), conf)
        case "extend":
            return Extend(
                line_of(given, "topic", where),
                line_of(given, "heading", where, ""),
                seqs_of(given["seqs"], where),
                conf,
            )
        case "join":
            return Join(seqs_of(given["seqs"], where), text_of(given, "text", where), conf)
        case "retire":
            by = seqs_of(given["by"], where)[0] if given.get("by") else 0
            return Retire(seqs_of(given["seq"], where)[0], by, line_of(given, "why", where), conf)
        case "split":
            return Split(line_of(given, "topic", where), parts_of(given["parts"], where), conf)
        case "merge":
            topics = given["topics"]
            if not isinstance(topics, list) or not all(isinstance(topic, str) for topic in topics):
                raise BadPlan(f"{where}: topics is a list of topic ids")
            return Merge(tuple(topics), line_of(given, "into", where), line_of(given, "title", where, ""), conf)
        case "divide":
            texts = given["texts"]
            if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
                raise BadPlan(f"{where}: texts is a list of pieces of the entry's text")
            return Divide(seqs_of(given["seq"], where)[0], tuple(texts), conf=conf)
        case "link":
            ends = (end_of(given, "source", where), end_of(given, "to", where))
            return Link(*ends, line_of(given, "relation", where), given.get("remove") is True, conf)
        case _:
            return Summarise(line_of(given, "topic", where), text_of(given, "text", where), conf)


def end_of(given: Mapping[str, Any], key: str, where: str) -> str:
    """One end of a link: a seq, or a topic's id."""
    value = given[key]
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return str(value)
    return line_of(given, key, where)


def parts_of(value: Any, where: str) -> tuple[Part, ...]:
    """The parts of a split."""
    if not isinstance(value, list) or not all(
        isinstance(part, Mapping) and {"topic", "title", "seqs"} <= set(part) for part in value
    ):
        raise BadPlan(f"{where}: parts is a list of topic, title and seqs")
    return tuple(
        Part(line_of(part, "topic", where), line_of(part, "title", where), seqs_of(part["seqs"], where))
        for part in value
    )


def seqs_of(value: Any, where: str, *, optional: bool = False) -> tuple[int, ...]:
    """Seqs given as a number, a text or a list of either."""
    pieces: Sequence[Any] = value if isinstance(value, list) else [value]
    seqs = tuple(seq for piece in pieces if not isinstance(piece, bool) for seq in parse_seqs(str(piece)))
    if not seqs and not optional:
        raise BadPlan(f"{where}: {value!r} is no seq; write 12, 12-15 or 12-15+18")
    return seqs


def text_of(given: Mapping[str, Any], key: str, where: str, default: str | None = None) -> str:
    """A text in a step's body."""
    value = given.get(key, default)
    if not isinstance(value, str):
        raise BadPlan(f"{where}: {key} is not a text; put it in quotes")
    return value


def line_of(given: Mapping[str, Any], key: str, where: str, default: str | None = None) -> str:
    """A one-line text in a step's body."""
    value = text_of(given, key, where, default)
    if "\n" in value:
        raise BadPlan(f"{where}: {key} is one line")
    return value
