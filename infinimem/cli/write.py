"""`infinimem write`: the one command that has to be cheap. Nothing heavy is imported here.

Annotations are not postponed: typer would compile each of them anew, which costs 2 ms.
"""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from infinimem.cli.request import command_app, examples, pair_of, request_of, wants_json
from infinimem.cli.talk import emit, out, say
from infinimem.errors import BadInput, InfinimemError

if TYPE_CHECKING:
    from infinimem.consolidate.extract import Extracted
    from infinimem.store.append import Appended

app = command_app()

GIST = 100
"""Letters of a replaced entry that are shown."""
MOST_REPEATS = 5
"""Repeated entries, or ones with a secret, that are named one by one."""
Draft = str | dict[str, Any]
Placed = tuple[str, Draft]
"""An entry and where it was read, for the message that names it."""


@app.command(
    epilog=examples(
        "infinimem write 'Maya joined Nordlys.' --source user --time 2026-05-01",
        "infinimem write 'The stand-up is at ten now.' --supersedes 12",
        "printf 'one\\ntwo\\n' | infinimem write --lines --source file:list.txt",
        'echo \'[{"role": "user", "content": "I moved to Bergen."}]\' | infinimem write --chat',
    )
)
def write(
    ctx: typer.Context,
    text: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TEXT]...", help="Each an entry; none or - reads standard input."),
    ] = None,
    source: Annotated[str, typer.Option(metavar="WHO", help="Who said it: user, AI, a name, file:…, tool:…")] = "",
    time: Annotated[str, typer.Option(metavar="DATE", help="When it happened; may be partial (2026-05).")] = "",
    observed: Annotated[str, typer.Option(metavar="DATE", help="When it was noted, instead of now.")] = "",
    ns: Annotated[str, typer.Option(metavar="NAME", help="Its namespace.")] = "",
    meta: Annotated[
        list[str] | None, typer.Option("--meta", metavar="K=V", help="Any other field; may be repeated.")
    ] = None,
    supersedes: Annotated[
        list[str] | None,
        typer.Option("--supersedes", metavar="SEQ", help="What it replaces: 12, 12-15 or 12+18; may be repeated."),
    ] = None,
    key: Annotated[str, typer.Option(metavar="K", help="Written once for this key, however often repeated.")] = "",
    lines: Annotated[bool, typer.Option("--lines", help="Each line is an entry; blank ones are skipped.")] = False,
    jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Each line is a JSON object: text, time, source and any other field.")
    ] = False,
    chat: Annotated[
        bool, typer.Option("--chat", help="Messages with role and content, as JSON or JSON lines.")
    ] = False,
    secret_ok: Annotated[
        bool, typer.Option("--secret-ok", help="A key or password in it is meant: no warning, now or at a commit.")
    ] = False,
    extract: Annotated[
        bool, typer.Option("--extract", help="Have a model also take the facts out, each linked to its source.")
    ] = False,
) -> int:
    """Append entries to memory; they are on disk when it returns.

    Prints the seq of each entry, one a line. The first write makes your own library if there is none.
    With --extract the words are written first; the exit code is 4 when the model then fails, 5 when a check refuses
    some of what it says.
    """
    form = one_of(lines=lines, jsonl=jsonl, chat=chat)
    refuse_file_names(text or [], form)
    entries = read_entries(text or [], form)
    fields = dict(pair_of(pair, "--meta") for pair in meta or ())
    if ns:
        fields["ns"] = ns
    if secret_ok:
        fields["secret"] = "ok"
    shared = {"source": source, "time": time, "observed": observed, "supersedes": supersedes or (), "key": key}
    if extract:
        return store_and_extract(ctx, entries, shared, fields)
    return store(ctx, entries, shared, fields)


def one_of(**forms: bool) -> str:
    """Which form the input has; "" for one text."""
    chosen = [name for name, is_chosen in forms.items() if is_chosen]
    if len(chosen) > 1:
        raise BadInput(f"--{chosen[0]} and --{chosen[1]} do not go together; nothing was written")
    return chosen[0] if chosen else ""


def refuse_file_names(texts: list[str], form: str) -> None:
    """Lines, JSON and chats come from standard input; who names a file instead meant `< FILE`."""
    for text in texts:
        if form and len(text) < 1000 and "\n" not in text and Path(text).is_file():
            raise BadInput(f"{text} is a file; to write what is in it: infinimem write --{form} < {text}")


def store(ctx: typer.Context, entries: list[Placed], shared: dict[str, Any], meta: dict[str, str]) -> int:
    """Write the entries into the library, made if need be, and say what became of them."""
    from infinimem.library import Library
    from infinimem.store.layout import find_library, is_library

    if not entries:
        return nothing_to_write(ctx)
    root, _ = find_library(request_of(ctx).library or None, create=True)
    made = not is_library(root)
    request_of(ctx).root = str(root)
    try:
        if made:
            checked(entries, shared, meta)
        done = Library.open(root, create=made).write_all([entry for _, entry in entries], meta=meta, **shared)
    except BadInput:
        checked(entries, shared, meta)
        raise
    report(ctx, done, root, made)
    say_replaced(root, done, shared["supersedes"])
    warn_of_future(done)
    warn_of_secrets(done, entries, meta)
    return 0


def nothing_to_write(ctx: typer.Context, **more: Any) -> int:
    """An input without an entry is no error."""
    say("there is nothing to write")
    if wants_json(ctx):
        emit({"seqs": [], "stored": False, "repeats": [], "library": "", "created": False, **more})
    return 0


def checked(entries: list[Placed], shared: dict[str, Any], meta: dict[str, str]) -> None:
    """Refuse what cannot be an entry, by the place where it was read."""
    from infinimem.store.drafts import draft_of

    given = {name: value for name, value in shared.items() if name != "key"}
    draft_of("-", given, meta, shared["key"], "command line")
    for place, entry in entries:
        draft_of(entry, given, meta, shared["key"], place)


def report(ctx: typer.Context, done: "Appended", root: Path, made: bool, **more: Any) -> None:
    """The seqs as data; what is worth knowing as talk."""
    if wants_json(ctx):
        repeats = [{"seq": seq, "of": earlier} for seq, earlier in done.repeats]
        seqs = list(done.seqs)
        emit({"seqs": seqs, "stored": done.stored, "repeats": repeats, "library": str(root), "created": made, **more})
    elif done.seqs:
        out("\n".join(map(str, done.seqs)))
    if made:
        say(f"made a new library; stored in {root}")
    if not done.stored:
        other = " (with other words: use a new key for a new fact)" if done.differs else ""
        say(f"this key was written before; nothing was stored again{other}")
    for seq, earlier in done.repeats[:MOST_REPEATS]:
        say(f"{seq} says the same as {earlier}, which is still in CURRENT")
    if len(done.repeats) > MOST_REPEATS:
        say(f"and so do {len(done.repeats) - MOST_REPEATS} more")


def say_replaced(root: Path, done: "Appended", supersedes: list[str]) -> None:
    """The words that an entry is to replace: a wrong number would take away a fact that nobody meant."""
    from infinimem.text.signature import parse_seqs

    seqs = [seq for text in supersedes for seq in parse_seqs(text) if done.seqs and seq < done.seqs[0]]
    if not seqs or not done.stored:
        return
    from infinimem.cli.show import on_one_line, shown
    from infinimem.store.evidence import read_records
    from infinimem.store.layout import BUFFER
    from infinimem.store.read import read_file

    if audience := os.environ.get("INFINIMEM_AUDIENCE"):
        from infinimem.library import Library

        try:
            root = Library.open(root, audience=audience).place()
        except InfinimemError:  # the entry is written; what may be said of older ones is not known
            return
    words = {seq: entry.text for entry in read_file(root, BUFFER).document.entries for seq in entry.seqs}
    for seq, record in read_records(root, seqs).items():
        words.update((seq, entry.text) for _, entry in record.entries[-1:])
    for seq in seqs[:MOST_REPEATS]:
        text = on_one_line(words.get(seq, ""))
        say(f"replaces {seq}: {shown(text if len(text) <= GIST else text[:GIST] + ' …') or 'nothing is known of it'}")
    if len(seqs) > MOST_REPEATS:
        say(f"and {len(seqs) - MOST_REPEATS} more")


def warn_of_future(done: "Appended") -> None:
    """An entry can only replace an older one; a seq that nobody has yet is a slip of the finger."""
    if done.too_new:
        say(f"there is no entry {done.too_new[0]} to replace yet; the next flush will skip that")


def warn_of_secrets(done: "Appended", entries: list[Placed], meta: dict[str, str]) -> None:
    """A key or password is stored like any other text; that it may have slipped in is said, never the words."""
    if not done.stored or not done.seqs:
        return
    from infinimem.secrets import secrets_in

    warned = 0
    for seq, (_, entry) in zip(done.seqs, entries, strict=True):
        text, fields = (entry, meta) if isinstance(entry, str) else (str(entry.get("text", "")), {**meta, **entry})
        kinds = dict.fromkeys(kind for kind, _ in secrets_in(text)) if fields.get("secret") != "ok" else {}
        warned += bool(kinds)
        if kinds and warned <= MOST_REPEATS:
            say(f"{seq} looks like it holds a secret ({', '.join(kinds)}); it is stored. If it is meant: --secret-ok")
    if warned > MOST_REPEATS:
        say(f"and so do {warned - MOST_REPEATS} more")
    if warned:
        say("infinimem check names such lines until the field secret=ok stands in their signature, or they are gone")


# Extracting


def store_and_extract(ctx: typer.Context, entries: list[Placed], shared: dict[str, Any], meta: dict[str, str]) -> int:
    """Write the entries, have a model take facts from them, and say what became of both."""
    from infinimem.cli.progress import progress
    from infinimem.config import load_settings
    from infinimem.library import NO_MODEL_TO_EXTRACT, Library
    from infinimem.llm.connect import is_configured
    from infinimem.store.layout import find_library, is_library

    root, _ = find_library(request_of(ctx).library or None, create=True)
    made = not is_library(root)
    request_of(ctx).root = str(root)
    if not is_configured(load_settings(None if made else root)):
        raise BadInput(NO_MODEL_TO_EXTRACT)
    if not entries:
        return nothing_to_write(ctx, **extracted_values(None))
    checked(entries, shared, meta)
    with progress() as show:
        found = Library.open(root, create=made).extract(
            [entry for _, entry in entries], meta=meta, progress=show, **shared
        )
    report(ctx, found.written, root, made, **extracted_values(found))
    if not wants_json(ctx):
        for seq, fact in zip(found.seqs, found.facts, strict=True):
            out(f"{seq}\t{fact.text}")
    warn_of_future(found.written)
    warn_of_secrets(found.written, entries, meta)
    say_extracted(found)
    return found.exit_code


def extracted_values(found: "Extracted | None") -> dict[str, Any]:
    """What was taken from the words, as JSON has it."""
    if found is None:
        return {"extracted": [], "skipped": [], "notes": [], "failures": [], "usage": usage_values(0, 0, 0, 0.0)}
    used = found.usage
    return {
        "extracted": [
            {"seq": seq, "text": fact.text, "time": fact.time, "from": list(fact.seqs)}
            for seq, fact in zip(found.seqs, found.facts, strict=True)
        ],
        "skipped": [{"text": one.text, "why": one.why} for one in found.refused],
        "notes": list(found.notes),
        "failures": list(found.failures),
        "usage": usage_values(used.calls, used.tokens_in, used.tokens_out, used.seconds),
    }


def usage_values(calls: int, sent: int, received: int, seconds: float) -> dict[str, Any]:
    """A cost as JSON has it."""
    return {"calls": calls, "tokens_in": sent, "tokens_out": received, "seconds": round(seconds, 3)}


def say_extracted(found: "Extracted") -> None:
    """What the model could not do, and what was not taken of what it said."""
    from infinimem.cli.show import shown

    for one in found.refused:
        say(shown(f"skipped: «{one.text}»: {one.why}" if one.text else f"skipped: {one.why}"))
    for note in found.notes:
        say(shown(note))
    if found.failures:
        first, *more = found.failures
        also = f" (and {len(more)} more)" if more else ""
        say(f"the model failed; the words are written, nothing is lost: {' '.join(first.split())}{also}")
    elif found.written.stored and not found.facts and not found.refused:
        say("the model found no fact in it")


# Reading


def read_entries(texts: list[str], form: str) -> list[Placed]:
    """The entries that the arguments or standard input hold, in order."""
    if not texts and sys.stdin is not None and sys.stdin.isatty():
        raise BadInput("there is no text; give it as an argument, pipe it in, or type it after: infinimem write -")
    entries: list[Placed] = []
    for number, text in enumerate(texts or ["-"], 1):
        is_piped = text == "-"
        place, content = ("<stdin>", read_input()) if is_piped else (f"text {number}", text)
        entries += split_entries(content, form, place)
        if is_piped and not form and not content.strip():
            raise BadInput("standard input is empty; nothing was written. Give the text as an argument, or pipe it in")
    return entries


def read_input() -> str:
    """Standard input as text. Raises `BadInput` naming the byte that is no UTF-8."""
    if sys.stdin is None:
        raise BadInput("standard input is closed; give the text as an argument")
    content = sys.stdin.buffer.read()
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"<stdin>:{line}: byte {error.start + 1} (0x{content[error.start]:02x}) is not UTF-8; "
            "nothing was written. Convert it first, for example with iconv"
        ) from error


def split_entries(content: str, form: str, place: str) -> Sequence[Placed]:
    """One input as the entries that its form says."""
    if form == "lines":
        rows = enumerate(content.split("\n"), 1)
        return [(f"{place}:{number}", line.rstrip("\r")) for number, line in rows if line.strip()]
    if form:
        from infinimem.cli import structured

        return structured.read_json_lines(content, place) if form == "jsonl" else structured.read_chat(content, place)
    return [(place, content.rstrip("\r\n") if place == "<stdin>" else content)]
