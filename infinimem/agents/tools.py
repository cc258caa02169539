"""The seven tools that agents outside call: over MCP, or in a loop of their own.

    from infinimem.agents.tools import openai_tools, run_call

    reply = client.chat.completions.create(model=…, messages=messages, tools=openai_tools())
    for call in reply.choices[0].message.tool_calls:
        answer = run_call(library, call.function.name, call.function.arguments)

Five look, and are those of the agentic reader; `write` remembers; `consolidate` gives the task of sorting what was
written, and carries the answer out. Whatever is called with whatever arguments, the answer is a text and no exception.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from infinimem.errors import BadInput, BadPlan, InfinimemError
from infinimem.library import Library
from infinimem.llm.port import Call, Tool
from infinimem.model import HOLDS_FROM, Filter, Unit
from infinimem.readers import tools as reader
from infinimem.readers.arguments import PLACE, Fault, arguments_of, is_nothing, number_in, short
from infinimem.readers.lines import LONGEST_ENTRY, LONGEST_LINE, flat
from infinimem.readers.links import disputes
from infinimem.readers.memory import Memory, catalog, cited, marked, open_memory, units_of
from infinimem.store.layout import BUFFER
from infinimem.text.lines import counted
from infinimem.text.signature import render_seqs

ROOM = 2_000
"""Tokens of one answer."""
TASK_TOKENS = 5_000
"""Tokens of new entries that are given to an agent to sort at once."""
MOST_ENTRIES = 1_000
"""Entries of one call of `write`."""
WRITTEN_BY = "AI"
"""The source of an entry for which none is given."""


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool for agents: how it is called, the schema of the values it gives, and what it does to the library."""

    tool: Tool
    returns: Mapping[str, Any]
    only_reads: bool = True
    repeatable: bool = True
    """Whether a repeated call changes nothing more."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a call brought: for the model to read, and as values. A fault says in one line what to do instead."""

    text: str
    values: Mapping[str, Any]
    is_fault: bool = False


Runner = Callable[[Library, Mapping[str, Any], Filter], Result]


def given(**fields: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object with these fields."""
    return {"type": "object", "properties": fields}


TEXT = {"type": "string"}
LIST = {"type": "array"}
ENTRIES = given(entries=LIST)
READER = {tool.name: tool for tool in reader.TOOLS}
ABOUT = {
    "catalog": "The documents of memory with their summaries; with a query those most like it.",
    "trace": "What an entry replaced and what replaced it; seq is the 41 of #41.",
}
TOOLS = (
    AgentTool(Tool("catalog", ABOUT["catalog"], READER["catalog"].parameters), given(topics=LIST)),
    AgentTool(READER["search"], ENTRIES),
    AgentTool(READER["grep"], ENTRIES),
    AgentTool(READER["read"], ENTRIES),
    AgentTool(Tool("trace", ABOUT["trace"], READER["trace"].parameters), ENTRIES),
    AgentTool(
        reader.tool(
            "write",
            "Remember: each entry one statement that can be understood alone, on disk when this returns. time: when it "
            "happened (2026-05-01); source: who said it, user or a name, else AI; supersedes: the seqs that it makes "
            "untrue. A repeated key stores nothing.",
            ["entries"],
            entries={
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"text": TEXT, "time": TEXT, "source": TEXT, "supersedes": TEXT},
                    "required": ["text"],
                },
            },
            key=TEXT,
        ),
        given(seqs=LIST),
        only_reads=False,
        repeatable=False,
    ),
    AgentTool(
        reader.tool(
            "consolidate",
            "Sort what was written into documents. Without plan it gives the task; do it, and call again with your "
            "answer as plan. Rules check it, nothing is lost.",
            [],
            plan=TEXT,
        ),
        given(task=TEXT, seqs=LIST, skipped=LIST),
        only_reads=False,
        repeatable=False,
    ),
)
FOR_AGENTS = Filter()
"""What of a library agents may see: every tool, resource and instruction looks through this one filter."""
NAMES = tuple(one.tool.name for one in TOOLS)
EXAMPLES = {
    **{name: reader.EXAMPLES[name] for name in ("catalog", "search", "grep", "read", "trace")},
    "write": '{"entries": [{"text": "Maya joined Nordlys.", "time": "2026-05-01", "source": "user"}]}',
    "consolidate": "{}",
}


def memory_for(library: Library, filter: Filter) -> Memory:
    """The library as agents may see it now; for this thread alone."""
    index = library.index()
    return open_memory(
        index.root, index, filter, library.settings.text("language"), library.clock, library.settings.retention
    )


def run(
    library: Library, name: str, arguments: Mapping[str, Any] | str | None = None, filter: Filter = FOR_AGENTS
) -> Result:
    """What a call brings; one that makes no sense brings the remedy in a line, as does a library that refuses."""
    if name not in RUNNERS:
        near = difflib.get_close_matches(name.casefold(), NAMES, 1, 0.5)
        meant = f"; did you mean {near[0]}?" if near else "."
        return fault(f"there is no tool {short(name)}{meant} The tools are {', '.join(NAMES)}.")
    try:
        given = arguments_of(arguments, EXAMPLES[name]) if isinstance(arguments, str) else dict(arguments or {})
        return RUNNERS[name](library, given, filter)
    except (Fault, InfinimemError) as problem:
        return fault(reader.one_line(problem))
    except OSError as error:
        return fault(f"{name} could not be done: {error.strerror or error}; tell the user to run: infinimem check")
    except Exception as error:  # the tool runner's edge: no call may end a session
        return fault(f"{name} could not do that ({type(error).__name__}); write for example {EXAMPLES[name]}")


def fault(message: str) -> Result:
    """A call that could not be carried out."""
    return Result(message, {"note": message}, is_fault=True)


# In a loop of one's own


def openai_tools() -> list[dict[str, Any]]:
    """The tools as `chat.completions.create(tools=…)` and servers like it take them."""
    return [
        {
            "type": "function",
            "function": {"name": one.tool.name, "description": one.tool.about, "parameters": dict(one.tool.parameters)},
        }
        for one in TOOLS
    ]


def run_call(library: Library, name: str, arguments: Mapping[str, Any] | str | None = None) -> str:
    """What to answer to a tool call: the arguments may be the model's own JSON text, as it came."""
    return run(library, name, arguments).text


# Looking


def look(name: str, longest: int) -> Runner:
    """One of the reader's tools, as an agent outside calls it: each call by itself, nothing taken as shown."""

    def runner(library: Library, arguments: Mapping[str, Any], filter: Filter) -> Result:
        memory = memory_for(library, filter)
        told = reader.run_tool(memory, Call("", name, json.dumps(arguments)), reader.Shown(), ROOM)
        if told.fault:
            return fault(told.text)
        note = told.text.partition("\n")[0]
        if name == "catalog":
            rows = {row.topic: row for row in catalog(memory)}
            topics = [row_values(rows[topic]) for topic in told.topics]
            return Result(told.text, {"note": note, "topics": topics})
        start = number_in(arguments, "start", 1) if name == "read" else 1
        entries = [entry_values(marked(memory, unit), longest, start) for unit in told.units]
        warnings = [warning(unit, other) for unit, other in disputes(memory, told.units)]
        text = "\n".join([told.text, *warnings])
        return Result(text, {"note": note, "entries": entries, **({"warnings": warnings} if warnings else {})})

    return runner


def warning(unit: Unit, other: Unit) -> str:
    """That what was found has another side, with its words."""
    both = f"#{unit.seqs[0]} and #{other.seqs[0]} [{cited(other)}]"
    return f"! {both} contradict each other, only one can be true: {flat(other.text, LONGEST_LINE)}"


def row_values(row: Any) -> dict[str, Any]:
    """A document of the catalogue, as values."""
    summary = flat(row.summary or row.title, reader.SUMMARY)
    return {"topic": row.topic, "entries": row.entries, "tokens": row.tokens, "summary": summary}


def entry_values(unit: Unit, longest: int, start: int = 1) -> dict[str, Any]:
    """An entry as values, its text from a character on: what is empty is left out."""
    text = unit.text[max(0, start - 1) :]
    text = text if len(text) <= longest else f"{text[:longest]} … (cut)"
    by = unit.get("retired_by")
    retired = f"{unit.retired} by #{by}" if unit.retired and by not in ("", "0") else unit.retired
    retired = f"expired {unit.get('expires')}".rstrip() if retired == "expired" else retired
    values = {
        "place": cited(unit),
        "under": flat(" > ".join(unit.headings), 200),
        "seq": render_seqs(unit.seqs),
        "time": unit.time,
        "noted": "" if unit.time else unit.observed[:10],
        "source": unit.source,
        "retired": retired,
        "holds_from": unit.get(HOLDS_FROM),
        "text": text,
    }
    return {name: value for name, value in values.items() if value}


# Writing


def write(library: Library, arguments: Mapping[str, Any], filter: Filter) -> Result:
    """Append entries; says their numbers, and when it is time to consolidate."""
    entries = [draft(value) for value in entries_in(arguments)]
    for entry in entries:
        if PLACE.fullmatch(str(entry.get("supersedes", ""))):  # cited, instead of numbered
            meant = reader.unit_asked(memory_for(library, filter), {"seq": entry["supersedes"]})
            entry["supersedes"] = render_seqs(meant.seqs)
    key = arguments.get("key")
    key = "" if is_nothing(key) else str(key)
    try:
        done = library.write_all(entries, source=WRITTEN_BY, key=key)
    except BadInput as error:
        raise Fault(f"{reader.one_line(error)}; write for example {EXAMPLES['write']}") from error
    notes = [f"written as #{render_seqs(done.seqs)}" if done.stored else f"key {short(key)}: stored before"]
    if not done.stored:
        notes[0] += f" as #{render_seqs(done.seqs)}"
    else:
        if done.too_new:
            notes.append(f"there is no #{render_seqs(done.too_new)} that it could replace")
        notes += slips(entries, done.seqs)
    if is_full(library):
        notes.append("CURRENT is full: call consolidate")
    text = "; ".join(notes)
    return Result(text, {"note": text, "seqs": list(done.seqs)})


def slips(entries: Sequence[Mapping[str, Any]], seqs: Sequence[int]) -> list[str]:
    """What was stored and looks like a key or a password, by number: its words are not repeated."""
    from infinimem.secrets import secrets_in

    found = {seq: secrets_in(str(entry["text"])) for seq, entry in zip(seqs, entries, strict=True)}
    return [
        f"#{seq} looks like it holds a secret ({', '.join(dict.fromkeys(kind for kind, _ in kinds))}): tell the user"
        for seq, kinds in found.items()
        if kinds
    ]


def entries_in(arguments: Mapping[str, Any]) -> list[Any]:
    """The entries of a call, however a model gives them. Raises `Fault`."""
    value = arguments.get("entries", arguments.get("text") and {k: v for k, v in arguments.items() if k != "key"})
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        with suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, str | Mapping):
        value = [value]
    if is_nothing(value) or not isinstance(value, list):
        raise Fault(f"entries is missing; write for example {EXAMPLES['write']}")
    if len(value) > MOST_ENTRIES:
        raise Fault(f"these are {len(value):,} entries; write at most {MOST_ENTRIES:,} at once; nothing was written")
    return value


def draft(value: Any) -> dict[str, Any]:
    """One entry as `Library.write` takes it: without what was left blank. Raises `Fault`."""
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, Mapping):
        raise Fault(f"an entry is an object with a text, not {short(value)}; for example {EXAMPLES['write']}")
    kept = {str(key): one for key, one in value.items() if key == "text" or not is_nothing(one)}
    if "supersedes" in kept and isinstance(kept["supersedes"], str):
        kept["supersedes"] = kept["supersedes"].replace("#", "").replace(" ", "").replace(",", "+")
    return kept


def is_full(library: Library) -> bool:
    """Whether CURRENT holds as much as a flush is due for, by its size alone: a write costs the same ever after."""
    try:
        return (library.root / BUFFER).stat().st_size >= 4 * library.settings.count("flush.max_tokens")
    except OSError:
        return False


# Consolidating


def consolidate(library: Library, arguments: Mapping[str, Any], filter: Filter) -> Result:
    """The task of sorting CURRENT, or what became of a plan for it."""
    plan = arguments.get("plan")
    if is_nothing(plan):
        return give_task(library, filter)
    from infinimem.consolidate.story import in_runs
    from infinimem.plan.paper import named, parse_plan

    try:
        report = library.flush(plan=parse_plan(plan if isinstance(plan, str) else json.dumps(plan), "plan"))
    except BadPlan as error:
        told = reader.one_line(error)
        raise Fault(f"{told}; nothing was changed. For the task: call consolidate without plan") from error
    skipped = [f"{step if isinstance(step, str) else named(step)}: {why}" for step, why in in_runs(report.skipped)]
    topics = ", ".join([*report.created, *report.changed]) or "none"
    entries = counted(len(report.seqs), "entry", "entries")
    notes = [f"{entries} sorted, {len(report.retired)} retired; documents: {topics}"]
    if report.left:
        notes.append(f"{len(report.left)} wait in CURRENT: call consolidate for the next task")
    notes += [flat(note, 300) for note in report.notes]
    lines = ["; ".join(notes), *(f"skipped: {flat(one, 300)}" for one in skipped)]
    values = {"note": lines[0], "seqs": list(report.seqs), "skipped": [flat(one, 300) for one in skipped]}
    return Result("\n".join(lines), values)


def give_task(library: Library, filter: Filter) -> Result:
    """What there is to sort, with the rules for it."""
    memory = memory_for(library, filter)
    if not any(unit.seqs for unit in units_of(memory, BUFFER)):
        note = "CURRENT is empty: there is nothing to consolidate"
        return Result(note, {"note": note})
    note = "do this task, then call consolidate with your YAML as plan; the commands it names are tools here"
    task = library.plan_template(most_tokens=TASK_TOKENS, filter=filter)
    return Result(f"{note}:\n\n{task}", {"note": note, "task": task})


RUNNERS: dict[str, Runner] = {
    "catalog": look("catalog", 0),
    "search": look("search", LONGEST_LINE),
    "grep": look("grep", LONGEST_LINE),
    "read": look("read", LONGEST_ENTRY),
    "trace": look("trace", LONGEST_ENTRY),
    "write": write,
    "consolidate": consolidate,
}
