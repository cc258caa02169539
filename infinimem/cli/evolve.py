"""Memory that evolves: `review`, `timeline`, `feedback`, `reconsolidate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infinimem.cli.filters import DryRun, topic_ids
from infinimem.cli.progress import shown_library
from infinimem.cli.request import command_app, examples, open_library, seqs_of, wants_json
from infinimem.cli.show import count, date_notes, date_values, noted, on_one_line, paint, paragraph, shown, table
from infinimem.cli.talk import emit, is_terminal, out, say
from infinimem.errors import BadInput

if TYPE_CHECKING:
    from infinimem.evolve.reconsolidate import Learned
    from infinimem.evolve.review import Edit, Proposal, Review
    from infinimem.evolve.timeline import Held
    from infinimem.model import Link, Step

app = command_app()
FIRST_WORDS = 60
"""Characters of an entry that are shown where one only has to know which it is."""


# review


@app.command(
    epilog=examples("infinimem review", "infinimem review 12", "infinimem review 12 --valid", "infinimem review -n 5")
)
def review(
    ctx: typer.Context,
    edit: Annotated[str, typer.Argument(metavar="[EDIT]", help="Only this edit: a seq, or topic@time.")] = "",
    valid: Annotated[bool, typer.Option("--valid", help="Note that the edit was right.")] = False,
    harmful: Annotated[bool, typer.Option("--harmful", help="Note that the edit did harm.")] = False,
    take: Annotated[
        list[str] | None, typer.Option("--take", metavar="N", help="Carry out proposal N; also 1-3. Can be undone.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option("--drop", metavar="N", help="Forget proposal N; also 1-3.")] = None,
    most: Annotated[int, typer.Option("-n", metavar="N", min=1, help="How many edits, newest first.")] = 10,
    dry_run: DryRun = False,
) -> int:
    """Proposals that the planner was not sure of, to take or drop; recent edits, to judge.

    A verdict goes into evidence, and `stats` adds them up by kind. It changes nothing else: `undo` takes an edit back.
    """
    if sum(map(bool, (valid or harmful, take, drop))) > 1 or (valid and harmful):
        raise BadInput("give one of --take, --drop, --valid and --harmful")
    if (valid or harmful) and not edit:
        raise BadInput("name the edit to judge: infinimem review 12 --valid")
    if take:
        from infinimem.cli.flush import tell

        report = shown_library(ctx).take(seqs_of(take), dry_run=dry_run)
        tell(ctx, report, dry_run=dry_run)
        return report.exit_code
    library = shown_library(ctx)
    if valid or harmful:
        judged = library.judge(edit, "valid" if valid else "harmful")
        return show_review(ctx, [], [judged])
    if drop:
        gone = open_library(ctx).drop(seqs_of(drop))
        say(f"{count(gone, 'proposal')} dropped")
        return show_review(ctx, library.review(1).proposals, []) if wants_json(ctx) else 0
    found = library.review(10**9 if edit else most)
    if not edit:
        return show_review(ctx, found.proposals, found.edits)
    return show_review(ctx, [], named(found, edit))


def named(found: Review, name: str) -> list[Edit]:
    """The edits with a name. Raises `BadInput` where there is none."""
    from infinimem.evolve.review import is_called

    edits = [edit for edit in found.edits if is_called(edit, name)]
    if not edits:
        raise BadInput(f"there is no edit {name!r}; `infinimem review` names them: a seq, or topic@time")
    return edits


def show_review(ctx: typer.Context, proposals: Sequence[Proposal], edits: Sequence[Edit]) -> int:
    """Proposals and edits, in the form that was asked for."""
    if wants_json(ctx):
        emit({
            "proposals": [proposal_values(one) for one in proposals],
            "edits": [edit_values(one) for one in edits],
        })  # fmt: skip
        return 0
    if proposals:
        out(paint("proposals that were not sure enough: infinimem review --take N, or --drop N", "bold"))
    for proposal in proposals:
        tell_proposal(proposal)
    if proposals and edits:
        out()
    if edits:
        out(paint("edits, newest first: infinimem review EDIT --valid, or --harmful", "bold"))
    for edit in edits:
        tell_edit(edit)
    if not proposals and not edits:
        say("nothing waits for you, and nothing was edited so far")
    return 0


def proposal_values(one: Proposal) -> dict[str, Any]:
    """A proposal as JSON has it."""
    names = ("number", "at", "refused")
    return {
        **{name: getattr(one, name) for name in names},
        "step": one.row.get("step") or {},
        "before": list(one.before),
        "after": list(one.after),
    }


def edit_values(one: Edit) -> dict[str, Any]:
    """An edit as JSON has it."""
    several = {name: list(getattr(one, name)) for name in ("seqs", "by", "topics", "before", "after")}
    single = {name: getattr(one, name) for name in ("kind", "at", "undone", "verdict", "judged")}
    return {"edit": one.name, **single, **several}


def tell_proposal(one: Proposal) -> None:
    """A proposal for a person: its number, what it would do, and the words that go and stay."""
    what = step_words(one.step) if one.step is not None else "cannot be read"
    conf = f"confidence {confidence(one):g}" if one.step is not None else ""
    about = " · ".join(word for word in (one.at[:10], conf) if word)
    out(f"{paint(str(one.number), 'bold cyan')}  {shown(what)}  {paint(about, 'dim')}".rstrip())
    tell_diff(one.before, one.after)
    if one.refused:
        out(paint(f"  cannot be taken now: {shown(one.refused)}", "yellow"))


def confidence(one: Proposal) -> float:
    """What the planner said of a proposal."""
    step = one.row.get("step")
    bodies = [body for body in step.values() if isinstance(body, dict)] if isinstance(step, dict) else []
    return float(bodies[0].get("conf", 1.0)) if bodies else 1.0


def step_words(step: Step) -> str:
    """What a step would do, in a few words."""
    from infinimem.consolidate.story import stories
    from infinimem.plan.paper import named as step_named

    return next(iter(stories([step], topics_of(step))), step_named(step)).replace("retired", "retire", 1)


def topics_of(step: Step) -> tuple[str, ...]:
    """The topics that a merge would remove."""
    from infinimem.model import Merge

    return tuple(topic for topic in step.topics if topic != step.into) if isinstance(step, Merge) else ()


def tell_edit(one: Edit) -> None:
    """An edit for a person: a small diff and what was said of it."""
    marks = [one.at[:10], "undone since" if one.undone else "", one.verdict and f"{one.verdict} ({one.judged[:10]})"]
    about = " · ".join(mark for mark in marks if mark)
    out(f"{paint(shown(one.name), 'bold cyan')}  {shown(edit_words(one))}  {paint(about, 'dim')}".rstrip())
    if not one.topics:  # of topics the words say it all: no entry of theirs was changed
        tell_diff(one.before, one.after)


def edit_words(one: Edit) -> str:
    """What an edit did, in a sentence without a subject."""
    from infinimem.text.signature import render_seqs

    seqs, by = render_seqs(one.seqs), render_seqs(one.by)
    match one.kind:
        case "superseded":
            return f"{seqs} was replaced by {by}, which is newer"
        case "duplicate":
            return f"{seqs} was retired: {by} says the same"
        case "split":
            return f"{seqs} was divided into {by}"
        case "joined":
            return f"{seqs} became one line"
        case "topic-merge":
            gone = ", ".join(topic for topic in one.before if topic not in one.after)
            return f"the topic {gone} was merged into {', '.join(one.after)}; its entries moved there unchanged"
        case _:
            return f"the topic {', '.join(one.before)} was split into {', '.join(one.after)}; no entry was changed"


def tell_diff(before: Sequence[str], after: Sequence[str]) -> None:
    """Words that went and words that stay."""
    for sign, texts, style in (("-", before, "red"), ("+", after, "green")):
        for words in texts:
            out(paint(paragraph(f"{sign} {on_one_line(words)}", hang="  "), style))


# timeline


@app.command(
    epilog=examples("infinimem timeline maya-work", "infinimem timeline 12", "infinimem timeline where Maya works")
)
def timeline(
    ctx: typer.Context,
    about: Annotated[
        list[str], typer.Argument(metavar="TOPIC|SEQ|QUERY...", help="What it is about.", autocompletion=topic_ids)
    ],
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="How many entries a query finds.")] = 10,
) -> int:
    """From when to when each statement held, in order of time, with what replaced it, who said it, where it stands.

    A statement holds from its `time` (else from when it was noted, and then it says so) until what took its place
    began.
    """
    rows = shown_library(ctx).timeline(" ".join(about), k)
    if wants_json(ctx):
        emit([held_values(row) for row in rows])
    else:
        print_timeline(rows)
    if not rows:
        say("nothing found")
    return 0 if rows else 1


def held_values(held: Held) -> dict[str, Any]:
    """A row as JSON has it."""
    unit = held.unit
    when = {name: getattr(held, name) for name in ("since", "until", "why", "waiting", "coming", "retired_at")}
    return {
        "seqs": list(unit.seqs),
        "topic": unit.topic,
        "path": unit.path,
        "line": unit.line,
        "text": unit.text,
        "time": unit.time,
        "source": unit.source,
        "dates": date_values(unit.text, unit.time or unit.observed),
        **when,
        "by": list(held.by),
        "forgotten": list(held.forgotten),
        "observed": unit.observed,
    }


def print_timeline(rows: Sequence[Held]) -> None:
    """Columns on a terminal, tabs for a program: from, to, seqs, words, what became of it, source, place."""
    lines = [held_words(row) for row in rows]
    if is_terminal():
        heads = ("from", "to", "seq", "what", "then", "who", "where")
        table([heads, *lines], ("green", "yellow", ">dim", "", "yellow", "dim", "cyan"))
        return
    for line in lines:
        out("\t".join(line))


def held_words(held: Held) -> tuple[str, ...]:
    """A row in words."""
    from infinimem.text.signature import render_seqs

    unit = held.unit
    by = render_seqs(held.by)
    link = {"duplicate": "duplicate of", "split": "split into"}.get(held.why, f"{held.why} by")
    then = f"{link} {by}" if by else held.why
    then += " (forgotten)" if held.forgotten == held.by != () else ""
    if held.forgotten not in ((), held.by):
        then += f" ({render_seqs(held.forgotten)} forgotten)"
    then += " (at the next flush)" if held.waiting and not held.coming else " (to come)" if held.waiting else ""
    return (
        held.since[:16] if unit.time else noted(held.since),
        held.until[:16],
        render_seqs(unit.seqs),
        on_one_line(unit.text) + date_notes(unit.text, unit.time or unit.observed),
        then,
        on_one_line(unit.source),
        f"{unit.topic}:{unit.line}",
    )


# feedback, reconsolidate


@app.command(epilog=examples("infinimem ask Where does Maya work? && infinimem feedback good"))
def feedback(
    ctx: typer.Context,
    verdict: Annotated[str, typer.Argument(metavar="good|bad", help="What you think of the last ask.")],
) -> int:
    """Say whether the last `ask` was answered well: entries that did so together may be linked by `reconsolidate`.

    What is noted of an ask are the seqs that it showed and cited, in .infinimem/recalls.jsonl; no words.
    """
    from infinimem.cli.find import tell_verdict

    return tell_verdict(ctx, verdict)


@app.command(epilog=examples("infinimem reconsolidate --dry-run", "infinimem reconsolidate"))
def reconsolidate(
    ctx: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Explain each link; change nothing.")] = False,
) -> int:
    """Link entries that were cited together in the answers to different questions; unlink what no longer is.

    Nothing but links changes, `undo` takes them back, and no flush does this by itself. A question that is asked
    again counts once, and it takes links.questions different ones.
    """
    library = shown_library(ctx)
    learned = library.reconsolidate(dry_run=dry_run)
    if wants_json(ctx):
        emit(learned_values(learned, dry_run=dry_run))
    else:
        index = library.index()
        words = {seq: unit.text for one in learned.lessons for seq in ends_of(one.step) for unit in index.standing(seq)}
        print_learned(learned, words, dry_run=dry_run)
    return learned.report.exit_code


def learned_values(learned: Learned, *, dry_run: bool) -> dict[str, Any]:
    """What was learned as JSON has it."""
    from infinimem.cli.flush import values_of
    from infinimem.plan.paper import value_of

    lessons = [{"step": value_of(one.step), "why": one.why} for one in learned.lessons]
    return {"lessons": lessons, "report": values_of(learned.report, dry_run=dry_run)}


def ends_of(step: Link) -> tuple[int, ...]:
    """The seqs that a link ties together."""
    from infinimem.text.signature import parse_seqs

    return (*parse_seqs(step.source), *parse_seqs(step.to))


def print_learned(learned: Learned, words: Mapping[int, str], *, dry_run: bool) -> None:
    """Each pair in a sentence, with the first words of both; its two links are one thing learnt."""
    from infinimem.cli.flush import say_skipped
    from infinimem.text.lines import cut_at_word

    pairs = {(one.step.remove, *sorted(ends_of(one.step))): one for one in reversed(learned.lessons)}
    for one in reversed(pairs.values()):
        mark = paint("-", "red") if one.step.remove else paint("+", "green")
        out(f"{mark} {shown(one.why)}")
        for seq in ends_of(one.step):
            out(f"  {seq}  {shown(cut_at_word(on_one_line(words.get(seq, '')), FIRST_WORDS))}")
    say_skipped(learned.report)
    links = len(learned.lessons) - len(learned.report.skipped)
    number = f"{count(links, 'link')} ({count(len(pairs), 'pair')})"
    if not learned.lessons:
        say("nothing to link: no two entries answered enough different questions together")
    elif dry_run:
        say(f"{number} would change; nothing was changed")
    else:
        say(f"{number} changed; take it back with: infinimem undo")
