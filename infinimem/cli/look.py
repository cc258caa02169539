"""Looking at the library: `status`, `catalog`, `read`, `trace`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infinimem.cli.filters import AsOf, KnownAt, filter_of, topic_ids
from infinimem.cli.request import command_app, examples, open_library, wants_json
from infinimem.cli.show import (
    address,
    count,
    date_notes,
    date_values,
    duration,
    on_one_line,
    paint,
    paragraph,
    place_of,
    shown,
    shows_links,
    table,
)
from infinimem.cli.talk import emit, is_terminal, out, say

if TYPE_CHECKING:
    from pathlib import Path

    from rich.text import Text

    from infinimem.library import Library
    from infinimem.model import Entry, Filter, Unit
    from infinimem.reading import Status, Trace
    from infinimem.search.index import CatalogRow

app = command_app()

NAMES = 9
"""Columns of the names in `status`."""
FOLLOWED = 50
"""How far a chain of replacements is followed."""


# status


@app.command(epilog=examples("infinimem status"))
def status(ctx: typer.Context) -> int:
    """Sizes, ages and health, on one screen."""
    from infinimem.cli.progress import shown_library

    now = shown_library(ctx).status()
    if wants_json(ctx):
        emit(status_values(now))
        return 0
    print_status(now)
    return 0


def status_values(now: Status) -> dict[str, Any]:
    """The state as JSON has it."""
    names = "topics guests entries tokens buffered buffer_tokens buffer_age due last_flush newest_seq".split()
    values: dict[str, Any] = {name: getattr(now, name) for name in names}
    problems = [{"path": one.path, "line": one.line, "message": one.message} for one in now.problems]
    return {"library": now.root, **values, "problems": problems}


def print_status(now: Status) -> None:
    """The state and the first problems: two columns, wrapped on a terminal."""
    problems = [str(problem) for problem in now.problems[:5]]
    if is_terminal():
        from rich.text import Text

        table([*status_lines(now), *(("", Text(shown(problem), "red")) for problem in problems)], ("dim", ""))
        return
    for name, text in status_lines(now):
        out(f"{paint(f'{name:{NAMES}}', 'dim')} {text}")
    for problem in problems:
        out(f"{'':{NAMES}} {paint(problem, 'red')}")


def status_lines(now: Status) -> list[tuple[str, str]]:
    """The state in a few lines."""
    guests = f" and {count(now.guests, 'guest')}" if now.guests else ""
    age = f", the oldest {duration(now.buffer_age)} old" if now.buffered else ""
    due = "CURRENT is empty" if not now.buffered else f"due: {now.due}" if now.due else "not due yet"
    health = "no problem met; `infinimem check` looks at everything"
    if now.problems:
        health = f"{count(len(now.problems), 'problem')}; see: infinimem check"
    return [
        ("library", now.root),
        ("topics", f"{now.topics:,}{guests}: {entries(now.entries)}, {now.tokens:,} tokens"),
        ("CURRENT", f"{entries(now.buffered)}, {now.buffer_tokens:,} tokens{age}"),
        ("flush", due + (f"; the last was at {now.last_flush}" if now.last_flush else "; there was none so far")),
        ("newest", f"seq {now.newest_seq}" if now.newest_seq else "nothing written yet"),
        ("health", health),
    ]


def entries(number: int) -> str:
    """`1 entry`, `12 entries`."""
    return count(number, "entry", "entries")


# catalog


@app.command(
    epilog=examples("infinimem catalog", "infinimem catalog work --max-lines 5", "infinimem catalog --as-of 2026-02")
)
def catalog(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[WORD]...", help="Only topics with these words.")
    ] = None,
    max_lines: Annotated[
        int | None, typer.Option("--max-lines", metavar="N", min=1, help="Print N topics at most.")
    ] = None,
    max_bytes: Annotated[
        int | None, typer.Option("--max-bytes", metavar="N", min=1, help="Print N bytes at most.")
    ] = None,
    as_of: AsOf = "",
    known_at: KnownAt = "",
) -> int:
    """Every topic in one line: id, entries, tokens, summary.

    With words, only the topics that have them in id, title, summary or entries, best first. With --as-of or
    --known-at, the topics that had entries then; the summaries are made of those.
    """
    from infinimem.cli.progress import shown_library

    library = shown_library(ctx)
    filter = filter_of(None, "", "", "", as_of, known_at, False)
    rows = library.catalog(filter=filter)
    if words:
        rows = with_words(library, rows, words, filter)
    lines = ["\t".join((row.topic, str(row.entries), str(row.tokens), on_one_line(row.summary))) for row in rows]
    kept = fitting(lines, max_lines or 0, max_bytes or 0)
    listed = {row.topic for row in rows[:kept]}
    pairs = [pair for pair in library.disputes(filter=filter) if not listed.isdisjoint((pair[0].topic, pair[1].topic))]
    if wants_json(ctx):
        emit([row_values(row, pairs) for row in rows[:kept]])
    else:
        print_rows(library.root, rows[:kept])
    for unit, other in pairs:
        places = f"{unit.topic}:{unit.line} and {other.topic}:{other.line}"
        say(f"! {places} contradict each other; only one of them can be true")
    if kept < len(rows):
        say(f"{len(rows) - kept:,} more of {count(len(rows), 'topic')}; name words to search for, or raise the limit")
    if words and not rows:
        say(f"no topic has {' '.join(words)}")
    return 1 if words and not rows else 0


def with_words(library: Library, rows: list[CatalogRow], words: list[str], filter: Filter) -> list[CatalogRow]:
    """The rows that speak of the words: first those that name them all, then by what their entries say."""
    wanted = [word.casefold() for word in words]
    named = [row for row in rows if all(word in f"{row.topic} {row.title} {row.summary}".casefold() for word in wanted)]
    near = {topic: at for at, topic in enumerate(library.topics_like(" ".join(words), len(rows), filter=filter))}
    others = sorted((row for row in rows if row.topic in near and row not in named), key=lambda row: near[row.topic])
    return [*named, *others]


def fitting(lines: list[str], max_lines: int, max_bytes: int) -> int:
    """How many of the lines keep within both limits; 0 is no limit."""
    kept = len(lines) if not max_lines else min(max_lines, len(lines))
    if max_bytes:
        used = 0
        for at, line in enumerate(lines[:kept]):
            used += len(line.encode("utf-8", "replace")) + 1
            if used > max_bytes:
                return at
    return kept


def row_values(row: CatalogRow, pairs: Sequence[tuple[Unit, Unit]]) -> dict[str, Any]:
    """A row as JSON has it."""
    return {
        "topic": row.topic,
        "path": row.path,
        "title": row.title,
        "summary": row.summary,
        "entries": row.entries,
        "tokens": row.tokens,
        "guest": row.guest,
        "contradictions": sum(row.topic in (unit.topic, other.topic) for unit, other in pairs),
    }


def print_rows(root: Path, rows: list[CatalogRow]) -> None:
    """Columns on a terminal, tabs for a program."""
    if not is_terminal():
        for row in rows:
            out("\t".join((row.topic, str(row.entries), str(row.tokens), on_one_line(row.summary))))
        return
    table(
        [(topic_cell(root, row), f"{row.entries:,}", f"{row.tokens:,}", on_one_line(about(row))) for row in rows],
        ("cyan", ">", ">dim", ""),
        cutting=True,
    )


def about(row: CatalogRow) -> str:
    """What a topic is about: its title, unless its id says that already, and its summary."""
    says_it = "-".join(re.findall(r"\w+", row.title.casefold())) == row.topic
    return row.summary if says_it else f"{row.title}: {row.summary}"


def topic_cell(root: Path, row: CatalogRow) -> str | Text:
    """A topic's id, as a link to its file where the terminal has links."""
    if not shows_links():
        return row.topic
    from rich.style import Style
    from rich.text import Text

    return Text(shown(row.topic), Style(link=address(root, row.path)))


# read


@app.command(
    epilog=examples("infinimem read maya-work", "infinimem read maya-work:1-20", "infinimem read 'maya-work#Employers'")
)
def read(
    ctx: typer.Context,
    place: Annotated[
        str,
        typer.Argument(metavar="TOPIC[:A-B]", help="Also TOPIC:A, TOPIC#Heading, CURRENT.", autocompletion=topic_ids),
    ],
    number: Annotated[
        bool | None, typer.Option("--number/--no-number", "-n/-N", help="Number the lines; on a terminal by default.")
    ] = None,
) -> int:
    """A topic, some of its lines, or what stands under a heading."""
    topic, first, last, heading = parse_place(place)
    page = open_library(ctx).read(topic, first, last, heading=heading)
    if wants_json(ctx):
        names = ("topic", "path", "title", "first", "last", "total", "lines")
        emit({name: list(page.lines) if name == "lines" else getattr(page, name) for name in names})
        return 0
    numbered = is_terminal() if number is None else number
    wide = len(str(page.last))
    for at, line in enumerate(page.lines, page.first):
        lead = paint(f"{at:>{wide}}", "dim") + "  " if numbered else ""
        out(lead + page_line(line))
    return 0


def page_line(line: str) -> str:
    """A line of a document; on a terminal headings stand out and signatures stand back."""
    text = shown(line)
    if text.startswith("#"):
        return paint(text, "bold")
    if text.startswith(("- <", "* <", "+ <")) and "> " in text:
        signature, words = text.split("> ", 1)
        return paint(f"{signature}>", "dim") + f" {words}"
    return text


def parse_place(place: str) -> tuple[str, int, int, str]:
    """Topic, first and last line, heading of `topic:12-20`, `topic:12`, `topic:12-`, `topic#Heading`."""
    import re

    text = place.strip()
    if text.startswith("[") and text.endswith("]"):  # a citation, pasted
        text = text[1:-1]
    match = re.fullmatch(r"(.+?):(\d+)(-(\d*))?", text)
    if match:
        first = int(match[2])
        return match[1], first, int(match[4] or 0) if match[3] else first, ""
    topic, _, heading = text.partition("#")
    return topic, 1, 0, heading.strip()


# trace


@app.command(epilog=examples("infinimem trace 12", "infinimem trace 12 --json"))
def trace(
    ctx: typer.Context,
    seqs: Annotated[list[str], typer.Argument(metavar="SEQ...", help="An entry's number; also 12-15+18.")],
) -> int:
    """An entry's story: its words, where it stands, what it replaced and what replaced it."""
    from infinimem.cli.progress import shown_library
    from infinimem.cli.request import seqs_of

    wanted = seqs_of(seqs)
    library = shown_library(ctx)
    stories = [library.trace(seq) for seq in wanted]
    if wants_json(ctx):
        values = [trace_values(story) for story in stories]
        emit(values[0] if len(values) == 1 else values)
        return 0
    for at, story in enumerate(stories):
        if at:
            out()
        tell_story(library, story)
    return 0


def trace_values(story: Trace) -> dict[str, Any]:
    """A story as JSON has it."""
    from infinimem.text.signature import render_seqs

    here = story.here
    return {
        "seq": story.seq,
        "visible": here is not None,
        "place": f"{here.topic}:{here.line}" if here else "",
        "path": here.path if here else "",
        "line": here.line if here else 0,
        "seqs": list(here.seqs) if here else [],
        "text": here.text if here else "",
        "fields": dict(here.fields) if here else {},
        "dates": trace_dates(story),
        "evidence": [
            {
                "path": path,
                "line": entry.span.start + 1,
                "text": entry.text,
                "fields": dict(entry.signature.fields),
            }
            for path, entry in story.words
        ],
        "fate": story.fate,
        "at": story.at,
        "by": story.by,
        "replaced": list(story.replaced),
        "parts": list(story.parts),
        "links": [
            {"to": tie.topic or render_seqs(tie.seqs), "seqs": list(tie.seqs), "relation": tie.relation}
            for tie in story.links
        ],
        "linked_from": [{"seq": seq, "relation": relation} for seq, relation in story.linked_from],
    }


def trace_dates(story: Trace) -> list[dict[str, str]]:
    """What the words for time in a story's entry mean."""
    fields, text = words_of(story)
    given = dict(fields)
    return date_values(text, given.get("time") or given.get("observed", ""))


def tell_story(library: Library, story: Trace) -> None:
    """A story for a person."""
    fate = "visible" if story.here is not None else f"{story.fate or 'gone'} {story.at[:10]}".strip()
    out(f"{paint(f'seq {story.seq}', 'bold')}  {paint(fate, 'green' if story.here is not None else 'yellow')}")
    if story.fate == "forgotten":
        out(f"  forgotten at {story.at}; nothing of it is left")
        return
    fields, text = words_of(story)
    given = dict(fields)
    out(paragraph(text + date_notes(text, given.get("time") or given.get("observed", ""))))
    out(paint("  " + shown(", ".join(f"{key} {value}" for key, value in fields)), "dim"))
    if story.here is not None:
        seqs = f" (one line for {count(len(story.here.seqs), 'entry', 'entries')})" if len(story.here.seqs) > 1 else ""
        out(f"stands in {place_of(library.root, story.here.path, story.here.line)}{seqs}")
    for path, entry in story.words:
        rev = entry.signature.get("rev")
        kind = f"revision {rev} in" if rev else "verbatim in"
        out(f"{kind} {place_of(library.root, path, entry.span.start + 1)}")
        if entry.text != text:
            out(paint(paragraph(entry.text), "dim"))
    for old in story.replaced:
        tell_other(f"replaced {old}", *gist(library, old))
    for seq in story.parts:
        tell_other(f"divided into {seq}", *gist(library, seq))
    for by in [] if story.parts else successors(library, story):
        tell_other(f"replaced by {by.seq}", *gist_of(by))
    tell_links(library, story)


def tell_links(library: Library, story: Trace) -> None:
    """What an entry is linked to and what is linked to it; a contradiction is a warning."""
    for tie in story.links:
        if tie.topic:
            out(f"linked to {shown(tie.topic)}{relation_words(tie.relation)}")
        for seq in tie.seqs:
            tell_other(f"{warning(tie.relation)}linked to {seq}{relation_words(tie.relation)}", *gist(library, seq))
    for seq, relation in story.linked_from:
        tell_other(f"{warning(relation)}linked from {seq}{relation_words(relation)}", *gist(library, seq))


def relation_words(relation: str) -> str:
    """` (contradicts)`; nothing where it is not said."""
    return f" ({shown(relation)})" if relation else ""


def warning(relation: str) -> str:
    """A mark before what cannot be true together."""
    return paint("! ", "yellow") if relation == "contradicts" else ""


def tell_other(relation: str, words: str, place: str) -> None:
    """An entry that this one has to do with: on one line, or wrapped on a terminal."""
    where = paint(shown(f"[{place}]"), "cyan") if place else ""
    if is_terminal():
        out(f"{relation} {where}".rstrip())
        out(paragraph(words))
    else:
        out(f"{relation}: {words} {where}".rstrip())


def words_of(story: Trace) -> tuple[tuple[tuple[str, str], ...], str]:
    """An entry's fields and words: its own from evidence if they are there, else as it stands."""
    if story.words:
        entry: Entry = story.words[-1][1]
        return story.words[0][1].signature.fields, entry.text
    return (story.here.fields, story.here.text) if story.here is not None else ((), "")


def successors(library: Library, story: Trace) -> list[Trace]:
    """What took an entry's place, and what took that one's, up to what holds now."""
    from infinimem.errors import UnknownSeq

    chain: list[Trace] = []
    seen = {story.seq}
    while story.by and story.by not in seen and len(chain) < FOLLOWED:
        seen.add(story.by)
        try:
            story = library.trace(story.by)
        except UnknownSeq:
            break
        chain.append(story)
    return chain


def gist(library: Library, seq: int) -> tuple[str, str]:
    """Another entry's words on one line, and its place."""
    from infinimem.errors import UnknownSeq

    try:
        return gist_of(library.trace(seq))
    except UnknownSeq:
        return "nothing is known of it", ""


def gist_of(story: Trace) -> tuple[str, str]:
    """An entry's words on one line, and its place or why it has none."""
    place = f"{story.here.topic}:{story.here.line}" if story.here is not None else story.fate or "gone"
    return on_one_line(words_of(story)[1]), place
