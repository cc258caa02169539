"""The check of an answer, without a model: which true statements it lets pass, and which untrue ones it stops.

    python benchmarks/checks.py [--json FILE]         # the sample library's questions
    python benchmarks/checks.py --locomo LOCOMO.json  # conversations of two people, research licence, not in here

The true statement is a question's expected answer, citing the entries that hold it, among the evidence that the bm25
reader finds. Untrue ones are made of true ones: another number, another name, the answer to another question, a number
that another piece of the evidence holds (now and then true as well); and of LoCoMo's category 5 the answer that would
be right if the question were about the other speaker. Which those are is told by the data, not by the check; a question
of category 5 may also be unanswerable for another reason.

LoCoMo answers are short forms, partly inferred by a person (`likely no`), so not all of them should pass.
The checks were looked at with conv-26, conv-41 and conv-43 (`--part seen`); the others are reported.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from report import table, write_json

from infinimem import Library
from infinimem.ask import Evidence, evidence_of
from infinimem.model import Hit
from infinimem.readers.cite import check

ROOT = Path(__file__).resolve().parent.parent
SEEN = ("conv-26", "conv-41", "conv-43")
K = 10
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "about the other speaker"}
FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")
LIMITS = (
    "untrue statements are made by rule, and some of them are true by chance; answers are short forms of a data set",
    "the evidence is what the bm25 reader finds, and the entries that the statement cites",
    "the sample's questions, and LoCoMo's seen part, were looked at while the check was made",
)
NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-zå-ø]{2,}")


@dataclass(frozen=True)
class Case:
    """A statement with the seqs it cites, and whether it is to pass. `kind` names the row it counts for."""

    kind: str
    question: str
    statement: str
    seqs: tuple[int, ...]
    true: bool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--part", choices=("seen", "reported", "all"), default="reported")
    parser.add_argument("--show", action="store_true", help="print what was decided wrongly, and why")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    decided: dict[tuple[bool, str], list[bool]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for library, cases in sets_of(Path(folder), given.locomo, given.part):
            for case in cases:
                pieces = shown(library, case)
                for judged, cited in (judgement(case, pieces), *misled(case, pieces)):
                    marks = "".join(f"[{at}]" for at in cited)
                    statement = f"{judged.statement.rstrip('.')} {marks}."
                    why = check(statement, pieces, judged.question)[0].why
                    right = (why == "") == judged.true
                    decided[judged.true, judged.kind].append(right)
                    if given.show and not right:
                        print(f"{judged.kind}: {judged.question}\n    {statement}\n    {why or 'passed'}")
    rows = [
        {"statements": kind, "true": true, "right": sum(outcomes), "of": len(outcomes),
         "%": 100 * sum(outcomes) / len(outcomes)}
        for (true, kind), outcomes in sorted(decided.items(), reverse=True)
    ]  # fmt: skip
    said = {True: "true ones passed", False: "untrue ones stopped"}
    cells = [(f"{said[bool(row['true'])]}, {row['statements']}", row["right"], row["of"], row["%"]) for row in rows]
    print(table(("", "right", "of", "%"), cells))
    write_json(given.json, "checks", rows, limits=LIMITS, packages=("tantivy",), part=given.part, pieces=K)


def shown(library: Library, case: Case) -> list[Evidence]:
    """The evidence for a question, with the entries that its statement cites."""
    pieces = list(library.ask(case.question, reader="bm25", k=K).evidence)
    there = {seq for piece in pieces for seq in piece.seqs}
    index = library.index()
    for seq in case.seqs:
        if seq not in there:
            pieces += [evidence_of(Hit(unit, 0.0)) for unit in index.standing(seq)]
    return pieces


def judgement(case: Case, pieces: Sequence[Evidence]) -> tuple[Case, list[int]]:
    """A case with the numbers of the pieces that its statement cites."""
    return case, [at for at, piece in enumerate(pieces, 1) if not set(case.seqs).isdisjoint(piece.seqs)]


def misled(case: Case, pieces: Sequence[Evidence]) -> Iterator[tuple[Case, list[int]]]:
    """Where the answer has a number, those that other pieces hold, as a careless reader takes them."""
    if not case.true or not FIGURE.search(case.statement):
        return
    right = set(FIGURE.findall(case.statement))
    for at, piece in enumerate(pieces[:K], 1):
        wrong = [figure for figure in FIGURE.findall(piece.text) if figure not in right]
        if wrong and set(case.seqs).isdisjoint(piece.seqs):
            yield replace(case, kind="a number from another entry", statement=wrong[0], true=False), [at]


def sets_of(folder: Path, locomo: Path | None, part: str) -> Iterator[tuple[Library, Sequence[Case]]]:
    """Each library with its cases."""
    if locomo is None:
        shutil.copytree(ROOT / "sample_library", folder / "sample")
        yield Library.open(folder / "sample"), sample_cases()
        return
    for conversation in json.loads(locomo.read_bytes()):
        name = conversation["sample_id"]
        if part == "all" or (part == "seen") == (name in SEEN):
            library = Library.open(folder / name, create=True)
            yield library, conversation_cases(library, conversation)


def sample_cases() -> list[Case]:
    """The sample library's answers, and what can be made of them."""
    sample = ROOT / "tools" / "sample"
    entries = [json.loads(line) for line in (sample / "entries.jsonl").read_text("utf-8").splitlines()]
    seqs = {entry["label"]: seq for seq, entry in enumerate(entries, 1) if entry.get("label")}
    rows = [json.loads(line) for line in (sample / "questions.jsonl").read_text("utf-8").splitlines()]
    rows = [row for row in rows if row["answer"]]
    found = []
    for at, row in enumerate(rows):
        named = tuple(seqs[label] for label in row["evidence"])
        answer = now_only(row["answer"])
        found.append(Case("sample", row["question"], answer, named, True))
        found += [Case(kind, row["question"], text, named, False) for kind, text in falsified(answer)]
        other = now_only(rows[(at + 7) % len(rows)]["answer"])
        found.append(Case("answer to another question", row["question"], other, named, False))
    return [*found, *crossed([case for case in found if case.true], ())]


def crossed(cases: Sequence[Case], people: Sequence[str]) -> Iterator[Case]:
    """The true answer to the next question about the same person (of `people`), in the place of a question's own."""
    for at, case in enumerate(cases):
        named = [name for name in people if name in case.question]
        for other in (*cases[at + 1 :], *cases[:at]):
            if set(other.seqs).isdisjoint(case.seqs) and [name for name in people if name in other.question] == named:
                cross = replace(other, question=case.question, true=False)
                yield replace(cross, kind="a false premise")
                yield replace(cross, kind="put together wrongly", seqs=(*other.seqs, *case.seqs))
                break


def now_only(answer: str) -> str:
    """The part of an expected answer that the entry of today holds: what was before stands in another."""
    return re.split(r"[;,] (?:before|it was|the offer|the tablets|sage green|since|seit)\b", answer)[0]


def falsified(answer: str) -> Iterator[tuple[str, str]]:
    """Untrue statements made of a true one."""
    number = re.search(r"\d+(?=\D*$)", answer)
    if number:
        wrong = str(int(number[0]) + 3).zfill(len(number[0]))
        yield "another number", answer[: number.start()] + wrong + answer[number.end() :]
    name = NAME.search(answer)
    if name:
        yield "another name", answer[: name.start()] + "Bartholomew" + answer[name.end() :]


def conversation_cases(library: Library, conversation: dict[str, object]) -> list[Case]:
    """Write a conversation turn by turn; its questions as cases."""
    from conversations import locomo

    seqs: dict[str, int] = {}
    for session in locomo(conversation, captions=True).sessions:
        written = library.write([{"text": turn.text, "source": turn.speaker, "time": turn.time} for turn in session])
        seqs |= {label: seq for turn, seq in zip(session, written, strict=True) for label in turn.labels}
    found = []
    asked = conversation["qa"]
    assert isinstance(asked, list)
    for row in asked:
        named = tuple(seqs[turn] for turn in re.findall(r"D\d+:\d+", " ".join(row["evidence"])) if turn in seqs)
        answer = str(row.get("answer", row.get("adversarial_answer", "")))
        if named and answer:
            true = row["category"] != 5
            found.append(Case(CATEGORIES[row["category"]], row["question"], answer, named, true))
            if true and row["category"] == 4:
                found += [Case(kind, row["question"], text, named, False) for kind, text in falsified(answer)]
    talk = conversation["conversation"]
    assert isinstance(talk, dict)
    plain = [case for case in found if case.true and case.kind in ("single-hop", "multi-hop")]
    return [*found, *crossed(plain, (talk["speaker_a"], talk["speaker_b"]))]


if __name__ == "__main__":
    main()
