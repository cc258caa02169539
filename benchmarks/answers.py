"""The sample library's own questions: the evidence that the bm25 reader finds, and the answers that a model gives.

    python benchmarks/answers.py --evidence-only
    python tools/small_model.py qwen -- python benchmarks/answers.py --reader agentic,hybrid,summary [--part even]

Evidence recall at 10: the share of a question's entries (by label, `tools/sample/questions.jsonl`) among the first ten
pieces, over the questions that have an answer. Answers are judged without a model: right if the expected answer's
content words that the question does not give away are there at least in part and a citation leads to one of the
expected entries; abstained if *not in memory*; else wrong. For a question without an answer, abstaining is right and
any answer counts as two wrong ones. This is coarse: read the answers, which are printed. Prompts and checks were
looked at with the even-numbered questions (`--part even`); report the odd ones.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from infinimem import Library
from infinimem.ask import Answer
from infinimem.text.words import content_words

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Question:
    """`seqs` are the entries that answer it, none where memory does not; `answer` what a person would say."""

    text: str
    kind: str
    answer: str
    seqs: tuple[int, ...]


def questions(folder: Path) -> list[Question]:
    """The questions with the seqs that their labels stand for: the library's entries have seqs in file order."""
    entries = [json.loads(line) for line in (folder / "entries.jsonl").read_text("utf-8").splitlines()]
    seqs = {entry["label"]: seq for seq, entry in enumerate(entries, 1) if entry.get("label")}
    rows = [json.loads(line) for line in (folder / "questions.jsonl").read_text("utf-8").splitlines()]
    return [
        Question(row["question"], row["kind"], row["answer"] or "", tuple(seqs[label] for label in row["evidence"]))
        for row in rows
    ]


def recall(library: Library, asked: list[Question], k: int) -> float:
    """Mean share of a question's entries among the first k pieces of evidence."""
    shares = []
    for question in asked:
        if question.seqs:
            answer = library.ask(question.text, reader="bm25", k=k)
            found = {seq for piece in answer.evidence for seq in piece.seqs}
            shares.append(sum(seq in found for seq in question.seqs) / len(question.seqs))
            if shares[-1] < 1:
                print(f"  {shares[-1]:.2f}  {question.text}")
    return sum(shares) / len(shares)


def verdict(question: Question, answer: Answer) -> str:
    """right, wrong, false (an answer to what has none), abstained, or failed (the model did)."""
    if answer.failed:
        return "failed"
    if not question.seqs:
        return "false" if answer.found else "right"
    if not answer.found:
        return "abstained"
    wanted = set(content_words(question.answer)) - set(content_words(question.text))
    said = set(content_words(answer.text))
    told = {piece.place: set(piece.seqs) for piece in answer.evidence}
    cites = any(told.get(place, set()).intersection(question.seqs) for place in answer.citations)
    return "right" if cites and (wanted & said or not wanted) else "wrong"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, default=ROOT / "sample_library")
    parser.add_argument("--questions", type=Path, default=ROOT / "tools" / "sample", help="folder with both files")
    parser.add_argument("--reader", default="agentic", help="agentic, hybrid, summary, bm25, several by comma")
    parser.add_argument("--part", choices=("all", "odd", "even"), default="all")
    parser.add_argument("--evidence-only", action="store_true")
    parser.add_argument("-k", type=int, default=10)
    given = parser.parse_args()
    asked = questions(given.questions)
    start, step = {"all": (0, 1), "even": (0, 2), "odd": (1, 2)}[given.part]
    asked = asked[start::step]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "memory")
        shutil.copytree(given.library, copy)
        library = Library.open(copy)
        if given.evidence_only:
            print(f"evidence recall at {given.k}: {recall(library, asked, given.k):.3f}")
            return
        for reader in given.reader.split(","):
            run(library, reader, asked)


def run(library: Library, reader: str, asked: list[Question]) -> None:
    """Every question once, each told with its verdict."""
    counts: Counter[str] = Counter()
    tokens = calls = 0
    started = time.monotonic()
    for question in asked:
        answer = library.ask(question.text, reader=reader)
        kind = verdict(question, answer)
        counts[kind] += 1
        tokens += answer.usage.tokens_in + answer.usage.tokens_out
        calls += answer.usage.calls
        print(f"{reader} {kind}: {question.text}\n    {answer.text or answer.why or answer.failed}", flush=True)
        if question.answer:
            print(f"    expected: {question.answer}", flush=True)
    wrong = counts["wrong"] + 2 * counts["false"]
    seconds = time.monotonic() - started
    print(
        f"{reader}: right {counts['right']}, wrong {wrong} (false answers {counts['false']}, each counted twice), "
        f"abstained {counts['abstained']}, failed {counts['failed']} of {len(asked)}; "
        f"{calls} calls, {tokens:,} tokens, {seconds:.0f} s",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
