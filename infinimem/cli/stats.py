"""`stats`: how the library has grown and what it is made of; with `--cost` what models have cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infinimem.cli.progress import shown_library
from infinimem.cli.request import command_app, examples, open_library, wants_json
from infinimem.cli.show import count, duration, on_one_line, paint, shown, table
from infinimem.cli.talk import emit, is_terminal, out, say

if TYPE_CHECKING:
    from infinimem.search.index import CatalogRow
    from infinimem.stats import Audit, Month, Spent, Stats

app = command_app()

NAMES = 9
"""Columns of the names."""
BAR = 30
"""Columns of the longest bar."""
UNITS = (("kB", 1), ("MB", 2), ("GB", 3))
MONTHS = 24
"""Months that are shown, newest last; `--json` has all."""


@app.command(epilog=examples("infinimem stats", "infinimem stats --top 10", "infinimem stats --cost"))
def stats(
    ctx: typer.Context,
    cost: Annotated[bool, typer.Option("--cost", help="What models were asked and what it took.")] = False,
    top: Annotated[int, typer.Option("--top", metavar="N", min=1, help="Topics and sources to list.")] = 5,
) -> int:
    """Sizes, growth by month, the largest topics, entries by source, what was retired and why.

    With --cost, calls, tokens, seconds, failures and money (model.price_in, model.price_out) of all commands so far.
    """
    if cost:
        return tell_cost(ctx)
    now = shown_library(ctx).stats()
    if wants_json(ctx):
        emit(stats_values(now, top))
    else:
        print_stats(now, top)
    return 0


# Sizes and growth


def stats_values(now: Stats, top: int) -> dict[str, Any]:
    """The figures as JSON has them."""
    names = "topics guests entries buffered written tokens median_tokens forgotten".split()
    return {
        "library": now.root,
        **{name: getattr(now, name) for name in names},
        "retired": dict(now.retired),
        "doubled": list(now.doubled),
        "sources": [{"source": source, "entries": number} for source, number in now.sources.items()],
        "months": month_values(now.months),
        "largest": [topic_values(row) for row in now.by_size[:top]],
        "smallest": [topic_values(row) for row in smallest(now, top)],
        "bytes": dict(now.disk),
        "recoverability": asdict(now.recoverability),
        "summaries": asdict(now.summaries),
        "audits": [asdict(one) for one in now.audits],
    }


def month_values(months: Sequence[Month]) -> list[dict[str, Any]]:
    """The months as JSON has them; `surface` is how much was visible or waiting at the end of each."""
    rows = []
    surface = 0
    for one in months:
        surface += one.written - one.retired
        rows.append({"month": one.month, "written": one.written, "retired": one.retired, "surface": surface})
    return rows


def topic_values(row: CatalogRow) -> dict[str, Any]:
    """A topic's size as JSON has it."""
    return {"topic": row.topic, "entries": row.entries, "tokens": row.tokens}


def smallest(now: Stats, top: int) -> Sequence[CatalogRow]:
    """The smallest topics, smallest first, that are not among the largest already."""
    return now.by_size[top:][::-1][:top]


def print_stats(now: Stats, top: int) -> None:
    """The figures for a person."""
    guests = f" and {count(now.guests, 'guest')}" if now.guests else ""
    middle = f", the median topic has {now.median_tokens:,}" if now.topics > 1 else ""
    waiting = count(now.buffered, "entry waits", "entries wait") if now.buffered else "empty"
    why = ": " + ", ".join(f"{reason} {number:,}" for reason, number in now.retired.items()) if now.retired else ""
    lines = [
        ("library", now.root),
        ("written", f"{count(now.written, 'entry', 'entries')} so far"),
        ("topics", f"{now.topics:,}{guests}: {count(now.entries, 'entry', 'entries')}, {now.tokens:,} tokens{middle}"),
        ("CURRENT", waiting),
        (
            "retired",
            f"{sum(now.retired.values()):,}{why}" + (f"; forgotten {now.forgotten:,}" if now.forgotten else ""),
        ),
        ("on disk", ", ".join(f"{part} {size_of(size)}" for part, size in now.disk.items())),
    ]
    reached = now.recoverability
    if reached.retired:
        chain = f", by at most {count(reached.deepest, 'replacement')}" if reached.deepest > 1 else ""
        lines.append(("reached", f"{100 * reached.share:.4g} % of what was retired{chain}"))
    told = now.summaries
    if told.topics:
        drifted = f", {100 * told.drift:.0f} % of their words are not those of the first version" if told.drift else ""
        lines.append(("summaries", f"{told.faithful:,} of {told.topics:,} keep to what stands below them{drifted}"))
    judged = ", ".join(audit_words(one) for one in now.audits if one.valid or one.harmful)
    if judged:
        lines.append(("review", judged))
    if now.doubled:
        lines.append(("doubled", f"{seqs_shown(now.doubled)} stand in two places; see: infinimem check"))
    for name, text in lines:
        out(f"{paint(f'{name:{NAMES}}', 'dim')} {shown(text)}")
    print_months(now.months)
    print_sources(now.sources, top)
    print_topics("largest topics (entries, tokens)", now.by_size[:top])
    print_topics("smallest topics", smallest(now, top))


def audit_words(one: Audit) -> str:
    """`superseded 9 of 10 judged valid (12 made)`."""
    return f"{one.kind} {one.valid} of {one.valid + one.harmful} judged valid ({one.edits:,} made)"


def seqs_shown(seqs: Sequence[int]) -> str:
    """The first few seqs."""
    from infinimem.text.signature import render_seqs

    return render_seqs(seqs[:10]) + (" and more" if len(seqs) > 10 else "")


def size_of(size: int) -> str:
    """`812 B`, `1.5 kB`, `23 MB`."""
    if size < 1000:
        return f"{size} B"
    unit, power = next((unit, power) for unit, power in UNITS if size < 1000 ** (power + 1) or unit == "GB")
    number = size / 1000**power
    return f"{number:.1f} {unit}" if number < 10 else f"{number:,.0f} {unit}"


def print_months(months: Sequence[Month]) -> None:
    """Entries written and retired, a month a line, with bars on a terminal."""
    if not months:
        return
    heading("by month (written, retired)")
    most = max(one.written for one in months[-MONTHS:]) or 1
    for one in months[-MONTHS:]:
        if is_terminal():
            bar = paint("█" * max(bool(one.written), round(BAR * one.written / most)), "cyan")
            gone = f"  -{one.retired:,}" if one.retired else ""
            out(f"  {one.month}  {one.written:>7,}  {bar}{gone}")
        else:
            out(f"{one.month}\t{one.written}\t{one.retired}")
    if len(months) > MONTHS:
        say(f"{len(months) - MONTHS} earlier months: infinimem stats --json")


def print_sources(sources: Mapping[str, int], top: int) -> None:
    """Who said what is visible or waiting."""
    if not sources:
        return
    heading("by source")
    rows = [(on_one_line(source) or "(none)", number) for source, number in list(sources.items())[:top]]
    rest = sum(list(sources.values())[top:])
    if rest:
        rows.append((f"({count(len(sources) - top, 'other')})", rest))
    if is_terminal():
        table([(f"  {source}", f"{number:,}") for source, number in rows], ("", ">"), cutting=True)
        return
    for source, number in rows:
        out(f"{source}\t{number}")


def print_topics(title: str, rows: Sequence[CatalogRow]) -> None:
    """Topics with their sizes."""
    if not rows:
        return
    heading(title)
    if is_terminal():
        lines = [(f"  {row.topic}", f"{row.entries:,}", f"{row.tokens:,}") for row in rows]
        table(lines, ("cyan", ">", ">dim"), cutting=True)
        return
    for row in rows:
        out(f"{row.topic}\t{row.entries}\t{row.tokens}")


def heading(text: str) -> None:
    """What the lines below are."""
    out()
    out(paint(text, "bold"))


# Cost


def tell_cost(ctx: typer.Context) -> int:
    """What models have cost."""
    from infinimem.stats import grouped

    library = open_library(ctx)
    rows = library.usage()
    if wants_json(ctx):
        emit({"total": spent_values(total(rows)), "rows": [spent_values(row) for row in rows]})
        return 0
    if not rows:
        say("no model was asked so far")
        return 0
    priced = any(row.price for row in rows)
    print_cost("by step", [(f"{row.command} {row.step}", row) for row in grouped(rows, "command", "step")], priced)
    print_cost("by model", [(row.model or "(none answered)", row) for row in grouped(rows, "model")], priced)
    print_cost("by month", [(row.month, row) for row in grouped(rows, "month")], priced)
    print_cost("", [("total", total(rows))], priced)
    if not priced:
        say("set model.price_in and model.price_out, per million tokens, to see what it cost")
    return 0


def total(rows: Sequence[Spent]) -> Spent:
    """All rows together."""
    from infinimem.stats import Spent, grouped

    return next(iter(grouped(rows)), Spent("", "", "", ""))


def spent_values(row: Spent) -> dict[str, Any]:
    """A cost as JSON has it."""
    return {**asdict(row), "seconds": round(row.seconds, 3), "price": round(row.price, 6)}


def print_cost(title: str, rows: Sequence[tuple[str, Spent]], priced: bool) -> None:
    """Costs, a kind a line: calls, tokens sent and received, time, failures, money."""
    if title:
        out(paint(f"{title} (calls, tokens sent, received, time{', price' if priced else ''})", "bold"))
    lines = []
    for name, row in rows:
        failed = f"{row.failures} failed" if row.failures else ""
        price = [f"{row.price:.4f}"] if priced else []
        cells = (f"{row.calls:,}", f"{row.tokens_in:,}", f"{row.tokens_out:,}", duration(row.seconds), *price, failed)
        lines.append((on_one_line(name), *cells))
    if is_terminal():
        table([(f"  {first}", *rest) for first, *rest in lines], ("cyan", *(">" for _ in lines[0][1:])))
    else:
        for line in lines:
            out("\t".join(line).rstrip("\t"))
    if title:
        out()
