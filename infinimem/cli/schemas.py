"""The JSON schemas: of the documents that infinimem reads, and of what each command prints with `--json`.

Fields may be added in a minor version; none is removed or changes its meaning.
"""

from __future__ import annotations

from typing import Any

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ABOUT = {
    "plan": "a plan file: flush --plan-out writes it, flush --plan carries it out",
    "config": "a configuration file: infinimem.yaml, or your own config.yaml",
    "init": "init --json: the library",
    "write": "write --json: the seqs",
    "write-extract": "write --extract --json: the seqs, and what a model took from the words",
    "flush": "flush --json: the report",
    "flush-estimate": "flush --estimate --json: what a model would cost",
    "ask": "ask --json: answer, citations, evidence",
    "status": "status --json: sizes, ages, problems",
    "catalog": "catalog --json: the topics",
    "search": "search --json: hits, best first",
    "grep": "grep --json: matching lines",
    "read": "read --json: lines of a document",
    "trace": "trace --json: an entry's story, or a list of them",
    "timeline": "timeline --json: from when to when each statement held",
    "stats": "stats --json: sizes, growth, sources",
    "stats-cost": "stats --cost --json: what models were asked and what it took",
    "check": "check --json: findings",
    "split": "split --json: the report, as of flush",
    "merge": "merge --json: the report, as of flush",
    "undo": "undo --json: the report, as of flush",
    "review": "review --json: proposals and recent edits",
    "review-take": "review --take N --json: the report, as of flush",
    "feedback": "feedback --json: what was noted",
    "reconsolidate": "reconsolidate --json: each link with its reason, and the report",
    "recover": "recover --json: the seqs that came back",
    "settings": "config --json: settings with values and origins",
    "schema": "schema --json: the names of the schemas",
    "demo": "demo --json: the commands that were run and what they printed",
}

Schema = dict[str, Any]


def text(about: str = "", **more: Any) -> Schema:
    """A string."""
    return {"type": "string", **({"description": about} if about else {}), **more}


def number(about: str = "", least: int = 0) -> Schema:
    """A whole number."""
    return {"type": "integer", "minimum": least, **({"description": about} if about else {})}


def share(about: str = "") -> Schema:
    """A number."""
    return {"type": "number", **({"description": about} if about else {})}


def truth(about: str = "") -> Schema:
    """True or false."""
    return {"type": "boolean", **({"description": about} if about else {})}


def rows(of: Schema, about: str = "") -> Schema:
    """A list."""
    return {"type": "array", "items": of, **({"description": about} if about else {})}


def record(**fields: Schema) -> Schema:
    """An object that has all of these fields, and perhaps others in later versions."""
    return {"type": "object", "properties": fields, "required": list(fields)}


SEQS = rows(number(least=1), "entry numbers")
FIELDS = {"type": "object", "additionalProperties": {"type": "string"}, "description": "signature fields"}
USAGE = record(calls=number(), tokens_in=number(), tokens_out=number(), seconds=share())
DATES = rows(
    record(words=text("as they stand in the text"), means=text("ISO date; a/b is from a to b")),
    "words for time, seen from when the entry was said",
)
PIECE = {
    "seqs": SEQS,
    "topic": text("topic id; CURRENT for the buffer"),
    "path": text("file, relative to the library"),
    "line": number("first line, counted from 1", 1),
    "stop": number("last line, inclusive", 1),
    "text": text(),
    "time": text("ISO 8601, perhaps partial; empty when unknown"),
    "source": text(),
    "headings": rows(text()),
    "retired": text("empty while it holds; else superseded, duplicate, expired or deleted"),
    "dates": DATES,
    "score": share("compares within one answer only"),
}
PROBLEM = {"path": text(), "line": number("0 is the whole file"), "message": text()}


def schema_of(name: str) -> Schema:
    """The schema with a name out of `ABOUT`."""
    if name == "plan":
        from infinimem.plan.paper import SCHEMA

        return SCHEMA
    body = config_schema() if name == "config" else output_schema(name)
    return {"$schema": DIALECT, "title": f"infinimem {name}", "description": ABOUT[name], **body}


def config_schema() -> Schema:
    """What a configuration file may hold: dotted names, or one mapping inside another."""
    from infinimem.config import SETTINGS

    properties: dict[str, Any] = {"format": {"const": 1, "description": "marks a folder as a library"}}
    for setting in SETTINGS:
        value = setting_schema(setting)
        properties[setting.name] = value
        group, dot, last = setting.name.partition(".")
        if dot:
            inner = properties.setdefault(group, {"type": "object", "properties": {}, "additionalProperties": False})
            inner["properties"][last] = value
    return {"type": "object", "properties": properties, "additionalProperties": False}


def setting_schema(setting: Any) -> Schema:
    """One setting's value."""
    from infinimem.config import DURATION, LANGUAGES

    about = {"description": setting.about, "default": setting.default}
    match setting.kind:
        case "count":
            return {"type": "integer", "minimum": 1, **about}
        case "share":
            return {"type": "number", "minimum": 0, "maximum": 1, **about}
        case "duration":
            return {"type": ["string", "number"], "pattern": f"^{DURATION.pattern}$", "minimum": 0, **about}
        case "language":
            return {"enum": list(LANGUAGES), **about}
        case _:
            return {"enum": list(setting.choices), **about}


def output_schema(name: str) -> Schema:
    """What a command prints with `--json`."""
    match name:
        case "init":
            return record(library=text(), created=truth())
        case "write":
            return record(**written_fields())
        case "write-extract":
            fact = {"seq": number(least=1), "text": text(), "time": text("empty when unknown")}
            return record(
                **written_fields(),
                extracted=rows(record(**fact, **{"from": SEQS}), "new entries, and the entries they come from"),
                skipped=rows(record(text=text(), why=text()), "what the model proposed and a check refused"),
                notes=rows(text(), "dates that were not taken over"),
                failures=rows(text(), "what the model could not do"),
                usage=USAGE,
            )
        case "flush" | "split" | "merge" | "undo" | "review-take":
            return report_schema()
        case "flush-estimate":
            price = share("at model.price_in and model.price_out; 0 where they are not set")
            return record(
                calls=number(), tokens_in=number(), tokens_out=number(), seconds=share(), price=price, entries=number()
            )
        case "ask":
            return answer_schema()
        case "search":
            return rows(record(**PIECE, fields=FIELDS))
        case "recover":
            return record(recovered=SEQS)
        case _:
            return view_schema(name)


def written_fields() -> dict[str, Schema]:
    """What `write` prints."""
    repeat = record(seq=number(least=1), of=number(least=1))
    return {
        "seqs": SEQS,
        "stored": truth("false when the key was written before, or there was nothing to write"),
        "repeats": rows(repeat, "entries whose very words were in CURRENT already"),
        "library": text(),
        "created": truth("whether the library was made now"),
    }


def answer_schema() -> Schema:
    """What `ask` prints: the answer, what it rests on, and how that was found."""
    one = record(
        calls=rows(text(), "tool calls and what came of each"),
        new=number("entries not shown before"),
        tokens=number("sent and received"),
        seconds=share(),
    )
    by = number("the entry that took its place; 0 for none")
    opposed = rows(number(least=1), "entries that cannot be true together with it")
    piece = record(**PIECE, by=by, contradicts=opposed)
    return record(
        answer=text("empty when no model wrote one"),
        found=truth("false: not in memory"),
        citations=rows(text(), "topic:line"),
        evidence=rows(
            piece,
            "what the answer was written from; all of it is shown to a model",
        ),
        nearest=rows(piece, "what comes nearest to a question that memory does not answer"),
        rounds=rows(one, "a reader's rounds"),
        stop=text("why the reader stopped"),
        reader={"enum": ["agentic", "hybrid", "summary", "bm25"]},
        fallback=truth("the model failed, and part or all of its work was done without it"),
        failed=text("why an answer that was asked for was not written; empty otherwise"),
        why=text("why memory does not answer; empty otherwise"),
        dropped=rows(text(), "statements of the model without support, left out of the answer"),
        removed=number("citations of entries that do not exist, taken out"),
        usage=USAGE,
    )


def report_schema() -> Schema:
    """The report of everything that changes topics."""
    outcome = record(
        step={"type": "object", "description": "as in a plan"},
        status={"enum": ["executed", "skipped", "no-op"]},
        why=text(),
    )
    return record(
        flushed=truth("whether anything was changed"),
        dry_run=truth(),
        due=truth("false when --if-due found nothing to do"),
        reason=text(),
        seqs=rows(number(least=1), "entries that left CURRENT; for undo, that came back to it"),
        left=rows(number(least=1), "entries that stay in CURRENT"),
        created=rows(text(), "topics"),
        changed=rows(text(), "topics"),
        removed=rows(text(), "topics"),
        retired=rows(record(seq=number(least=1), by=number("0: nothing took its place"), why=text())),
        outcomes=rows(outcome),
        notes=rows(text()),
        diff=text("unified diff; with dry_run only"),
        planner={"enum": ["lexical", "model"]},
        failures=rows(text(), "what the model could not do"),
        usage=USAGE,
        seconds=share(),
    )


def view_schema(name: str) -> Schema:
    """What the looking commands print with `--json`."""
    match name:
        case "status":
            sizes = "topics guests entries tokens buffered buffer_tokens newest_seq".split()
            return record(
                library=text(),
                **{size: number() for size in sizes},
                buffer_age=share("seconds"),
                due=text("why CURRENT is due for a flush; empty when it is not"),
                last_flush=text("ISO 8601; empty before the first"),
                problems=rows(record(**PROBLEM)),
            )
        case "stats" | "stats-cost":
            return figures_schema() if name == "stats" else cost_schema()
        case "catalog":
            return rows(
                record(
                    topic=text(), path=text(), title=text(), summary=text(), entries=number(), tokens=number(),
                    guest=truth("a file of another tool: read, never changed"),
                )
            )  # fmt: skip
        case "grep":
            return rows(
                record(
                    path=text(), topic=text(), line=number(least=1), text=text(), seqs=SEQS, time=text(),
                    source=text(), before=rows(text()), after=rows(text()),
                )
            )  # fmt: skip
        case "read":
            return record(
                topic=text(), path=text(), title=text(), first=number(), last=number(), total=number(),
                lines=rows(text()),
            )  # fmt: skip
        case "trace":
            return {"anyOf": [story_schema(), rows(story_schema())]}
        case "review":
            return review_schema()
        case "feedback":
            return record(
                verdict={"enum": ["good", "bad"]}, shown=rows(number(least=1), "seqs that the last ask showed")
            )
        case "reconsolidate":
            step = {"type": "object", "description": "as in a plan"}
            return record(lessons=rows(record(step=step, why=text("in a sentence"))), report=report_schema())
        case "timeline":
            return timeline_schema()
        case "check":
            return rows(
                record(
                    **PROBLEM, code=text(), blocking=truth("the file is left unchanged until a person looked"),
                    fixable=truth(), fixed=truth(),
                )
            )  # fmt: skip
        case "settings":
            value = {"type": ["integer", "number", "string", "boolean"]}
            row = record(name=text(), value=value, origin=text("default, flag, $VARIABLE or file:line"), about=text())
            return record(library=text(), user_config=text(), settings=rows(row))
        case "schema":
            return rows(record(name=text(), about=text()))
        case _:
            step = record(command=text(), exit_code=number(), output=text("both streams"))
            return record(library=text("the copy"), steps=rows(step))


def figures_schema() -> Schema:
    """What `stats` prints."""
    names = "topics guests entries buffered written tokens median_tokens forgotten".split()
    counts = {"type": "object", "additionalProperties": number()}
    topic = record(topic=text(), entries=number(), tokens=number())
    surface = {"type": "integer", "description": "written less retired up to then: All-Mem's surface growth"}
    audit = record(kind=text(), edits=number("made, as far as evidence tells"), valid=number(), harmful=number())
    return record(
        library=text(),
        **{name: number() for name in names},
        retired={**counts, "description": "entries by reason"},
        doubled=rows(number(least=1), "seqs that stand in two places"),
        sources=rows(record(source=text(), entries=number()), "of what is visible or waiting, most first"),
        months=rows(record(month=text("2026-05"), written=number(), retired=number(), surface=surface)),
        largest=rows(topic),
        smallest=rows(topic, "smallest first, without those among the largest"),
        bytes={**counts, "description": "on disk, by part"},
        recoverability=record(
            retired=number(),
            share=share("of them: evidence has words and reason, and a chain leads to them"),
            deepest=number("replacements from what is visible"),
        ),
        audits=rows(audit, "what people said of edits: see infinimem review"),
    )


def cost_schema() -> Schema:
    """What `stats --cost` prints."""
    kind = {name: text() for name in ("month", "command", "step", "model")}
    price = share("at model.price_in and model.price_out; 0 where they are not set")
    counts = {name: number() for name in ("calls", "failures", "tokens_in", "tokens_out")}
    row = record(**kind, **counts, seconds=share(), price=price)
    return record(total=row, rows=rows(row, "by month, command, step and model"))


def timeline_schema() -> Schema:
    """What `timeline` prints, in order of time."""
    kind = {
        "since": text("when it began to hold: its time, else when it was noted; empty when unknown"),
        "until": text("when it ceased to hold; empty while it holds"),
        "why": text("superseded, duplicate, expired, deleted or split; `expires` where the end is still to come"),
        "by": rows(number(least=1), "what took its place"),
        "waiting": truth("this waits for a flush"),
        "observed": text("when the library came to know it"),
        "retired_at": text("when the library let go of it"),
    }
    place = {name: PIECE[name] for name in ("seqs", "topic", "path", "line", "text", "time", "source", "dates")}
    return rows(record(**place, **kind))


def review_schema() -> Schema:
    """What `review` prints: what waits for a person, and what was done."""
    step = {"type": "object", "description": "as in a plan, with the planner's confidence"}
    texts = rows(text(), "words; of a split or merge of topics their ids")
    proposal = record(
        number=number("for --take and --drop", 1),
        at=text(),
        step=step,
        before=texts,
        after=texts,
        refused=text("why it cannot be taken now; empty otherwise"),
    )
    kinds = "superseded duplicate split joined topic-split topic-merge".split()
    edit = record(
        edit=text("its name, for --valid and --harmful"),
        kind={"enum": kinds},
        at=text(),
        seqs=rows(number(least=1)),
        by=rows(number(least=1), "what took their place"),
        topics=rows(text()),
        before=texts,
        after=texts,
        undone=truth("taken back since"),
        verdict={"enum": ["", "valid", "harmful"]},
        judged=text("when; empty for never"),
    )
    return record(proposals=rows(proposal), edits=rows(edit, "newest first"))


def story_schema() -> Schema:
    """An entry's story."""
    words = record(path=text(), line=number(least=1), text=text(), fields=FIELDS)
    tie = record(to=text("a seq or a topic"), seqs=SEQS, relation=text("empty when not said"))
    return record(
        seq=number(least=1),
        visible=truth(),
        place=text("topic:line; empty when it is not visible"),
        path=text(),
        line=number(),
        seqs=rows(number(least=1), "what the visible line stands for"),
        text=text(),
        fields=FIELDS,
        dates=DATES,
        evidence=rows(words, "its words, verbatim, by revision"),
        fate=text("why it is not visible any more"),
        at=text("since when"),
        by=number("what took its place; 0 for nothing"),
        replaced=rows(number(least=1)),
        parts=rows(number(least=1), "what it was divided into"),
        links=rows(tie, "what it is linked to"),
        linked_from=rows(record(seq=number(least=1), relation=text()), "what is linked to it"),
    )
