"""Answers to questions: by readers with a model and without one, with parts of reading or maintenance left out.

    python benchmarks/answers.py --evidence-only                         # the sample library, bm25's evidence
    python benchmarks/answers.py --reader bm25 [--locomo LOCOMO.json]    # no model: what it shows
    python tools/small_model.py qwen -- python benchmarks/answers.py --reader agentic,hybrid,summary --part odd
    … answers.py --reader hybrid --without expand,supplement,links,recent,history,complete --questions 12
    … answers.py --reader bm25 --maintenance current,flush,no-rewrite,no-split,no-merge --locomo LOCOMO.json
    … answers.py --reader hybrid,summary,agentic --planner model --maintenance flush,no-split --locomo LOCOMO.json
        --sessions 2 --settings split.max_tokens=600,merge.max_tokens=250 --work FOLDER --keep FILE --judge

Questions: the sample library's own (`tools/sample/questions.jsonl`), or a LoCoMo-shaped file's, each asked of its
conversation. `--questions N` takes N of them, as many of each category as there is room for, by `--seed`; those without
an answer are always among them. Every combination of `--reader`, `--without` (one part of the reader less a row) and
`--maintenance` is a row, over the same questions. `current` is never flushed; the others are flushed session by session
(`--planner`), but for what the sample library's `as-made` is. A table says what the flushes did and cost, another how
each row differs from the first, question by question, with 95 % intervals (2,000 resamples within each conversation).

`--sessions N` takes the first N sessions of each conversation, and the questions whose evidence lies wholly in them,
those without an answer included: LoCoMo names for them the turns that they distort. So small a library is never over
the limits at which documents are split and merged; `--settings` lowers them (any setting of a library).

`--work FOLDER` keeps the libraries, so that a rerun flushes none of them again, and what the model replied: a request
in the very same words, at temperature 0, is answered from there, and counts with the tokens and seconds it took.

Marks that need no model: F1 as LoCoMo's own script has it, over stemmed words, its parts for multi-hop; EM; SubEM (an
expected answer stands in what was said); abstained, where there is no answer (right) and where there is one (not);
evidence, the share of a question's entries among what was shown; and right or wrong as below. The bm25 reader writes
nothing: F1 and EM are of its best piece, SubEM of the `-k` pieces it shows. Answers of the readers are sentences, and
F1 and EM were made for a few words: compare rows, not papers.

Right: some words of the expected answer that the question does not give away are there and a citation leads to one of
the expected entries; abstained if *not in memory*; else wrong. For a question without an answer, abstaining is right
and any answer counts as two wrong ones. This is coarse: read the answers, which are printed. Prompts and checks were
looked at with the sample's even-numbered questions (`--part even`); report the odd ones.

`--keep FILE` appends each answer's marks there as it comes, a JSON line each; the same command takes up there what a
run that was cut off had done. Conversations are asked in turn, so that such a run has all of them.

`--judge` asks the same server (or the one of JUDGE_BASE_URL, JUDGE_API_KEY, JUDGE_MODEL) as well; its prompt is printed
and stored with its digest, and with `--model-file` the digest of the model.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.conversations import Conversation, read
from benchmarks.marks import exact, holds, locomo_f1, without_citations
from benchmarks.report import table, write_json
from infinimem import Library
from infinimem.ask import Answer
from infinimem.config import load_settings
from infinimem.consolidate.run import Report
from infinimem.llm.client import OpenAIModel
from infinimem.llm.connect import is_configured
from infinimem.llm.port import Model, Reply, Request
from infinimem.llm.replay import Recording, Replay
from infinimem.llm.replay import digest_of as digest
from infinimem.model import Retire, Step
from infinimem.readers.evidence import Switches
from infinimem.text.tokens import estimate
from infinimem.text.words import content_words

ROOT = Path(__file__).resolve().parent.parent
PARTS = tuple(Switches.__slots__)
MAINTENANCE: dict[str, Mapping[str, bool] | None] = {
    "as-made": None,
    "current": None,
    "flush": {},
    "no-rewrite": {"rewrite": False},
    "no-split": {"split": False},
    "no-merge": {"merge": False},
    "no-split-no-merge": {"split": False, "merge": False},
}
BUFFER = 5_000
"""Tokens of the sample's entries between two flushes."""
JUDGE = """You judge an answer against the expected one. The question, the expected answer and the answer follow.
The answer is CORRECT only if it states what the expected answer states; other words and more detail do not matter, a
wrong or missing name, number or date does. When in doubt it is WRONG. Reply with one word: CORRECT or WRONG.

Question: {question}
Expected: {expected}
Answer: {answer}
"""


@dataclass(frozen=True)
class Question:
    """`seqs` are the entries that answer it, none where memory does not; `answer` what a person would say."""

    text: str
    kind: str
    answer: str
    seqs: tuple[int, ...]

    @property
    def answerable(self) -> bool:
        return bool(self.answer)


@dataclass(frozen=True)
class Made:
    """A library, the seqs of its entries in order, the questions for it, and a row for each flush."""

    library: Library
    seqs: list[int]
    questions: list[Question]
    flushes: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Setting:
    """A row: who reads, what part of the reader is left out ("" = none), how the library was maintained."""

    reader: str
    without: str
    maintenance: str

    @property
    def name(self) -> str:
        less = f" less {self.without}" if self.without else ""
        return f"{self.reader}{less}, {self.maintenance}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, default=ROOT / "sample_library")
    parser.add_argument("--sample", type=Path, default=ROOT / "tools" / "sample", help="folder of both files")
    parser.add_argument("--locomo", type=Path, help="a LoCoMo-shaped file instead of the sample library")
    parser.add_argument("--conversations", default="", help="only these of its conversations")
    parser.add_argument("--reader", default="bm25", help="agentic, hybrid, summary, bm25, several by comma")
    parser.add_argument("--without", default="", help=f"parts of the reader, each a row: {', '.join(PARTS)}")
    parser.add_argument("--maintenance", default="", help=f"{', '.join(MAINTENANCE)}; several by comma")
    parser.add_argument("--planner", choices=("lexical", "model"), default="lexical")
    parser.add_argument("--sessions", type=int, default=0, help="only so many of each conversation")
    parser.add_argument(
        "--settings", default="", help="of the libraries, such as split.max_tokens=600; several by comma"
    )
    parser.add_argument("--work", type=Path, help="where the libraries and the model's replies are kept")
    parser.add_argument("--part", choices=("all", "odd", "even"), default="all")
    parser.add_argument("--questions", type=int, default=0, help="so many of them only")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--evidence-only", action="store_true")
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--model-file", type=Path, help="of which the digest is noted")
    parser.add_argument("--quiet", action="store_true", help="do not print the answers")
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path, help="marks as they come; what stands there is not asked again")
    given = parser.parse_args()
    settings = [
        Setting(reader, without, maintenance)
        for maintenance in (given.maintenance or ("flush" if given.locomo else "as-made")).split(",")
        for reader in given.reader.split(",")
        for without in ["", *(given.without.split(",") if given.without and reader != "bm25" else ())]
    ]
    rows: list[dict[str, Any]] = []
    flushed: list[dict[str, Any]] = []
    model = once(given.work)
    with tempfile.TemporaryDirectory() as folder:
        for maintenance in dict.fromkeys(setting.maintenance for setting in settings):
            made = list(sets_of(Path(given.work or folder, maintenance), given, maintenance, model))
            flushed += [summed_up(maintenance, made)] if any(each.flushes for each in made) else []
            asked = [(each.library, each.questions) for each in made]
            if given.evidence_only:
                print(f"evidence recall at {given.k}, {maintenance}: {recall(asked, given.k):.3f}")
                continue
            for setting in settings:
                if setting.maintenance == maintenance:
                    rows.append(run(setting, asked, given, model))
    if flushed:
        show_flushed(flushed)
    if given.evidence_only:
        return 0
    compare(rows)
    show(rows)
    judged = {"prompt": JUDGE, "sha256": hashlib.sha256(JUDGE.encode()).hexdigest()} if given.judge else {}
    thinks = given.planner == "model" or any(setting.reader != "bm25" for setting in settings)
    told = model_told(given.model_file) if thinks else {}
    if judged:
        print(f"\njudge's prompt, sha256 {judged['sha256']}:\n{JUDGE}")
    if told:
        print(f"model: {json.dumps(told)}")
    write_json(
        given.json,
        "answers",
        rows,
        limits=LIMITS,
        packages=("openai", "PyStemmer"),
        seed=given.seed,
        planner=given.planner,
        k=given.k,
        judge=judged,
        model=told,
        flushed=flushed,
        sessions=given.sessions,
        library_settings=given.settings,
        data=given.locomo.name if given.locomo else "sample library",
    )
    return 0


LIMITS = (
    "F1 and EM were made for answers of a few words; the readers write sentences",
    "some of LoCoMo's expected answers are wrong, and its category 5 may be unanswerable for other reasons than the "
    "speaker",
    "the sample library's questions are few, and prompts and checks were looked at with the even ones",
)


# Questions


def sets_of(folder: Path, given: argparse.Namespace, maintenance: str, model: Once | None) -> Iterator[Made]:
    """Each library, maintained as asked, with the questions for it."""
    if given.locomo:
        names = [name for name in given.conversations.split(",") if name]
        found = [each for each in read(given.locomo) if not names or each.name in names]
        share = -(-given.questions // len(found)) if given.questions else 0
        for conversation in found:
            part = beginning(conversation, given.sessions) if given.sessions else conversation
            made = conversed(folder / conversation.name, part, maintenance, given, model)
            yield replace(made, questions=part_of(made.questions, given.part, share, given.seed))
        return
    asked = part_of(questions(given.sample), given.part, given.questions, given.seed)
    if maintenance == "as-made":
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(given.library, folder)
        yield Made(Library.open(folder, model=model), [], asked)
        return
    entries = [json.loads(line) for line in (given.sample / "entries.jsonl").read_text("utf-8").splitlines()]
    known = [{key: entry[key] for key in ("text", "time", "source") if entry.get(key)} for entry in entries]
    yield replace(filled(folder / "memory", batches(known), maintenance, given, model), questions=asked)


def beginning(conversation: Conversation, sessions: int) -> Conversation:
    """Its first sessions, and the questions whose evidence lies wholly in them."""
    kept = conversation.sessions[:sessions]
    said = {label for session in kept for turn in session for label in turn.labels}
    asked = tuple(one for one in conversation.questions if one.evidence and one.evidence <= said)
    return replace(conversation, sessions=kept, questions=asked)


def questions(folder: Path) -> list[Question]:
    """The sample's questions with the seqs that their labels stand for: its entries have seqs in file order."""
    entries = [json.loads(line) for line in (folder / "entries.jsonl").read_text("utf-8").splitlines()]
    seqs = {entry["label"]: seq for seq, entry in enumerate(entries, 1) if entry.get("label")}
    rows = [json.loads(line) for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()]
    return [
        Question(row["question"], row["kind"], row["answer"] or "", tuple(seqs[label] for label in row["evidence"]))
        for row in rows
    ]


def conversed(
    folder: Path, conversation: Conversation, maintenance: str, given: argparse.Namespace, model: Once | None
) -> Made:
    """A conversation's library and questions; what it does not answer as asked has neither answer nor entries."""
    sessions = [
        [{"text": turn.text, "source": turn.speaker, "time": turn.time} for turn in session]
        for session in conversation.sessions
    ]
    made = filled(folder, sessions, maintenance, given, model)
    of_label = {label: seq for turn, seq in zip(conversation.turns, made.seqs, strict=True) for label in turn.labels}
    asked = []
    for question in conversation.questions:
        named = tuple(sorted(of_label[label] for label in question.evidence if label in of_label))
        if not question.answerable:
            asked.append(Question(question.text, question.category, "", ()))
        elif named:
            asked.append(Question(question.text, question.category, question.answers[0], named))
    return replace(made, questions=asked)


def filled(
    folder: Path,
    sittings: Sequence[Sequence[Mapping[str, Any]]],
    maintenance: str,
    given: argparse.Namespace,
    model: Once | None,
) -> Made:
    """A library that was written, and flushed after each sitting as `maintenance` says; as it was left, if it was.

    Its clock stands at the last entry of the sitting, so that the same entries give the same prompts on another day.
    """
    note = folder.parent / f"{folder.name}.json"
    asked = {"planner": given.planner, "settings": given.settings, "sittings": digest_of(sittings)}
    if note.exists():
        known = json.loads(note.read_text("utf-8"))
        if known["asked"] != asked:
            raise SystemExit(f"{note}: that library was made of something else or otherwise; give another --work")
        library = Library.open(folder, clock=clock_at(sittings[-1]), model=model)
        return Made(library, known["seqs"], [], known["flushes"])
    shutil.rmtree(folder, ignore_errors=True)
    library = Library.open(folder, create=True, model=model)
    with (folder / "infinimem.yaml").open("a", encoding="utf-8") as file:
        file.writelines(f"{pair.replace('=', ': ', 1)}\n" for pair in given.settings.split(",") if pair)
    switches = MAINTENANCE[maintenance]
    made = Made(library, [], [])
    for entries in sittings:
        library.clock = clock_at(entries)
        made.seqs.extend(library.write(list(entries)))
        if switches is not None:
            told = model.told if model else 0.0
            report = library.flush(planner=given.planner, **switches)
            made.flushes.append(flush_row(report, (model.told if model else 0.0) - told))
            if not given.quiet:
                print(f"{maintenance} {folder.name}: {json.dumps(made.flushes[-1], ensure_ascii=False)}", flush=True)
    note.write_text(json.dumps({"asked": asked, "seqs": made.seqs, "flushes": made.flushes}, indent=1), "utf-8")
    return made


def digest_of(values: object) -> str:
    """What tells a list of entries from others."""
    return hashlib.sha256(json.dumps(values, ensure_ascii=False).encode()).hexdigest()[:16]


def clock_at(entries: Sequence[Mapping[str, Any]]) -> Callable[[], datetime]:
    """A clock that stands at the time of the last entry, where it has one to the minute; else the real one."""
    try:
        moment = datetime.fromisoformat(entries[-1]["time"]).replace(tzinfo=UTC)
    except (KeyError, ValueError):
        return lambda: datetime.now(UTC)
    return lambda: moment


def flush_row(report: Report, told: float) -> dict[str, Any]:
    """What a flush did: steps by kind and outcome, why some were skipped, and the cost, the `told` seconds with it."""
    steps = Counter(f"{kind_of(outcome.step)} {outcome.status}" for outcome in report.outcomes)
    return {
        "calls": report.usage.calls,
        "tokens_in": report.usage.tokens_in,
        "tokens_out": report.usage.tokens_out,
        "seconds": round(report.seconds + told, 1),
        "steps": dict(sorted(steps.items())),
        "skipped": [f"{kind_of(outcome.step)}: {outcome.why}" for outcome in report.skipped],
        "failures": list(report.failures),
        "created": list(report.created),
    }


def kind_of(step: Step) -> str:
    """A step's name; of a retirement, why."""
    return step.why if isinstance(step, Retire) else type(step).__name__.lower()


def summed_up(maintenance: str, made: Sequence[Made]) -> dict[str, Any]:
    """All flushes of the libraries that were maintained alike."""
    rows = [row for each in made for row in each.flushes]
    steps: Counter[str] = Counter()
    for row in rows:
        steps.update(row["steps"])
    return {
        "maintenance": maintenance,
        "flushes": len(rows),
        "entries": sum(len(each.seqs) for each in made),
        "topics": sum(len(each.library.catalog()) for each in made),
        **{key: round(sum(row[key] for row in rows), 1) for key in ("calls", "tokens_in", "tokens_out", "seconds")},
        "steps": dict(sorted(steps.items())),
        "failures": [why for row in rows for why in row["failures"]],
        "skipped": [why for row in rows for why in row["skipped"]],
    }


def batches(entries: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Entries in order, as many at a time as make a flush due."""
    found: list[list[Mapping[str, Any]]] = [[]]
    size = 0
    for entry in entries:
        if size >= BUFFER:
            found.append([])
            size = 0
        found[-1].append(entry)
        size += estimate(entry["text"])
    return found


def part_of(asked: Sequence[Question], part: str, most: int, seed: int) -> list[Question]:
    """The questions of a part, at most so many: each category in turn, so that those without an answer are there."""
    start, step = {"all": (0, 1), "even": (0, 2), "odd": (1, 2)}[part]
    kept = list(asked[start::step])
    if not most or len(kept) <= most:
        return kept
    random.Random(seed).shuffle(kept)
    by_kind: dict[str, list[Question]] = {}
    for question in kept:
        by_kind.setdefault(question.kind if question.answerable else "", []).append(question)
    found: list[Question] = []
    while len(found) < most:
        found += [own.pop() for _, own in sorted(by_kind.items()) if own]
    return found[:most]


# Asking


def recall(asked: Sequence[tuple[Library, list[Question]]], k: int) -> float:
    """Mean share of a question's entries among the first k pieces of evidence."""
    shares = []
    for library, own in asked:
        for question in own:
            if question.seqs:
                shares.append(evidence_share(question, library.ask(question.text, reader="bm25", k=k), k))
                if shares[-1] < 1:
                    print(f"  {shares[-1]:.2f}  {question.text}")
    return sum(shares) / len(shares)


def evidence_share(question: Question, answer: Answer, k: int = 0) -> float:
    """The share of a question's entries among the pieces shown."""
    found = {seq for piece in answer.evidence[: k or None] for seq in piece.seqs}
    return sum(seq in found for seq in question.seqs) / len(question.seqs) if question.seqs else 0.0


def run(
    setting: Setting,
    asked: Sequence[tuple[Library, list[Question]]],
    given: argparse.Namespace,
    model: Once | None,
) -> dict[str, Any]:
    """Every question once, each told with its verdict; the row."""
    switches = Switches(**{setting.without: False}) if setting.without else None
    done = kept(given.keep)
    marked = []
    for at, library, question in in_turn(asked):
        key = [setting.name, given.k, given.planner, given.judge, given.sessions, given.settings, at, question.text]
        if tuple(key) in done:
            marked.append(done[tuple(key)])
            continue
        started, told = time.monotonic(), model.told if model else 0.0
        answer = library.ask(question.text, reader=setting.reader, k=given.k, switches=switches)
        mark = marks(question, answer, time.monotonic() - started + (model.told if model else 0.0) - told)
        if given.judge and question.answerable and setting.reader != "bm25":
            mark["judged"] = judged(question, answer)
        mark["library"] = at
        marked.append(mark)
        if given.keep and not answer.failed:
            with given.keep.open("a", encoding="utf-8") as file:
                file.write("\n" + json.dumps({"key": key, "mark": mark}, ensure_ascii=False))
        if not given.quiet:
            said = answer.text or answer.why or answer.failed or "; ".join(each.text for each in answer.evidence[:1])
            print(f"{setting.name} {mark['verdict']}: {question.text}\n    {said}", flush=True)
            print(f"    expected: {question.answer or 'nothing'}", flush=True)
    return summed(setting, marked)


def in_turn(asked: Sequence[tuple[Library, list[Question]]]) -> Iterator[tuple[int, Library, Question]]:
    """A question of each library, then the next of each."""
    for number in range(max((len(own) for _, own in asked), default=0)):
        for at, (library, own) in enumerate(asked):
            if number < len(own):
                yield at, library, own[number]


def kept(file: Path | None) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The marks of a run that was cut off; a last line that it did not finish does not count."""
    found = {}
    lines = file.read_text("utf-8").splitlines() if file is not None and file.exists() else []
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        found[tuple(row["key"])] = row["mark"]
    return found


def marks(question: Question, answer: Answer, seconds: float) -> dict[str, Any]:
    """All marks of one answer."""
    shown = [piece.text for piece in answer.evidence]
    written = answer.reader != "bm25"
    said = without_citations(answer.text) if written else " ".join(shown[:1])
    mark: dict[str, Any] = {
        "question": question.text,
        "kind": question.kind,
        "answerable": question.answerable,
        "verdict": verdict(question, answer) if written else "",
        "abstained": not answer.found and not answer.failed,
        "calls": answer.usage.calls,
        "tokens_in": answer.usage.tokens_in,
        "tokens_out": answer.usage.tokens_out,
        "seconds": seconds,
        "said": answer.text,
    }
    if question.answerable:
        expected = [question.answer]
        mark["f1"] = locomo_f1(said, expected, question.kind) if answer.found else 0.0
        mark["em"] = float(answer.found and exact(said, expected))
        mark["subem"] = float(answer.found and holds(said if written else "\n".join(shown), expected))
        mark["evidence"] = evidence_share(question, answer)
    return mark


def verdict(question: Question, answer: Answer) -> str:
    """right, wrong, false (an answer to what has none), abstained, or failed (the model did)."""
    if answer.failed:
        return "failed"
    if not question.answerable:
        return "false" if answer.found else "right"
    if not answer.found:
        return "abstained"
    wanted = set(content_words(question.answer)) - set(content_words(question.text))
    said = set(content_words(answer.text))
    told = {piece.place: set(piece.seqs) for piece in answer.evidence}
    cites = any(told.get(place, set()).intersection(question.seqs) for place in answer.citations)
    return "right" if cites and (wanted & said or not wanted) else "wrong"


def summed(setting: Setting, marked: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The row of a setting, with the marks of each question."""
    answerable = [mark for mark in marked if mark["answerable"]]
    others = [mark for mark in marked if not mark["answerable"]]
    counts = Counter(mark["verdict"] for mark in marked)

    def mean(rows: Sequence[dict[str, Any]], key: str, times: float = 1.0) -> float:
        return round(times * sum(float(row.get(key, 0.0)) for row in rows) / max(1, len(rows)), 2)

    kinds = sorted({mark["kind"] for mark in answerable})
    return {
        "setting": setting.name,
        "questions": len(marked),
        "unanswerable": len(others),
        **{key: mean(answerable, key, 100) for key in ("f1", "em", "subem", "evidence")},
        "abstained_rightly": mean(others, "abstained", 100),
        "abstained_wrongly": mean(answerable, "abstained", 100),
        "right": counts["right"],
        "wrong": counts["wrong"] + 2 * counts["false"],
        "false": counts["false"],
        "failed": counts["failed"],
        "judged": mean(answerable, "judged", 100) if any("judged" in mark for mark in answerable) else None,
        **{key: mean(marked, key) for key in ("calls", "tokens_in", "tokens_out", "seconds")},
        "by_kind": {
            kind: {key: mean([m for m in answerable if m["kind"] == kind], key, 100) for key in ("f1", "subem")}
            | {"questions": sum(mark["kind"] == kind for mark in answerable)}
            for kind in kinds
        },
        "marks": list(marked),
    }


def show_flushed(rows: Sequence[Mapping[str, Any]]) -> None:
    """What the flushes did and cost, a row a way of maintenance."""
    kinds = sorted({kind for row in rows for kind in row["steps"]})
    head = ["maintenance", "entries", "flushes", "topics", "calls", "tokens in", "out", "s", *kinds, "steps failed"]
    lines = [
        [row["maintenance"], row["entries"], row["flushes"], row["topics"]]
        + [round(row[key]) for key in ("calls", "tokens_in", "tokens_out", "seconds")]
        + [row["steps"].get(kind, 0) for kind in kinds]
        + [len(row["failures"])]
        for row in rows
    ]
    print()
    print(table(head, lines))


def compare(rows: list[dict[str, Any]]) -> None:
    """Each row less the first, question by question, with what 95 % of resamples within each library give."""
    pairs = [(row["marks"], rows[0]["marks"]) for row in rows[1:]]
    if not pairs or any([m["question"] for m in one] != [m["question"] for m in other] for one, other in pairs):
        return
    from benchmarks.scores import interval  # numpy, for who compares

    lines = []
    for row, (own, first) in zip(rows[1:], pairs, strict=True):
        row["less_first"] = {}
        for key in ("evidence", "subem", "f1", "judged", "abstained"):
            for answerable in (True, False):
                both = [(m, n) for m, n in zip(own, first, strict=True) if m["answerable"] == answerable]
                if not both or any(key not in mark for pair in both for mark in pair):
                    continue
                change = [float(m[key]) - float(n[key]) for m, n in both]
                low, high = interval(change, [str(m["library"]) for m, _ in both])
                name = key if answerable or key != "abstained" else "abstained rightly"
                row["less_first"][name] = [round(100 * sum(change) / len(change), 2), low, high]
        lines.append(
            [
                row["setting"],
                *(f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]" for mean, low, high in row["less_first"].values()),
            ]
        )
    names = list(dict.fromkeys(name for row in rows[1:] for name in row["less_first"]))
    print()
    print(table([f"less {rows[0]['setting']}", *names], lines))


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """The tables: one row a setting."""
    head = ["reader, library", "questions (without an answer)", "F1", "EM", "SubEM", "evidence"]
    head += ["abstained rightly, %", "wrongly, %", "right", "wrong", "false", "failed", "judge"]
    head += ["calls", "tokens in", "out", "s a question"]
    lines = [
        [row["setting"], f"{row['questions']} ({row['unanswerable']})", row["f1"], row["em"], row["subem"]]
        + [row["evidence"], row["abstained_rightly"], row["abstained_wrongly"]]
        + ([row[key] for key in ("right", "wrong", "false", "failed")] if row["calls"] else [""] * 4)
        + ["" if row["judged"] is None else row["judged"]]
        + [row["calls"], round(row["tokens_in"]), round(row["tokens_out"]), f"{row['seconds']:.2f}"]
        for row in rows
    ]
    print()
    print(table(head, lines))
    kinds = list(dict.fromkeys(kind for row in rows for kind in row["by_kind"]))
    print()
    print(
        table(
            ["F1 / SubEM by kind", *kinds],
            [
                [row["setting"]]
                + [f"{row['by_kind'][kind]['f1']:.1f} / {row['by_kind'][kind]['subem']:.1f}" for kind in kinds]
                for row in rows
            ],
        )
    )


# Judge and model


class Once:
    """The configured model, asked each request once: one of the very same words gets the reply that is on file.

    It is asked at temperature 0, so this is the reply it would give again. The usage is that of the first time;
    `told` are the seconds that were not waited for because of it.
    """

    def __init__(self, model: Model, file: Path) -> None:
        file.touch()
        self.model = Recording(model, file)
        self.known = Replay(file)
        self.told = 0.0

    def complete(self, request: Request) -> Reply:
        """The reply on file, or else the model's."""
        if digest(request) not in self.known.replies:
            reply = self.model.complete(request)
            self.known = Replay(self.model.path)
            return reply
        reply = self.known.complete(request)
        self.told += reply.usage.seconds
        return reply


def once(work: Path | None) -> Once | None:
    """The configured model with its replies kept in the folder; without a folder or a model, none in its place."""
    settings = load_settings()
    if work is None:
        return None
    work.mkdir(parents=True, exist_ok=True)
    if not is_configured(settings):
        return None
    key, timeout = os.environ.get("OPENAI_API_KEY", ""), settings.number("model.timeout")
    model = OpenAIModel(settings.text("model.name"), settings.text("model.url"), key, timeout=timeout)
    return Once(model, work / "replies.jsonl")


def judged(question: Question, answer: Answer) -> float:
    """1 if the judge says so, else 0; an abstention is not asked about."""
    if not answer.found or answer.failed or not answer.text:
        return 0.0
    from openai import OpenAI

    base, key = os.environ.get("JUDGE_BASE_URL"), os.environ.get("JUDGE_API_KEY")
    client = OpenAI(base_url=base or None, api_key=key or None, timeout=600)
    prompt = JUDGE.format(question=question.text, expected=question.answer, answer=without_citations(answer.text))
    reply = client.chat.completions.create(
        model=os.environ.get("JUDGE_MODEL") or os.environ["INFINIMEM_MODEL"],
        messages=[{"role": "user", "content": prompt}],
        temperature=0,
        max_tokens=5,
    )
    said = (reply.choices[0].message.content or "").strip().upper()
    return float(said.startswith("CORRECT"))


def model_told(file: Path | None) -> dict[str, Any]:
    """What is known of the model: the name asked for, what the server calls it, and the digest of its file."""
    from openai import OpenAI, OpenAIError

    told: dict[str, Any] = {"asked for": os.environ.get("INFINIMEM_MODEL", "")}
    try:
        told["the server's"] = [Path(model.id).name for model in OpenAI(timeout=30).models.list().data]
    except OpenAIError as error:
        told["the server's"] = f"not told ({type(error).__name__})"
    if file:
        with file.open("rb") as opened:
            told["sha256"] = hashlib.file_digest(opened, "sha256").hexdigest()
    return told


if __name__ == "__main__":
    sys.exit(main())
