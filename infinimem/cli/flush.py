"""What changes topic documents: `flush`, `split`, `merge`, `undo`; each reports what it did."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infinimem.cli.filters import DryRun, topic_ids
from infinimem.cli.progress import libraries_to_show, progress, shown_library
from infinimem.cli.request import command_app, examples, open_library, wants_json
from infinimem.cli.show import count, duration, on_one_line, paint, paragraph, shown, table
from infinimem.cli.talk import emit, is_terminal, out, say
from infinimem.errors import BadInput

if TYPE_CHECKING:
    from infinimem.config import Settings
    from infinimem.consolidate.run import Report
    from infinimem.model import Outcome, Usage

app = command_app()
STATES = ("flushed", "nothing", "failed")
SHOWN = 20
"""Libraries with something amiss that are listed; `--json` lists them all."""


@app.command(
    epilog=examples(
        "infinimem flush --dry-run",
        "infinimem flush",
        "infinimem flush --if-due",
        "infinimem flush --plan-out plan.yaml && infinimem flush --plan plan.yaml",
        "infinimem flush --plan-template > task.md",
        "infinimem flush --root .",
    )
)
def flush(
    ctx: typer.Context,
    if_due: Annotated[bool, typer.Option("--if-due", help="Only if CURRENT is large or old enough.")] = False,
    dry_run: DryRun = False,
    planner: Annotated[
        str, typer.Option(metavar="auto|lexical|model", help="Who plans it; by default as config says.")
    ] = "",
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what a model would cost; ask it nothing, change nothing.")
    ] = False,
    plan_out: Annotated[
        str, typer.Option("--plan-out", metavar="FILE", help="Write the plan to a file (- prints it) and stop.")
    ] = "",
    plan: Annotated[str, typer.Option(metavar="FILE", help="Carry out a plan, perhaps edited, from a file.")] = "",
    plan_template: Annotated[
        bool, typer.Option("--plan-template", help="Print the task of planning it, for a person or an agent.")
    ] = False,
    no_split: Annotated[bool, typer.Option("--no-split", help="Let large topics be.")] = False,
    no_merge: Annotated[bool, typer.Option("--no-merge", help="Let small topics be.")] = False,
    no_rewrite: Annotated[bool, typer.Option("--no-rewrite", help="Let duplicates stand.")] = False,
    root: Annotated[
        str, typer.Option(metavar="DIR", help="Every library below a folder that is due, several at once.")
    ] = "",
    jobs: Annotated[
        int, typer.Option(metavar="N", min=0, help="With --root: how many at once; by default two for each core.")
    ] = 0,
) -> int:
    """Sort what was written into topic documents, as one transaction.

    What is not carried out is listed on standard error, nothing of it is lost, and the exit code is 5.
    """
    if root:
        given = {"--dry-run": dry_run, "--estimate": estimate, "--plan": plan, "--plan-out": plan_out,
                 "--plan-template": plan_template}  # fmt: skip
        alone = next((name for name, is_given in given.items() if is_given), "")
        if alone:
            raise BadInput(f"{alone} is for one library, and --root flushes many: use -L DIR {alone}")
        return flush_root(ctx, root, planner, jobs)
    library = shown_library(ctx)
    if plan_template:
        template = library.plan_template()
        emit({"template": template}) if wants_json(ctx) else out(template, end="")
        return 0
    with progress() as show:
        report = library.flush(
            planner or ("model" if estimate else "auto"),
            plan=plan or None,
            estimate=estimate,
            dry_run=dry_run or bool(plan_out),
            if_due=if_due,
            rewrite=not no_rewrite,
            split=not no_split,
            merge=not no_merge,
            progress=show,
        )
    if estimate:
        tell_estimate(ctx, report, library.settings)
        return 0
    if plan_out == "-" and wants_json(ctx):  # one value on standard output, and the plan is part of it
        from infinimem.plan.paper import render_plan

        emit({**values_of(report, dry_run=True), "plan": render_plan(report.plan)})
        say_skipped(report)
        return report.exit_code
    if plan_out:
        write_plan(report, plan_out)
    if not plan_out or dry_run or wants_json(ctx):
        tell(ctx, report, dry_run=dry_run or bool(plan_out))
    return report.exit_code


def flush_root(ctx: typer.Context, root: str, planner: str, jobs: int) -> int:
    """Flush every library below a folder that is due, and tell what became of all of them.

    The exit code is 1 where there is no library, 5 where something was left undone.
    """
    from collections import Counter
    from pathlib import Path

    from infinimem.fleet.flush import flush_below

    folder = Path(root).expanduser().absolute()
    if not folder.is_dir():
        raise BadInput(f"{folder} is no folder; name one that libraries lie in")
    counts: Counter[str] = Counter()
    entries = 0
    troubles: list[tuple[str, str]] = []
    try:
        with progress() as show, says_what_an_interrupt_waits_for():
            total = libraries_to_show(folder)
            told = flush_below(
                folder, planner or "auto", processes=jobs, progress=lambda done: show("flushing", done, total)
            )
            for one in told:
                counts[one.status] += 1
                entries += one.entries
                if one.why:
                    troubles.append((one.path, one.why))
    except KeyboardInterrupt:
        flushed = count(counts["flushed"], "library was", "libraries were")
        say(f"{flushed} flushed, {counts['nothing']:,} not due; run it again for the rest")
        raise
    if wants_json(ctx):
        rows = [{"path": path, "why": why} for path, why in troubles]
        emit({"root": str(folder), "entries": entries, **{kind: counts[kind] for kind in STATES}, "troubles": rows})
    else:
        out(
            f"{count(counts.total(), 'library', 'libraries')} below {shown(str(folder))}: "
            f"{counts['flushed']:,} flushed ({count(entries, 'entry', 'entries')}), "
            f"{counts['nothing']:,} not due, {counts['failed']:,} failed"
        )
        for path, why in troubles[:SHOWN]:
            say(f"{shown(path)}: {on_one_line(why)}")
        if len(troubles) > SHOWN:
            say(f"and {len(troubles) - SHOWN:,} more; --json lists them all")
    if not counts:
        say(f"no library lies below {shown(str(folder))}; make one with: infinimem init")
        return 1
    return 5 if troubles else 0


@contextmanager
def says_what_an_interrupt_waits_for() -> Iterator[None]:
    """While libraries are flushed: an interrupt says that those at work are finished, which may take a model's time."""
    import signal

    def interrupted(*_: object) -> None:
        signal.signal(signal.SIGINT, before)
        say("stopping: the libraries at work are finished; interrupt again to leave them to it")
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@app.command(
    epilog=examples(
        "infinimem split maya-work --dry-run",
        "infinimem split maya-work",
        "infinimem split 41 'Maya joined Nordlys' 'as a staff engineer.'",
    )
)
def split(
    ctx: typer.Context,
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC|SEQ", help="The topic, or the entry, to split.", autocompletion=topic_ids)
    ],
    pieces: Annotated[
        list[str] | None, typer.Argument(metavar="[PIECE]...", help="Of an entry: exact pieces of it, in order.")
    ] = None,
    dry_run: DryRun = False,
) -> int:
    """Split a topic into two or more by its subjects, whatever its size; or an entry that holds several facts.

    An entry is split into the pieces that you give, exact parts of its words, or else into its sentences. Each gets a
    seq of its own; the entry stays in evidence as it was.
    """
    seqs = one_seq(topic)
    if seqs:
        report = shown_library(ctx).divide(seqs, pieces or (), dry_run=dry_run)
        tell(ctx, report, dry_run=dry_run)
        return report.exit_code
    refuse_buffer([topic])
    report = shown_library(ctx).split(topic, dry_run=dry_run)
    if report.outcomes or wants_json(ctx):
        tell(ctx, report, dry_run=dry_run)
    else:
        say(f"{topic} speaks of one thing only; it stays as it is")
    return report.exit_code


@app.command(
    epilog=examples(
        "infinimem merge maya-work maya-home --dry-run", "infinimem merge maya-work maya-home --into maya-home"
    )
)
def merge(
    ctx: typer.Context,
    topics: Annotated[
        list[str],
        typer.Argument(metavar="TOPIC|SEQ...", help="The topics, or the entries.", autocompletion=topic_ids),
    ],
    into: Annotated[
        str, typer.Option(metavar="TOPIC", help="The one that stays; by default the first.", autocompletion=topic_ids)
    ] = "",
    text: Annotated[str, typer.Option("--text", metavar="WORDS", help="Of entries: the words of the one line.")] = "",
    dry_run: DryRun = False,
) -> int:
    """Put the entries of several topics into one; the old ids stay findable. Or make one line of several entries.

    Of entries (their seqs) the one that says what all say stays; with --text they become one line in these words,
    which may leave nothing out and add nothing. All of them stay in evidence as they were.
    """
    seqs = [seq for topic in topics for seq in parse_entries(topic)]
    if text or (seqs and all(parse_entries(topic) for topic in topics)):
        report = shown_library(ctx).join(seqs, text, dry_run=dry_run)
        tell(ctx, report, dry_run=dry_run)
        return report.exit_code
    refuse_buffer([*topics, into])
    report = shown_library(ctx).merge(topics, into=into, dry_run=dry_run)
    tell(ctx, report, dry_run=dry_run)
    return report.exit_code


def one_seq(name: str) -> int:
    """The seq that an argument names; 0 for a topic."""
    found = parse_entries(name)
    return found[0] if len(found) == 1 else 0


def parse_entries(name: str) -> tuple[int, ...]:
    """The seqs that an argument names: 12, #12, 12-15; none for a topic."""
    from infinimem.text.signature import parse_seqs

    return parse_seqs(name.strip().removeprefix("#"))


def refuse_buffer(topics: list[str]) -> None:
    """CURRENT is no topic."""
    from infinimem.errors import BadInput
    from infinimem.model import CURRENT

    if CURRENT in topics:
        raise BadInput(f"{CURRENT} is no topic: what is in it is sorted by infinimem flush")


@app.command(epilog=examples("infinimem undo --dry-run", "infinimem undo"))
def undo(ctx: typer.Context, dry_run: DryRun = False) -> int:
    """Take the last flush, split or merge back: its entries return to CURRENT.

    Topics that were edited since are left as they are, listed on standard error, and the exit code is 5.
    """
    report = open_library(ctx).undo(dry_run=dry_run)
    if wants_json(ctx):
        emit(values_of(report, dry_run=dry_run))
    elif dry_run:
        print_diff(report.diff)
    elif report.flushed:
        back = f": {count(len(report.seqs), 'entry', 'entries')} back in CURRENT" if report.seqs else ""
        out(paint(f"undone{back}", "bold"))
        print_lines(report, [])
    say_skipped(report)
    if report.reason and not report.flushed:
        say(report.reason)
        return 1
    return report.exit_code


# Telling


def tell_estimate(ctx: typer.Context, report: Report, settings: Settings) -> None:
    """What a model's plan would cost."""
    from infinimem.stats import price as price_of

    usage = report.usage
    price = price_of(usage.tokens_in, usage.tokens_out, *map(settings.number, ("model.price_in", "model.price_out")))
    if wants_json(ctx):
        emit({**usage_values(usage), "price": price, "entries": len(report.plan.seqs) + report.more})
        return
    if not usage.calls:
        say(nothing_done(report))
        return
    entries = count(len(report.plan.seqs) + report.more, "entry", "entries")
    out(
        f"about {count(usage.calls, 'call')}, {usage.tokens_in:,} tokens sent, {usage.tokens_out:,} received: {entries}"
    )
    if price:
        out(f"about {price:.4f} at the prices of model.price_in and model.price_out")
    budget = settings.count("budget.tokens")
    if budget and usage.tokens_in + usage.tokens_out > budget:
        say(f"more than budget.tokens ({budget:,}): what is over is planned without the model")


def usage_values(usage: Usage) -> dict[str, Any]:
    """A cost as JSON has it."""
    return {
        "calls": usage.calls,
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "seconds": round(usage.seconds, 3),
    }


def tell(ctx: typer.Context, report: Report, *, dry_run: bool) -> None:
    """A report in the form that was asked for; what was skipped is talk."""
    if wants_json(ctx):
        emit(values_of(report, dry_run=dry_run))
    elif dry_run:
        print_diff(report.diff)
    else:
        print_report(report)
    if dry_run and report.more:
        say(f"{report.more} more entries would follow in further portions")
    say_skipped(report)


def values_of(report: Report, *, dry_run: bool) -> dict[str, Any]:
    """A report as JSON has it."""
    return {
        "flushed": report.flushed and not dry_run,
        "dry_run": dry_run,
        "due": report.due,
        "reason": report.reason,
        "seqs": list(report.seqs),
        "left": list(report.left),
        "created": list(report.created),
        "changed": list(report.changed),
        "removed": list(report.removed),
        "forgotten": list(report.forgotten),
        "signed": list(report.signed),
        "erased": list(report.erased),
        "retired": [{"seq": step.seq, "by": step.by, "why": step.why} for step in report.retired],
        "outcomes": [outcome_values(outcome) for outcome in report.outcomes],
        "notes": list(report.notes),
        "settled": list(report.settled),
        "diff": report.diff,
        "plan": "",
        "planner": report.planner,
        "failures": list(report.failures),
        "commit": report.commit,
        "uncommitted": report.uncommitted,
        "usage": usage_values(report.usage),
        "seconds": round(report.seconds, 3),
    }


def outcome_values(outcome: Outcome) -> dict[str, Any]:
    """What became of a step, as JSON has it."""
    from infinimem.plan.paper import value_of

    return {"step": value_of(outcome.step), "status": outcome.status, "why": outcome.why}


def print_report(report: Report) -> None:
    """What went where."""
    if not report.flushed:
        say(nothing_done(report))
        return
    from infinimem.consolidate.story import stories

    done = [outcome.step for outcome in report.outcomes if outcome.status == "executed"]
    lines = stories(done, report.removed)
    if report.seqs:
        places = len({*report.created, *report.changed})
        head = f"flushed {count(len(report.seqs), 'entry', 'entries')} into {count(places, 'topic')}"
    else:
        head = "done"
    out(paint(f"{head} ({duration(report.seconds)})" if report.seconds else head, "bold"))
    print_lines(report, lines)
    if report.usage.calls:
        used = report.usage
        say(f"{count(used.calls, 'model call')}, {used.tokens_in:,} tokens sent, {used.tokens_out:,} received")
    if report.left and report.seqs:
        say(f"{count(len(report.left), 'entry stays', 'entries stay')} in CURRENT")


def nothing_done(report: Report) -> str:
    """Why a report has nothing to say."""
    if not report.due:
        return "not due yet; nothing was flushed"
    return f"{report.reason}; nothing to do" if report.reason == "CURRENT is empty" else "nothing to do"


def print_lines(report: Report, lines: list[str]) -> None:
    """The topics that changed, then the steps worth telling."""
    from infinimem.consolidate.story import gains

    gained = gains(report)
    rows = []
    for topic in (*report.created, *report.changed, *report.removed):
        mark = "new" if topic in report.created else "removed" if topic in report.removed else ""
        rows.append((topic, f"+{gained[topic]}" if gained.get(topic) else "", mark))
    print_changes(rows)
    for line in lines:
        out(paragraph(line, hang="  "))


def print_changes(rows: list[tuple[str, str, str]]) -> None:
    """Topics, what they gained and what became of them: in columns on a terminal."""
    colours = {"new": "green", "removed": "red"}
    if is_terminal():
        from rich.text import Text

        marked = [(f"  {topic}", plus, Text(mark, colours.get(mark, ""))) for topic, plus, mark in rows]
        table(marked, ("cyan", ">", ""), cutting=True)
        return
    for topic, plus, mark in rows:
        words = "  ".join(word for word in (plus, paint(mark, colours.get(mark, ""))) if word)
        out(f"  {paint(topic, 'cyan')}  {words}".rstrip())


def say_skipped(report: Report) -> None:
    """What was refused or had gone stale, each with its reason; and what became of the commit."""
    from infinimem.consolidate.story import in_runs
    from infinimem.model import Summarise
    from infinimem.plan.paper import named
    from infinimem.text.signature import render_seqs

    if report.signed:
        say(f"signed what was typed into {shown(', '.join(report.signed))}")
    if report.forgotten:
        say(f"forgot {render_seqs(sorted(report.forgotten))} again, which a merge or a copy had brought back")
    if report.erased:
        say(f"retention: {render_seqs(report.erased)} forgotten for good")
    for line in report.settled:
        say(f"after a git merge: {line}")
    for note in report.notes:
        say(note)
    for failure in report.failures:
        say(on_one_line(failure))
    if report.failures:
        kept = "what it could not plan stays in CURRENT" if report.left else "the rest was planned without it"
        say(f"the model failed; {kept}, nothing is lost")
    if report.commit:
        say(f"committed {report.commit}")
    if report.uncommitted:
        say(on_one_line(report.uncommitted))
    for step, why in in_runs(report.skipped):
        is_file = isinstance(step, Summarise) and not step.text  # what undo passed over
        name = "" if is_file else f"{step if isinstance(step, str) else named(step)}: "
        say(f"skipped: {name}{on_one_line(why)}")


def print_diff(diff: str) -> None:
    """A unified diff, coloured where colour shows."""
    if not diff:
        say("nothing would change")
    for line in diff.split("\n")[:-1]:
        out(paint(shown(line), diff_style(line)))


def diff_style(line: str) -> str:
    """The colour of a diff line."""
    if line.startswith(("+++", "---")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def write_plan(report: Report, name: str) -> None:
    """The plan into a file of the user's, or on standard output."""
    from pathlib import Path

    from infinimem.errors import BadInput
    from infinimem.plan.paper import render_plan
    from infinimem.store.files import write_private

    text = render_plan(report.plan)
    if name == "-":
        out(text, end="")
        return
    try:
        write_private(Path(name), text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise BadInput(f"{name} cannot be written: {error.strerror}; choose another file for --plan-out") from error
    steps = count(len(report.plan.steps), "step")
    say(f"a plan of {steps} is in {name}; nothing was changed. Carry it out with: infinimem flush --plan {name}")
