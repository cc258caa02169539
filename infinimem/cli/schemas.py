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
    "flush-root": "flush --root DIR --json: what became of many libraries",
    "flush-estimate": "flush --estimate --json: what a model would cost",
    "ask": "ask --json: answer, citations, evidence",
    "ask-root": "ask --root DIR --json: answer, citations, evidence of many libraries",
    "status": "status --json: sizes, ages, problems",
    "catalog": "catalog --json: the topics",
    "search": "search --json: hits, best first",
    "search-root": "search --root DIR --json: hits in many libraries",
    "grep": "grep --json: matching lines",
    "read": "read --json: lines of a document",
    "trace": "trace --json: an entry's story, or a list of them",
    "history": "history --json: what happened, newest first",
    "history-summary": "history TOPIC --summary --json: what the summary said, newest first",
    "history-headings": "history TOPIC --headings --json: which headings came and went, newest first",
    "diff": "diff --json: what changed, by entry",
    "timeline": "timeline --json: from when to when each statement held",
    "stats": "stats --json: sizes, growth, sources",
    "stats-cost": "stats --cost --json: what models were asked and what it took",
    "check": "check --json: findings, worst first",
    "check-preview": "check --fix --dry-run --json: findings, and what would be changed",
    "split": "split --json: the report, as of flush",
    "merge": "merge --json: the report, as of flush",
    "undo": "undo --json: the report, as of flush",
    "review": "review --json: proposals and recent edits",
    "review-take": "review --take N --json: the report, as of flush",
    "feedback": "feedback --json: what was noted",
    "reconsolidate": "reconsolidate --json: each link with its reason, and the report",
    "recover": "recover --json: the seqs that came back",
    "merge-driver": "merge-driver --json: the file, and how many places of it a person has to decide",
    "import": "import --json: what came in, what did not and why",
    "export": "export --json: what was written, and what was left out",
    "export-lines": "export --format jsonl: one line of it, a JSON object",
    "edit": "edit --json: what was saved, signed and found wrong",
    "watch": "watch --json: one event, on a line of its own",
    "forget": "forget --json: what was erased, what still holds it",
    "forget-root": "forget --root DIR --json: what was erased in each of many libraries",
    "settings": "config --json: settings with values and origins",
    "schema": "schema --json: the names of the schemas",
    "mcp": "mcp --json: the tools that agents get",
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
    "holds_from": text("when it is to take the place of what holds till then; empty where it holds"),
    "dates": DATES,
    "score": share("compares within one answer only"),
}
VERSION = {
    "at": text("since when; empty where that is not known"),
    "op": text("flush, command, undo, hand, or found: it was there already"),
    "by": text("who planned it: lexical, model, plan or hand; empty where nobody did"),
}
PROBLEM = {"path": text(), "line": number("0 is the whole file"), "message": text()}
FINDING = record(
    **PROBLEM, code=text(), blocking=truth("the file is left unchanged until a person looked"),
    fixable=truth(), fixed=truth(),
)  # fmt: skip


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
        case "retention":
            return retention_schema(about)
        case "access":
            return access_schema(about)
        case "language":
            return {"enum": list(LANGUAGES), **about}
        case "truth":
            return {"type": "boolean", **about}
        case _:
            return {"enum": list(setting.choices), **about}


def like_schema() -> Schema:
    """Fields and what their values are like."""
    one = {"type": ["string", "number", "boolean"], "description": "* stands for anything"}
    return {"type": "object", "additionalProperties": {"anyOf": [one, {"type": "array", "items": one}]}}


def retention_schema(about: Schema) -> Schema:
    """How long entries stay."""
    from infinimem.config import DURATION

    after = {"type": ["string", "number"], "pattern": f"^{DURATION.pattern}$", "minimum": 0}
    rule = {"where": like_schema(), "after": after, "do": {"enum": ["retire", "forget"]}}
    item = {"type": "object", "properties": rule, "required": ["after"], "additionalProperties": False}
    return {"type": "array", "items": item, **about, "default": []}


def access_schema(about: Schema) -> Schema:
    """What an audience is never shown."""
    from infinimem.config import AUDIENCES

    rules = {"deny": like_schema(), "allow": like_schema()}
    one = {"type": "object", "properties": rules, "additionalProperties": False}
    each = dict.fromkeys(AUDIENCES, one)
    return {"type": "object", "properties": each, "additionalProperties": False, **about, "default": {}}


def output_schema(name: str) -> Schema:
    """What a command prints with `--json`."""
    match name:
        case "init":
            return record(library=text(), created=truth(), git=rows(text(), "what --git did, in words"))
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
        case "ask-root":
            return answer_schema(
                root=text(), searched=number("libraries"), holding=number("libraries that hold any of the words"),
                troubles=rows(record(path=text(), why=text()), "libraries that were not asked"),
            )  # fmt: skip
        case "search":
            opposed = rows(number(least=1), "entries that cannot be true together with it")
            return rows(record(**PIECE, fields=FIELDS, contradicts=opposed))
        case "search-root":
            return record(
                root=text(), searched=number("libraries"), holding=number("libraries that hold any of the words"),
                hits=rows(record(library=text("its path"), **PIECE, fields=FIELDS, contradicts=SEQS), "best first"),
                troubles=rows(record(path=text(), why=text()), "libraries that were not searched"),
            )  # fmt: skip
        case "recover":
            return record(recovered=SEQS)
        case "flush-root":
            kinds = {"flushed": number(), "nothing": number("not due"), "failed": number()}
            return record(
                root=text(), entries=number("that left their buffers"), **kinds,
                troubles=rows(record(path=text(), why=text())),
            )  # fmt: skip
        case "merge-driver":
            return record(path=text(), conflicts=number())
        case "forget":
            return forget_schema()
        case "forget-root":
            return record(
                root=text(), searched=number("libraries"), entries=number("forgotten, or meant with dry_run"),
                libraries=rows(forget_schema(library=text("its path")), "those that hold what is meant"),
                troubles=rows(record(path=text(), why=text()), "libraries in which nothing was forgotten"),
            )  # fmt: skip
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


def answer_schema(**of_many: Schema) -> Schema:
    """What `ask` prints: the answer, what it rests on, and how that was found; `of_many` is told of many libraries."""
    one = record(
        calls=rows(text(), "tool calls and what came of each"),
        new=number("entries not shown before"),
        tokens=number("sent and received"),
        seconds=share(),
    )
    by = number("the entry that took its place; 0 for none")
    opposed = rows(number(least=1), "entries that cannot be true together with it")
    library = {"library": text("its path"), "place": text("as citations name it")} if of_many else {}
    piece = record(**library, **PIECE, by=by, contradicts=opposed)
    readers = ["gathered", "bm25"] if of_many else ["agentic", "hybrid", "summary", "bm25"]
    return record(
        **of_many,
        answer=text("empty when no model wrote one"),
        found=truth("false: not in memory"),
        citations=rows(text(), "library/topic:line" if of_many else "topic:line"),
        evidence=rows(
            piece,
            "what the answer was written from; all of it is shown to a model",
        ),
        nearest=rows(piece, "what comes nearest to a question that memory does not answer"),
        rounds=rows(one, "a reader's rounds"),
        stop=text("why the reader stopped"),
        reader={"enum": readers},
        fallback=truth("the model failed, and part or all of its work was done without it"),
        failed=text("why an answer that was asked for was not written; empty otherwise"),
        why=text("why memory does not answer; empty otherwise"),
        dropped=rows(text(), "statements of the model without support, left out of the answer"),
        removed=number("citations of entries that do not exist, or bear nothing of their statement out, taken out"),
        withheld=number("entries that fit the question and that the access rules keep from the model"),
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
        settled=rows(text("what git merges had left to be done")),
        erased=rows(number(least=1), "forgotten by a retention rule"),
        signed=rows(text(), "topics in which bullets that were typed by hand became entries"),
        forgotten=rows(number(least=1), "forgotten before, brought back by a merge, and forgotten again"),
        diff=text("unified diff; with dry_run only"),
        plan=text("the plan as YAML; with --plan-out - only"),
        planner={"enum": ["lexical", "model"]},
        failures=rows(text(), "what the model could not do"),
        commit=text("the git commit that keeps it; empty when none was made"),
        uncommitted=text("why a commit that git.commit asks for was not made"),
        usage=USAGE,
        seconds=share(),
    )


def forget_schema(**of_many: Schema) -> Schema:
    """What `forget` prints; `of_many` is told of one of many libraries."""
    place = {"path": text(), "line": number("0 is the file's name")}
    return record(
        **of_many,
        seqs=rows(number(least=1)),
        at=text("ISO 8601"),
        dry_run=truth(),
        texts=rows(record(seq=number(least=1), text=text()), "what would go; with dry_run only"),
        changed=rows(text(), "files"),
        removed=rows(text(), "files"),
        renamed=rows(record(old=text(), new=text()), "topics named after what is gone"),
        erased=rows(text(), "what else held the words: undo records, index, logs, backups"),
        copies=rows(record(seq=number(least=1), **place, why=text()), "entries with the same words, still there"),
        searched=number("files, afterwards"),
        remains=rows(record(**place, what=text()), "what still holds the words"),
        unread=rows(text(), "files that are no text in UTF-8, or cannot be read, inside which the search does not see"),
        media=rows(text(), "pictures, sounds and films"),
        notes=rows(text()),
        git=record(
            repository=text("empty where there is none"),
            versions=number("of files that hold the words; -1: too many to search", -1),
            paths=rows(text()),
            messages=number("commits whose message holds them"),
            commands=rows(text(), "what takes them out of its history"),
        ),
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
                    contradictions=number("pairs of entries, one of them here, that cannot both be true"),
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
        case "history" | "diff":
            return past_schema(name)
        case "trace":
            return {"anyOf": [story_schema(), rows(story_schema())]}
        case "history-summary":
            drifted = share("from the first version: 0 the same words, 1 none in common")
            return rows(record(**VERSION, drift=drifted, summary=text()))
        case "history-headings":
            named = {name: rows(text()) for name in ("headings", "added", "removed")}
            return rows(record(**VERSION, **named))
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
            return rows(FINDING)
        case "check-preview":
            return record(findings=rows(FINDING), diff=text("unified"))
        case "import":
            return imported_schema()
        case "edit":
            finding = record(**PROBLEM, code=text(), blocking=truth(), fixable=truth())
            return record(
                topic=text(), path=text(), changed=truth(), exit_code=number("the editor's"),
                signed=rows(number(least=1), "bullets that were signed just now"), problems=rows(finding),
                reworded=rows(number(least=1), "entries with other words than before"),
                marked=rows(number(least=1), "entries with other fields"),
                deleted=rows(number(least=1), "entries that nothing shows any more"),
                moved=rows(number(least=1), "entries that another file shows"),
            )  # fmt: skip
        case "watch":
            return event_schema()
        case "settings":
            value = {"type": ["integer", "number", "string", "boolean"]}
            row = record(name=text(), value=value, origin=text("default, flag, $VARIABLE or file:line"), about=text())
            return record(library=text(), user_config=text(), settings=rows(row))
        case "export":
            counts = {name: number() for name in ("documents", "entries", "withheld", "size")}
            kinds = text("jsonl, md or html")
            return record(format=kinds, out=text(), **counts, left_out=rows(record(**PROBLEM), "files not read"))
        case "export-lines":
            from infinimem.exchange.export.schema import LINE

            return LINE
        case "schema":
            return rows(record(name=text(), about=text()))
        case "mcp":
            schema = {"type": "object", "description": "a JSON schema"}
            return rows(record(name=text(), description=text(), parameters=schema, returns=schema, only_reads=truth()))
        case _:
            step = record(command=text(), exit_code=number(), output=text("both streams"))
            return record(library=text("the copy"), steps=rows(step))


def imported_schema() -> Schema:
    """What `import` prints. `messages` is the sum of added, known, skipped and problems.

    With --extract there are also `extracted`, `refused`, `dates` (not taken over), `failures` and `usage`, with
    --flush the report `flush`.
    """
    counts = {"type": "object", "additionalProperties": number()}
    file = {name: number() for name in ("added", "known", "skipped", "problems")}
    return record(
        dry_run=truth(),
        **{name: number() for name in ("messages", "added", "known", "conversations", "attached", "file_texts")},
        edited=number("added in the place of what it was edited from"),
        gone=rows(record(name=text(), seqs=text("of what the note no longer says: 12-15+18")), "notes that lost words"),
        seqs=text("of what was written: 12-15+18"),
        sources={**counts, "description": "who said what was added"},
        skipped={**counts, "description": "what is no part of what was said, by kind"},
        problems=rows(record(place=text(), why=text()), "what could not be read"),
        files=rows(record(name=text(), format=text(), **file)),
        others=rows(text(), "files without messages of a known format"),
        notes=rows(text(), "what was changed on the way"),
        library=text(),
        created=truth("whether the library was made now"),
    )


def event_schema() -> Schema:
    """What `watch` prints, a line each time."""
    events = "watching polling saved moved gone problem signed flushed failed waiting lost back stopped".split()
    return record(
        at=text("ISO 8601, UTC"),
        event={"enum": events},
        path=text("file, relative to the library; empty where it is about all of it"),
        line=number("0 is the whole file"),
        message=text(),
        code=text("of a problem, as in check"),
        blocking=truth("the file is left unchanged until a person looked"),
        fixable=truth("infinimem check --fix mends it"),
        seqs=rows(number(least=1), "entries that were signed or flushed"),
        count=number("topics, or files where they are too many to be named"),
    )


def past_schema(name: str) -> Schema:
    """What `history` and `diff` print."""
    if name == "history":
        gone = record(seq=number(least=1), by=number("0: nothing took its place"), why=text())
        return rows(
            record(
                at=text("ISO 8601"), what=text("in words"), topics=rows(text()), seqs=rows(number(least=1)),
                retired=rows(gone), commit=text("empty without git"), author=text("empty without git"),
            )
        )  # fmt: skip
    kinds = "added moved changed marked joined retired created removed renamed summary prose".split()
    change = record(
        kind={"enum": kinds}, topic=text("topic id; CURRENT for the buffer"), seqs=rows(number(least=1)), text=text(),
        before=text("words that were there before"), source=text("the topic that it comes from"),
        by=number("what took its place"), why=text("why it was retired; gone: evidence does not know yet"),
        line=number("where it stands now; 0: nowhere"),
    )  # fmt: skip
    since, commit = text("since when, in words"), text("since which commit; empty without git")
    return record(since=since, commit=commit, changes=rows(change), diff=text("unified diff; with --text only"))


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
        summaries=record(
            topics=number("with a summary"),
            faithful=number("of them: every number and name stands below"),
            drift=share("mean share of words that the first and the present version do not share"),
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
        "coming": truth("that end is still to come"),
        "observed": text("when the library came to know it"),
        "retired_at": text("when the library let go of it"),
        "forgotten": rows(number(least=1), "those of by whose words are gone"),
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
