"""What a flush with a model costs: calls and tokens, infinimem beside the paper's own package.

    python benchmarks/cost.py [--peer SRC_FOLDER] [--peer-python PYTHON] [--notes NOTES.jsonl]
                              [--documents 300] [--topics 100,10000] [--contexts 8192,32768] [--json FILE]

Both get the same buffers of 5,000 tokens, one after the other, and the last flush is measured. Both talk over HTTP to
the same server, which does what each prompt asks and knows for both which entry is about which subject: it groups,
routes and summarises alike, and finds nothing to retire and nothing to merge. The server counts, by one counter on
both sides, the words of the requests' messages and of its replies; what it cannot count alike (a JSON schema beside
the messages) stands apart. `--notes` takes JSON lines with `text` and a `subject` given by a person, such as
tools/sample/entries.jsonl, and measures the last whole buffer of them.

The package (github.com/infinigence/Infini-Memory, infini_memory of its first commit) is not part of this repository:
`--peer` names the src folder of a checkout, `--peer-python` a Python that has openai and pydantic. Its buffer goes in
as CURRENT, without headings: what its `add` spends on extracting facts is not counted, nor is ours.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.report import write_json
from infinimem import Library
from infinimem.store.layout import create_library
from infinimem.text.tokens import estimate
from tests.llm.planner import given as given_in
from tests.llm.planner import sensible, step_of, summaries
from tests.llm.server import Behaviour, Payload, serving

LIMITS = (
    "a scripted model that knows every entry's subject, retires and merges nothing: tokens, not quality",
    "words of the messages and replies by one counter for both; our JSON schemas are counted apart",
    "the last settings of ours were chosen on these very buffers",
)
SEED = 2026
BUFFER = 5000
SUBJECTS = 12
"""In a buffer."""
PER_DOCUMENT = 300
"""Tokens of a document when there are to be many."""
START = datetime(2026, 1, 5, 8, tzinfo=UTC)
SYLLABLES = "ba de fi go hu ja ke li mo nu pa re si to va we yo za bri cla dro fle gru ste tra".split()
MATTERS = {
    "garden": "seedlings compost greenhouse tomatoes trellis hose beans slugs rake plum hedge mulch shed frost bulbs",
    "kiln": "glaze clay shelf cone firing bowls cobalt crack thermocouple door wheel slip tiles element vent",
    "boat": "mooring hull sail bilge rudder varnish anchor winch engine tide fender mast jib pump harbour",
    "choir": "rehearsal altos motet score concert tenors parish tempo solo piano programme robes encore cough aisle",
    "house": "roof boiler gutter cellar window plaster tenant deposit meter stairs fuse radiator lease chimney lock",
    "school": "homework recess teacher excursion spelling locker report bus fractions recital lunch satchel exam desk",
    "clinic": "prescription knee iron scan dosage nurse insurance allergy referral blood splint vaccine pulse diet",
    "bakery": "sourdough oven flour proofing rye invoice counter yeast apprentice delivery bun mixer crate salt dough",
    "trip": "ferry visa hostel passport ticket luggage border rental museum tunnel platform seat map currency pass",
    "app": "release login database queue crash dashboard token migration backup cache sprint rollback alert schema",
    "bees": "hive queen swarm honey frames mites smoker brood feeder wax varroa drone nectar veil foundation",
    "band": "bassline amplifier gig setlist drummer chorus cable van demo tuning poster strings venue mix encore",
}
SENTENCES = (
    "{who}: the {a} again, {n} this time",
    "asked {helper} about the {a}, got an answer about the {b}",
    "{who} wants the {a} beside the {b}",
    "no more {a} until somebody has paid for the {b}",
    "first the {a}, then the {b}, {n} minutes each",
    "{helper} rang, {n} of the {a} are {how}",
    "for {who} nothing matters like the {a}",
    "bought another {a} for {n} euros, {how} but cheap",
    "on {day} {who} explained the {a} to {helper}",
    "never lend {helper} the {a} again",
    "the {b} came back {how} and {n} days late",
    "{who} dreamt of a {how} {a}, which says enough",
    "measured the {a}: {n} centimetres, not what the label promised",
    "somebody left the {a} out in the rain, {helper} denies it",
    "{day}: {helper} brings the {a}, {who} makes coffee",
    "photographed the {how} {a} before anyone could tidy up",
    "the {b} smells {how} since {day}",
    "{helper} has an uncle who repairs any {a}",
    "{who} counted twice: {n}, whatever the {a} may say",
    "still no word from {helper} concerning the {b}",
    "forgot the {a} at the station, {who} laughed",
    "a {how} surprise: the {b} fits",
    "wrote a list, lost the list, remember only the {a}",
    "cancelled {day}, too {how} for the {a}",
    "{who} would rather have the {b} and be done",
    "the manual calls it {how}, {helper} calls it a scandal",
    "pay {helper} the {n} euros for the {a}",
    "learnt from a neighbour that {a} and {b} do not mix",
)
HOW = (
    "rusty damp perfect crooked borrowed noisy splendid late frozen sticky faded heavy empty wobbly bitter broken "
    "clean stubborn silent odd bright dusty loose burnt soft wrong"
).split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
FACT = re.compile(r"^- <seq=(\d+)[^>]*> (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Note:
    """One entry, and the subject that both planners see in it."""

    text: str
    subject: str


@dataclass
class Bill:
    """What was sent and received: each row is step, tokens in, tokens out, and tokens of the schema beside them."""

    rows: list[tuple[str, int, int, int]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Totals, and by step `[calls, tokens in, tokens out]`."""
        steps: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for step, sent, received, _ in self.rows:
            for at, part in enumerate((1, sent, received)):
                steps[step][at] += part
        totals = [sum(part) for part in zip(*steps.values(), strict=True)]
        names = ("calls", "tokens_in", "tokens_out")
        return {**dict(zip(names, totals, strict=True)), "schema": sum(row[3] for row in self.rows), "steps": steps}


# texts


def subject_of(number: int) -> tuple[str, str]:
    """The person and the matter of a subject; every number has its own, and a person has three."""
    rest = (number // 3 * 7919 + 1009) % len(SYLLABLES) ** 3
    name = ""
    for _ in range(3):
        rest, part = divmod(rest, len(SYLLABLES))
        name += SYLLABLES[part]
    return name.capitalize(), list(MATTERS)[number % len(MATTERS)]


def write_note(number: int, dice: random.Random) -> Note:
    """A note of about thirty tokens on a subject."""
    who, matter = subject_of(number)
    said = []
    for sentence in dice.sample(SENTENCES, 2):
        a, b = dice.sample(MATTERS[matter].split(), 2)
        helper, _ = subject_of(dice.randrange(30_000, 30_300))
        values = {"a": a, "b": b, "n": dice.randrange(2, 400), "day": dice.choice(DAYS), "how": dice.choice(HOW)}
        words = sentence.format(who=who, helper=helper, **values)
        said.append(words[0].upper() + words[1:])
    return Note(f"{who}'s {matter}. {'. '.join(said)}.", f"{who}-{matter}")


def write_buffer(subjects: Sequence[int], tokens: int, dice: random.Random) -> list[Note]:
    """Notes on some subjects, mixed, of so many tokens."""
    notes: list[Note] = []
    while sum(estimate(note.text) for note in notes) < tokens:
        notes.append(write_note(dice.choice(subjects), dice))
    return notes


def generated(documents: int) -> list[list[Note]]:
    """Buffers that lead to a library of so many documents, and one more about a dozen of them."""
    dice = random.Random(SEED)
    if documents <= SUBJECTS:
        return [write_buffer(range(documents), BUFFER, dice) for _ in range(5)]
    at_once = BUFFER // PER_DOCUMENT
    starts = range(0, documents, at_once)
    buffers = [write_buffer(range(start, min(start + at_once, documents)), BUFFER, dice) for start in starts]
    return [*buffers, write_buffer(dice.sample(range(documents), SUBJECTS), BUFFER, dice)]


def read_notes(path: Path) -> list[list[Note]]:
    """Buffers of notes that a person wrote and sorted; a last one that is not full is left out."""
    buffers: list[list[Note]] = [[]]
    for row in map(json.loads, path.read_text("utf-8").splitlines()):
        if sum(estimate(note.text) for note in buffers[-1]) >= BUFFER:
            buffers.append([])
        buffers[-1].append(Note(" ".join(row["text"].split()), row["subject"].capitalize()))
    return [notes for notes in buffers if sum(estimate(note.text) for note in notes) >= BUFFER * 0.8]


# the server


@contextmanager
def billed(answer: Callable[[Payload], str], step: Callable[[Payload], str]) -> Iterator[tuple[str, Bill]]:
    """A server that answers so, and what it was asked."""
    bill = Bill()

    def counted(payload: Payload) -> str:
        try:
            reply = answer(payload)
        except Exception as error:  # a request handler's own end is silent
            bill.faults.append(f"{step(payload)}: {error!r}")
            raise
        sent = sum(estimate(str(message["content"])) for message in payload["messages"])
        schema = estimate(json.dumps(payload["response_format"])) if payload.get("response_format") else 0
        bill.rows.append((step(payload), sent, estimate(reply), schema))
        return reply

    with serving(Behaviour(answer=counted)) as url:
        yield url, bill


# ours


def flush_ours(buffers: Sequence[Sequence[Note]], context: int, root: Path, bill: Bill, url: str) -> int:
    """Write and flush each buffer; the bill is that of the last one. Gives the number of documents."""
    settings = {"INFINIMEM_MODEL": "scripted", "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
    os.environ.update(settings, INFINIMEM_MODEL_CONTEXT=str(context))
    at = START
    with Library(root, clock=lambda: at) as library:
        for notes in buffers:
            bill.rows.clear()
            at += timedelta(days=1)
            written = library.write([{"text": note.text, "source": "user", "time": f"{at:%Y-%m-%d}"} for note in notes])
            report = library.flush(planner="model")
            if bill.faults or report.failures or len(report.seqs) < len(written):
                raise SystemExit(f"the flush failed: {bill.faults} {report.failures} {len(report.seqs)} placed")
        return len(library.catalog())


def answer_ours(notes: Iterable[Note]) -> Callable[[Payload], str]:
    """What the server says to our prompts."""
    subjects = {note.text: note.subject for note in notes}
    planner = sensible(subject=lambda words: subjects[words])

    def answer(payload: Payload) -> str:
        if step_of(payload) != "summary":
            return planner(payload)
        rows = [{**row, "text": whole_words(row["text"])} for row in summaries(given_in(payload))]
        return json.dumps({"summaries": rows}, ensure_ascii=False)

    return answer


def whole_words(text: str) -> str:
    """A text of at most 200 characters, without the word that the cut went through."""
    return text if len(text) < 200 else text[:200].rsplit(" ", 1)[0]


def measure_ours(buffers: Sequence[Sequence[Note]], context: int) -> dict[str, Any]:
    """The last flush with infinimem."""
    notes = [note for buffer in buffers for note in buffer]
    with tempfile.TemporaryDirectory() as folder, billed(answer_ours(notes), step_of) as (url, bill):
        create_library(Path(folder, "memory"))
        documents = flush_ours(buffers, context, Path(folder, "memory"), bill, url)
        return {"who": f"infinimem, context {context}", "documents": documents, **bill.summary()}


# theirs


def peer_step(payload: Payload) -> str:
    """Which of the package's prompts a request carries."""
    first = str(payload["messages"][0]["content"])[:80]
    starts = {
        "You will receive the content of a CURRENT": "REWRITE_CURRENT",
        "You will receive: 1) new Markdown": "PLAN_UPDATE",
        "You will receive: 1) an old Markdown": "REWRITE_DOC",
        "You will receive an existing document list": "SELECT_MERGE_GROUPS",
    }
    return next(name for start, name in starts.items() if first.startswith(start))


def answer_peer(notes: Iterable[Note]) -> Callable[[Payload], str]:
    """What the server says to the package's prompts: the same grouping, in the form that each asks for."""
    subjects = {note.text: note.subject for note in notes}

    def grouped(text: str) -> dict[str, list[str]]:
        groups: dict[str, list[str]] = {}
        for found in FACT.finditer(text):
            groups.setdefault(subjects[found[2]], []).append(found[0])
        return groups

    def plan(asked: dict[str, Any]) -> str:
        known = {str(row["summary"]).split(";", 1)[0]: row["id"] for row in asked["docs"]}
        groups = {subject: "\n".join(lines) for subject, lines in grouped(asked["new_content"]).items()}
        updates = [{"id": known[name], "new_content": text} for name, text in groups.items() if name in known]
        fresh = [{"title": name, "content": text} for name, text in groups.items() if name not in known]
        return json.dumps({"updates": updates, "new_docs": fresh}, ensure_ascii=False)

    def document(text: str) -> str:
        [(subject, lines)] = grouped(text.split("[OLD DOCUMENT]", 1)[1]).items()
        last = whole_words(lines[-1].split("> ", 1)[1])  # as long as the summaries that our prompt gets
        return f"---\nsummary: {subject}; {last}\n---\n# {subject}\n\n" + "\n".join(lines)

    def answer(payload: Payload) -> str:
        texts = [str(message["content"]) for message in payload["messages"]]
        match peer_step(payload):
            case "REWRITE_CURRENT":
                groups = grouped(texts[0].split("[CURRENT DOCUMENT CONTENT]", 1)[1])
                return "\n\n".join(f"# {subject}\n\n" + "\n".join(lines) for subject, lines in groups.items())
            case "PLAN_UPDATE":
                return plan(json.loads(texts[1]))
            case "REWRITE_DOC":
                return document(texts[0])
            case _:
                return '{"groups": []}'

    return answer


def measure_peer(buffers: Sequence[Sequence[Note]], source: Path, python: str, *, rewrite: bool) -> dict[str, Any]:
    """The last flush with the paper's package."""
    notes = [note for buffer in buffers for note in buffer]
    driver = Path(__file__).with_name("cost_peer.py")
    with tempfile.TemporaryDirectory() as folder, billed(answer_peer(notes), peer_step) as (url, bill):
        command = [python, str(driver), str(source), url, folder]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin and process.stdout
            seq, documents = 0, ""
            for number, buffer in enumerate(buffers, 1):
                bill.rows.clear()
                day = f"{START + timedelta(days=number):%Y-%m-%d}"
                lines = [f"- <seq={seq + at},time={day}> {note.text}" for at, note in enumerate(buffer, 1)]
                seq += len(buffer)
                request = {"content": "\n".join(lines), "number": number, "rewrite": rewrite}
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
                documents = process.stdout.readline()
                if bill.faults or not documents:
                    process.kill()
                    raise SystemExit(f"the package failed: {bill.faults}")
            process.stdin.close()
        rewritten = sum(step == "REWRITE_DOC" for step, *_ in bill.rows)
        if rewritten != len({note.subject for note in buffers[-1]}):
            raise SystemExit(f"the package rewrote {rewritten} documents: updates were lost")
        how = "REWRITE_CURRENT first, as in the paper" if rewrite else "as its add does by default"
        return {"who": f"the package, {how}", "documents": int(documents), **bill.summary()}


# many topics, ours alone


def build(root: Path, topics: int) -> list[Note]:
    """A library of so many topics, as flushes would have left it, and its notes."""
    create_library(root)
    notes: list[Note] = []
    with (root / "evidence" / "2026-01.md").open("w", encoding="utf-8") as evidence:
        evidence.write("# Evidence 2026-01\n\n")
        for number in range(topics):
            dice = random.Random(number)  # so that the smaller library is part of the larger
            held = [write_note(number, dice) for _ in range(8)]
            lines = [
                f"- <seq={seq}, time=2026-01-04, source=user, observed=2026-01-04T08:00:00Z> {note.text}\n"
                for seq, note in enumerate(held, len(notes) + 1)
            ]
            evidence.writelines(lines)
            topic = held[0].subject.lower()
            head = f"---\nid: {topic}\nsummary: {held[-1].text}\ntoken_count: 400\ncreated_time: 2026-01-04T08:00:00Z\n"
            text = f"{head}update_log: []\naux: {{}}\n---\n# {held[0].subject}\n\n{''.join(lines)}"
            path = root / "topics" / f"{topic}.md"
            path.write_text(text.replace("summary: ", "summary: >-\n  "), "utf-8")
            notes += held
        evidence.write(f"- <event=flush, high={len(notes)}, at=2026-01-04T08:00:00Z>\n")
    return notes


def measure_topics(topics: int, context: int) -> dict[str, Any]:
    """One flush on a library of so many topics, of the same buffer whatever their number."""
    dice = random.Random(SEED)
    buffer = write_buffer(dice.sample(range(100), SUBJECTS), BUFFER, dice)
    with tempfile.TemporaryDirectory() as folder:
        notes = build(Path(folder, "memory"), topics)
        with billed(answer_ours([*notes, *buffer]), step_of) as (url, bill):
            documents = flush_ours([buffer], context, Path(folder, "memory"), bill, url)
            return {"who": f"infinimem, context {context}", "documents": documents, **bill.summary()}


# report


def print_rows(title: str, rows: Sequence[dict[str, Any]], base: dict[str, Any] | None) -> None:
    """A table; with `base` each row's share of it."""
    print(f"\n{title}\n\n| | documents after | calls | tokens in | tokens out | schemas |\n|---|---|---|---|---|---|")
    for row in rows:
        cells = [row["calls"], row["tokens_in"], row["tokens_out"]]
        if base is not None and row is not base:
            parts = [row[name] / base[name] for name in ("calls", "tokens_in", "tokens_out")]
            cells = [f"{cell:,} ({part:.2f} ×)" for cell, part in zip(cells, parts, strict=True)]
        else:
            cells = [f"{cell:,}" for cell in cells]
        print(f"| {row['who']} | {row['documents']} | {' | '.join(cells)} | {row['schema']:,} |")
    for row in rows:
        steps = (f"{step} {calls} × {sent:,} → {got:,}" for step, (calls, sent, got) in row["steps"].items())
        print(f"\n{row['who']}: {', '.join(steps)}", end="")
    print(flush=True)


def compare(title: str, buffers: Sequence[Sequence[Note]], contexts: Sequence[int], given: Any) -> dict[str, Any]:
    """One comparison, printed."""
    rows: list[dict[str, Any]] = []
    if given.peer:
        rows += [measure_peer(buffers, given.peer, given.peer_python, rewrite=rewrite) for rewrite in (False, True)]
    base = rows[0] if rows else None
    rows += [measure_ours(buffers, context) for context in contexts]
    last = buffers[-1]
    about = {"entries": len(last), "tokens": sum(estimate(note.text) for note in last)}
    about["subjects"] = len({note.subject for note in last})
    title = f"{title}: flush {len(buffers)}, {about['entries']} entries, {about['tokens']:,} tokens of text"
    print_rows(f"{title}, {about['subjects']} subjects", rows, base)
    return {"title": title, **about, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, help="the src folder of a checkout of the paper's package")
    parser.add_argument("--peer-python", default=sys.executable, help="a Python that has what the package needs")
    parser.add_argument("--notes", type=Path, help="JSON lines with text and subject")
    parser.add_argument("--documents", type=int, default=0, help="a library of so many documents, too")
    parser.add_argument("--topics", default="", help="numbers of topics for ours alone, such as 100,10000")
    parser.add_argument("--contexts", default="8192,32768", help="what model.context is")
    parser.add_argument("--json", type=Path, help="write the results there")
    given = parser.parse_args()
    contexts = [int(part) for part in given.contexts.split(",")]
    if given.peer and not (given.peer / "infini_memory" / "memory.py").is_file():
        parser.error(f"there is no infini_memory/memory.py in {given.peer}")
    if not given.peer:
        print("The paper's package is left out: --peer names the src folder of a checkout of it.")
    results = []
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_CONFIG_HOME"] = home  # nobody's own settings or prompts
        results.append(compare("Generated notes, small library", generated(SUBJECTS), contexts, given))
        if given.notes:
            results.append(compare("Notes sorted by a person", read_notes(given.notes), contexts, given))
        if given.documents:
            title = f"Generated notes, {given.documents} documents"
            results.append(compare(title, generated(given.documents), contexts, given))
        if given.topics:
            sizes = [int(part) for part in given.topics.split(",")]
            for context in contexts:
                rows = [measure_topics(size, context) for size in sizes]
                title = f"Same buffer, {' and '.join(f'{size:,}' for size in sizes)} topics, context {context}"
                print_rows(title, rows, rows[0])
                results.append({"title": title, "rows": rows})
    write_json(
        given.json, "cost", results, limits=LIMITS, packages=("tantivy",), buffer=BUFFER, contexts=contexts, seed=SEED,
    )  # fmt: skip


if __name__ == "__main__":
    main()
