"""Finding: `ask`, `search`, `grep`. Nothing found is exit code 1."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infinimem.cli.filters import AsOf, Everything, KnownAt, Namespace, Since, Until, Where, filter_of, topic_ids
from infinimem.cli.progress import shown_library
from infinimem.cli.request import command_app, examples, open_library, wants_json
from infinimem.cli.show import (
    READABLE,
    count,
    cut,
    date_notes,
    date_values,
    duration,
    linked,
    noted,
    on_one_line,
    paint,
    paragraph,
    shown,
    width,
    wrap,
)
from infinimem.cli.talk import emit, flush, is_terminal, out, say
from infinimem.errors import BadInput, ModelFailed
from infinimem.model import HOLDS_FROM
from infinimem.text.signature import render_seqs

if TYPE_CHECKING:
    from pathlib import Path

    from infinimem.ask import Answer, Evidence, Round
    from infinimem.fleet.search import Trouble
    from infinimem.grep import Match
    from infinimem.model import Filter, Hit, Unit

app = command_app()
SHOWN = 20
"""Libraries that were not searched that are listed; `--json` lists them all."""
NO_LIBRARY = "no library lies below {folder}; make one with: infinimem init"


# ask


@app.command(
    epilog=examples(
        "infinimem ask Where does Maya work?",
        "infinimem ask 'Where did Maya work?' --as-of 2026-02",
        "infinimem ask 'What did Ines say?' --where source=Ines --since 2026-05 -k 3",
        "infinimem ask Where does Maya work? && infinimem ask --good",
        "infinimem ask --root . Where does Maya work?",
    )
)
def ask(
    ctx: typer.Context,
    question: Annotated[
        list[str] | None, typer.Argument(metavar="[QUESTION...]", help="The question, quoted or not.")
    ] = None,
    k: Annotated[
        int | None, typer.Option("-k", metavar="N", min=1, help="Pieces of evidence; by default as config says.")
    ] = None,
    evidence: Annotated[bool, typer.Option("--evidence", help="The evidence alone: no model, no note.")] = False,
    reader: Annotated[
        str, typer.Option(metavar="auto|agentic|hybrid|summary|bm25", help="Who reads; bm25 asks no model.")
    ] = "auto",
    where: Where = None,
    since: Since = "",
    until: Until = "",
    ns: Namespace = "",
    as_of: AsOf = "",
    known_at: KnownAt = "",
    everything: Everything = False,
    trace: Annotated[bool, typer.Option("--trace", help="Say how it was found.")] = False,
    good: Annotated[bool, typer.Option("--good", help="Note that the answer is good; alone: the last one.")] = False,
    bad: Annotated[bool, typer.Option("--bad", help="Note that the answer is bad; alone: the last one.")] = False,
    root: Annotated[str, typer.Option(metavar="DIR", help="Ask every library below a folder.")] = "",
) -> int:
    """Answer a question from memory, with the place of every piece of evidence.

    The exit code is 1 when memory does not hold it, 4 when a model failed to write the answer. What --good and --bad
    note is for `reconsolidate`. With --root a library that cannot be asked makes the exit code 5.
    """
    if root and (good or bad):
        raise BadInput("--good and --bad are noted in one library: use -L DIR")
    if good and bad:
        raise BadInput("give one of --good and --bad")
    verdict = "good" if good else "bad" if bad else ""
    if verdict and not question:
        return tell_verdict(ctx, verdict)
    words = text_of(question or [], "question")
    filter = filter_of(where, since, until, ns, as_of, known_at, everything)
    if root:
        reader = "bm25" if evidence else reader
        return ask_root(ctx, root, words, reader, k or 0, filter, alone=evidence, trace=trace)
    streams = is_terminal() and not wants_json(ctx)
    heard = Heard()
    library = shown_library(ctx)
    answer = library.ask(
        words,
        reader="bm25" if evidence else reader,
        k=k or 0,
        filter=filter,
        hear=heard.hear if streams else None,
        watch=watcher(trace),
    )
    if wants_json(ctx):
        emit(answer_values(answer))
    else:
        heard.end()
        print_answer(library.root, answer, filter, heard.text, alone=evidence, scores=trace)
    tell_withheld(answer)
    if verdict and answer.evidence:
        library.feedback(verdict)
    if trace:
        say_how(answer, filter)
    if answer.failed:
        return ModelFailed.exit_code
    return 0 if answer.found else 1


def ask_root(
    ctx: typer.Context, root: str, question: str, reader: str, k: int, filter: Filter, *, alone: bool, trace: bool
) -> int:
    """Ask every library below a folder."""
    import os
    from contextlib import ExitStack

    from infinimem.cli.progress import libraries_to_show, progress
    from infinimem.fleet.ask import ask_below

    folder = root_folder(root)
    heard = Heard()
    with ExitStack() as bar:
        show, total = bar.enter_context(progress()), libraries_to_show(folder)

        def hear(piece: str) -> None:
            bar.close()
            heard.hear(piece)

        answered = ask_below(
            folder, question, reader=reader, k=k, filter=filter, audience=os.environ.get("INFINIMEM_AUDIENCE", ""),
            hear=hear if is_terminal() and not wants_json(ctx) else None,
            progress=lambda done: show("asking", done, total),
        )  # fmt: skip
    answer = answered.answer
    if wants_json(ctx):
        values = answer_values(answer)
        for name, pieces in (("evidence", answer.evidence), ("nearest", answer.nearest)):
            values[name] = [
                {"library": str(answered.folders[piece.library]), "place": piece.place, **evidence_values(piece)}
                for piece in pieces
            ]
        emit(
            {
                "root": str(folder),
                "searched": answered.searched,
                "holding": answered.holding,
                **values,
                "troubles": [{"path": one.path, "why": one.why} for one in answered.troubles],
            }
        )
    else:
        heard.end()
        print_answer(folder, answer, filter, heard.text, alone=alone, scores=trace)
        tell_troubles(answered.troubles)
    tell_withheld(answer)
    if not answered.searched and not answered.troubles:
        say(NO_LIBRARY.format(folder=shown(str(folder))))
    if trace:
        say(f"{count(answered.searched, 'library', 'libraries')} asked, {answered.holding:,} hold any of the words")
        say_how(answer, filter)
    if answer.failed:
        return ModelFailed.exit_code
    return 5 if answered.troubles else 0 if answer.found else 1


def tell_withheld(answer: Answer) -> None:
    """Say how much that fits the question no model was shown."""
    if answer.withheld:
        kept = count(answer.withheld, "entry that fits was", "entries that fit were")
        say(f"{kept} kept from the model by the setting access; infinimem search shows all")


def root_folder(root: str) -> Path:
    """The folder that --root names. Raises `BadInput`."""
    from pathlib import Path

    folder = Path(root).expanduser().absolute()
    if not folder.is_dir():
        raise BadInput(f"{folder} is no folder; name one that libraries lie in")
    return folder


def tell_troubles(troubles: Sequence[Trouble]) -> None:
    """Name the libraries that were left out."""
    for trouble in troubles[:SHOWN]:
        say(f"{shown(trouble.path)}: {on_one_line(trouble.why)}")
    if len(troubles) > SHOWN:
        say(f"and {len(troubles) - SHOWN:,} more; --json lists them all")


def tell_verdict(ctx: typer.Context, verdict: str) -> int:
    """Note what a person thinks of the last answer."""
    seqs = open_library(ctx).feedback(verdict)
    if wants_json(ctx):
        emit({"verdict": verdict, "shown": list(seqs)})
    else:
        say(f"noted: {verdict}, for the ask that showed {', '.join(map(str, seqs))}")
    return 0


class Heard:
    """An answer that is shown on a terminal as it comes."""

    def __init__(self) -> None:
        self.text = ""

    def hear(self, piece: str) -> None:
        """Show one more piece."""
        self.text += piece
        out(shown(piece), end="")
        flush(sys.stdout)

    def end(self) -> None:
        """End the line that was shown last."""
        if self.text and not self.text.endswith("\n"):
            out()


def watcher(trace: bool) -> Callable[[Round], None]:
    """What tells a person each round when it is over, if they want to know."""
    numbers = itertools.count(1)

    def watch(one: Round) -> None:
        cost = f"{one.tokens:,} tokens, {duration(one.seconds)}"
        say(f"round {next(numbers)}: {count(one.new, 'new entry', 'new entries')}, {cost}")
        for call in one.calls:
            say(f"  {shown(call)}")

    return watch if trace else lambda one: None


def print_answer(root: Path, answer: Answer, filter: Filter, heard: str, *, alone: bool, scores: bool) -> None:
    """The answer and what it cites; or *not in memory* and what comes nearest; or the evidence by itself."""
    if answer.failed:
        say(f"no answer was written: {answer.failed}")
        if answer.evidence:
            say(f"this is what memory holds, likeliest first ({len(answer.evidence)})")
        print_evidence(root, answer.evidence, scores=scores)
    elif not answer.found:
        out("not in memory")
        say(why_missing(answer, filter))
        if answer.nearest:
            out("nearest:")
            print_evidence(root, answer.nearest, scores=scores)
    elif answer.text:
        if heard.split() != answer.text.split():
            if heard:
                out(paint("after checking:", "dim"))
            out("\n".join(wrap(shown(answer.text), min(width(), READABLE))) if is_terminal() else answer.text)
        out()
        cited = set(answer.citations)
        opposed = {one for piece in answer.evidence if piece.place in cited for one in opposed_by(piece)}
        wanted = [
            piece for piece in answer.evidence if piece.place in cited or not opposed.isdisjoint(entries_of(piece))
        ]
        print_evidence(root, tuple(wanted), scores=scores)
    else:
        if not alone:
            say(f"no model wrote an answer; this is what memory holds, likeliest first ({len(answer.evidence)})")
        print_evidence(root, answer.evidence, scores=scores)


def text_of(words: list[str], what: str) -> str:
    """Several arguments as one text. Raises `BadInput` for an empty one."""
    text = " ".join(words).strip()
    if not text:
        raise BadInput(f"the {what} is empty; put it in quotes after the command")
    return text


def why_missing(answer: Answer, filter: Filter) -> str:
    """Why there is no evidence, or none that answers."""
    from infinimem.model import Filter

    why = answer.why or answer.stop
    return why if filter == Filter() else f"{why}, or nothing passes the filters"


def print_evidence(root: Path, pieces: tuple[Evidence, ...], *, scores: bool = False) -> None:
    """Each piece with the place to open it at; a blank line between."""
    for at, piece in enumerate(pieces):
        if at:
            out()
        out(evidence_head(root, piece) + (paint(f"  {piece.score:.2f}", "dim") if scores else ""))
        out(paragraph(piece.text + date_notes(piece.text, piece.time or piece.observed)))
        others = [other.place for other in pieces if not opposed_by(piece).isdisjoint(entries_of(other))]
        if others:
            out(paint(f"  ! contradicts {', '.join(f'[{shown(place)}]' for place in others)}", "yellow"))


def entries_of(piece: Evidence) -> set[tuple[str, int]]:
    """The entries that a piece stands for; a seq is one of its library."""
    return {(piece.library, seq) for seq in piece.seqs}


def opposed_by(piece: Evidence) -> set[tuple[str, int]]:
    """The entries that a piece contradicts."""
    return {(piece.library, seq) for seq in piece.contradicts}


def evidence_head(root: Path, piece: Evidence) -> str:
    """`[topic:line] #seq · date · source · heading`."""
    left = fate_words(piece.retired, piece.by, piece.expires, piece.holds_from)
    headings = " > ".join(dict.fromkeys(piece.headings))
    number = f"#{render_seqs(piece.seqs)}" if piece.seqs else ""
    about = [number, piece.time or noted(piece.observed), on_one_line(piece.source), headings, left]
    words = " · ".join(shown(word) for word in about if word)
    place = shown(f"[{piece.place}]")
    if is_terminal():
        from rich.cells import cell_len

        words = cut(words, max(24, width() - cell_len(place) - 1))
    path = f"{piece.library}/{piece.path}" if piece.library else piece.path
    link = linked(paint(place, "bold cyan"), root, path, piece.span.start)
    return f"{link} {paint(words, 'dim')}".rstrip()


def fate_words(retired: str, by: int, expires: str, holds_from: str) -> str:
    """What became of an entry, or what is still to come of it, in a few words."""
    if holds_from:
        return f"from {holds_from}"
    return (
        f"{retired} by {by}" if by and retired else f"expired {expires}".rstrip() if retired == "expired" else retired
    )


def answer_values(answer: Answer) -> dict[str, Any]:
    """An answer as JSON has it."""
    usage = answer.usage
    return {
        "answer": answer.text,
        "found": answer.found,
        "citations": list(answer.citations),
        "evidence": [evidence_values(piece) for piece in answer.evidence],
        "rounds": [
            {"calls": list(one.calls), "new": one.new, "tokens": one.tokens, "seconds": round(one.seconds, 3)}
            for one in answer.rounds
        ],
        "stop": answer.stop,
        "reader": answer.reader,
        "fallback": answer.fallback,
        "failed": answer.failed,
        "why": answer.why,
        "nearest": [evidence_values(piece) for piece in answer.nearest],
        "dropped": list(answer.dropped),
        "removed": answer.removed,
        "withheld": answer.withheld,
        "usage": {
            "calls": usage.calls,
            "tokens_in": usage.tokens_in,
            "tokens_out": usage.tokens_out,
            "seconds": round(usage.seconds, 3),
        },
    }


def evidence_values(piece: Evidence) -> dict[str, Any]:
    """A piece of evidence as JSON has it."""
    return {
        "seqs": list(piece.seqs),
        "topic": piece.topic,
        "path": piece.path,
        "line": piece.span.start,
        "stop": piece.span.stop,
        "text": piece.text,
        "time": piece.time,
        "source": piece.source,
        "headings": list(piece.headings),
        "retired": piece.retired,
        "by": piece.by,
        "holds_from": piece.holds_from,
        "contradicts": list(piece.contradicts),
        "dates": date_values(piece.text, piece.time or piece.observed),
        "score": round(piece.score, 4),
    }


def say_how(answer: Answer, filter: Filter) -> None:
    """The reader, why it stopped, what was taken out of the answer, and what it all cost."""
    used = [f"{name} {value}" for name, value in filter_words(filter)]
    say(f"reader {answer.reader}: {count(len(answer.evidence), 'piece')} of evidence, stop: {answer.stop}")
    if used:
        say(f"filters: {', '.join(used)}")
    if answer.removed:
        say(f"{count(answer.removed, 'citation')} that bore nothing out taken out")
    for statement in answer.dropped:
        say(f"without support, left out: {shown(on_one_line(statement))}")
    usage = answer.usage
    say(f"{count(usage.calls, 'model call')}, {usage.tokens_in + usage.tokens_out:,} tokens, {duration(usage.seconds)}")


def filter_words(filter: Filter) -> list[tuple[str, str]]:
    """The parts of a filter that are set."""
    pairs = [("since", filter.since), ("until", filter.until), ("as of", filter.as_of), ("known at", filter.known_at)]
    where = [("where", f"{key}={value}") for key, value in filter.pairs]
    return [*where, *((name, value) for name, value in pairs if value)]


# search


@app.command(
    epilog=examples(
        "infinimem search Nordlys",
        "infinimem search staff engineer -k 3 --json",
        "infinimem search --root . Nordlys",
    )
)
def search(
    ctx: typer.Context,
    query: Annotated[list[str], typer.Argument(metavar="QUERY...", help="The words to look for.")],
    k: Annotated[int, typer.Option("-k", metavar="N", min=1, help="How many.")] = 10,
    topic: Annotated[str, typer.Option(metavar="TOPIC", help="Only in this topic.", autocompletion=topic_ids)] = "",
    where: Where = None,
    since: Since = "",
    until: Until = "",
    ns: Namespace = "",
    as_of: AsOf = "",
    known_at: KnownAt = "",
    everything: Everything = False,
    root: Annotated[str, typer.Option(metavar="DIR", help="In every library below a folder.")] = "",
) -> int:
    """The entries most like a query, best first, one a line: place, date, source, text.

    With --root the library's path comes first, and a library that cannot be searched makes the exit code 5.
    """
    from dataclasses import replace

    words = text_of(query, "query")
    filter = replace(filter_of(where, since, until, ns, as_of, known_at, everything), topic=topic)
    if root:
        return search_root(ctx, root, words, k, filter)
    library = shown_library(ctx)
    hits = library.search(words, k, filter=filter)
    against: dict[tuple[str, int], list[Unit]] = {}
    for unit, other in library.disputes([hit.unit for hit in hits], filter=filter, look=False):
        against.setdefault((unit.path, unit.line), []).append(other)
    others = [against.get((hit.unit.path, hit.line), []) for hit in hits]
    if wants_json(ctx):
        emit([hit_values(hit, facing) for hit, facing in zip(hits, others, strict=True)])
    else:
        print_hits(library.root, hits, others=others)
    if not hits:
        say("nothing found")
    return 0 if hits else 1


def search_root(ctx: typer.Context, root: str, query: str, k: int, filter: Filter) -> int:
    """Search every library below a folder."""
    import os
    from pathlib import Path

    from infinimem.cli.progress import libraries_to_show, progress
    from infinimem.fleet.search import search_below

    folder = root_folder(root)
    with progress() as show:
        total = libraries_to_show(folder)
        found = search_below(
            folder, query, k, filter=filter, audience=os.environ.get("INFINIMEM_AUDIENCE", ""),
            progress=lambda done: show("searching", done, total),
        )  # fmt: skip
    if wants_json(ctx):
        emit(
            {
                "root": str(folder),
                "searched": found.searched,
                "holding": found.holding,
                "hits": [{"library": one.library, **hit_values(one.hit, one.facing)} for one in found.hits],
                "troubles": [{"path": one.path, "why": one.why} for one in found.troubles],
            }
        )
    else:
        for one in found.hits:
            print_hits(Path(one.library), [one.hit], os.path.relpath(one.library, folder), [one.facing])
        tell_troubles(found.troubles)
    if not found.searched and not found.troubles:
        say(NO_LIBRARY.format(folder=shown(str(folder))))
    elif not found.hits:
        say(f"nothing found in {count(found.searched, 'library', 'libraries')} below {shown(str(folder))}")
    return 5 if found.troubles else 0 if found.hits else 1


def hit_values(hit: Hit, facing: Sequence[Unit] = ()) -> dict[str, Any]:
    """A hit as JSON has it."""
    return {
        "seqs": list(hit.seqs),
        "topic": hit.topic,
        "line": hit.line,
        "score": round(hit.score, 4),
        "text": hit.text,
        "time": hit.time,
        "source": hit.source,
        "path": hit.unit.path,
        "stop": hit.unit.stop,
        "headings": list(hit.unit.headings),
        "fields": dict(hit.unit.fields),
        "retired": hit.unit.retired,
        "holds_from": hit.unit.get(HOLDS_FROM),
        "dates": date_values(hit.text, hit.time or hit.unit.observed),
        "contradicts": [unit.seqs[0] for unit in facing],
    }


def print_hits(
    root: Path, hits: Sequence[Hit], library: str = "", others: Sequence[Sequence[Unit]] | None = None
) -> None:
    """The place and two lines of text on a terminal, one line with tabs for a program; the library's name, if given.

    `others` are, for each hit, the entries that contradict it.
    """
    for hit, facing in zip(hits, [()] * len(hits) if others is None else others, strict=True):
        place = f"{hit.topic}:{hit.line}"
        named = (shown(library),) if library else ()
        about = [hit.time[:10] or noted(hit.unit.observed), on_one_line(hit.source)]
        number = [f"#{render_seqs(hit.seqs)}"] if hit.seqs else []
        notes = date_notes(hit.text, hit.time or hit.unit.observed)
        fate = fate_words(hit.unit.retired, 0, hit.unit.get("expires"), hit.unit.get(HOLDS_FROM))
        text = on_one_line(hit.text) + notes + (f"  ({fate})" if fate else "")
        if is_terminal():
            words = " · ".join(shown(word) for word in (*number, *about) if word)
            link = linked(paint(shown(place), "bold cyan"), root, hit.unit.path, hit.line)
            out("  ".join((*named, link, paint(words, "dim"))))
            first, *more = wrap(shown(text), min(width(), READABLE) - 2)
            out(f"  {first}")
            if more:
                out("  " + cut(" ".join(more), min(width(), READABLE) - 2))
            for unit in facing:
                said = f"  ! contradicts [{unit.topic}:{unit.line}] {on_one_line(unit.text)}"
                out(paint(cut(shown(said), min(width(), READABLE)), "yellow"))
        else:
            warning = "".join(f"  (contradicts {unit.topic}:{unit.line})" for unit in facing)
            out("\t".join((*named, place, *about, text + warning)))


# grep


@app.command(
    epilog=examples(
        "infinimem grep 'Nord\\w+'", "infinimem grep -i nordlys maya-work -C 1", "infinimem grep Fjord --all --json"
    )
)
def grep(
    ctx: typer.Context,
    pattern: Annotated[str, typer.Argument(help="A regular expression (RE2 syntax).")],
    topic: Annotated[str, typer.Argument(metavar="[TOPIC]", help="Only in this topic.", autocompletion=topic_ids)] = "",
    ignore_case: Annotated[bool, typer.Option("--ignore-case", "-i", help="Upper and lower case alike.")] = False,
    context: Annotated[int, typer.Option("--context", "-C", metavar="N", min=0, help="Lines around each.")] = 0,
    limit: Annotated[int | None, typer.Option("--max-count", "-m", metavar="N", min=1, help="Stop after N.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Search evidence, too.")] = False,
) -> int:
    """The lines that match a regular expression, as path:line:text; in linear time whatever the pattern."""
    library = open_library(ctx)
    matches = library.grep(
        pattern, topic, ignore_case=ignore_case, context=context, limit=limit or 0, retired=everything
    )
    if wants_json(ctx):
        emit([match_values(match) for match in matches])
    else:
        print_matches(library.root, matches, highlighter(pattern, ignore_case), grouped=context > 0)
    return 0 if matches else 1


def match_values(match: Match) -> dict[str, Any]:
    """A match as JSON has it."""
    return {
        "path": match.path,
        "topic": match.topic,
        "line": match.line,
        "text": match.text,
        "seqs": list(match.seqs),
        "time": match.time,
        "source": match.source,
        "before": list(match.before),
        "after": list(match.after),
    }


def highlighter(pattern: str, ignore_case: bool) -> Any:
    """What paints the matches in a line."""
    if paint("x", "bold") == "x":
        return shown
    from infinimem.grep import compile_pattern

    compiled = compile_pattern(pattern, ignore_case=ignore_case)

    def painted(text: str) -> str:
        content = shown(text).encode("utf-8", "replace")
        pieces = []
        at = 0
        for match in compiled.finditer(content):
            if match.end() > match.start():
                pieces.append(content[at : match.start()].decode("utf-8", "replace"))
                pieces.append(paint(content[match.start() : match.end()].decode("utf-8", "replace"), "bold red"))
                at = match.end()
        return "".join(pieces) + content[at:].decode("utf-8", "replace")

    return painted


def print_matches(root: Path, matches: list[Match], painted: Any, *, grouped: bool) -> None:
    """As grep prints them: `path:line:text`, context as `path-line-text`, `--` between distant ones."""
    matching = {(match.path, match.line) for match in matches}
    path, last = "", 0
    for match in matches:
        first = match.line - len(match.before)
        if match.path != path:
            last = 0
        if grouped and path and (match.path != path or first > last + 1):
            out(paint("--", "dim"))
        path = match.path
        lines = (*match.before, match.text, *match.after)
        for number, text in enumerate(lines, first):
            if number <= last or ((path, number) in matching and number != match.line):
                continue
            is_match = number == match.line
            mark = ":" if is_match else "-"
            place = paint(shown(path), "cyan") + mark + paint(str(number), "dim")
            out(linked(place, root, path, number) + mark + (painted(text) if is_match else shown(text)))
            last = number
