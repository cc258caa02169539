"""Conversations with questions, read from files that the user has: none of these data is in the repository.

- LoCoMo (`locomo10.json` or a part of it), research licence: turns, categories and evidence as the data has them.
- LongMemEval (`longmemeval_s.json`, `_m`, `_oracle`): a haystack of its own for every question.
- The folder `…/longmemeval-s/processed` of the package memory-arena (MIT): 82 sessions that 16 questions share.
- MemoryAgentBench: its rows (context, questions, answers, metadata) as JSON, JSON lines or parquet. Its rows of
  LongMemEval have the sessions with their dates in the context, as a Python list, and mark the turns that answer.
  The others name no evidence: a passage counts as such if it holds an answer, and one is enough.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

DIA_ID = re.compile(r"D\d+:\d+")
LOCOMO = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "not answerable as asked"}
UNANSWERABLE = (LOCOMO[5], "abstention")
LONGEST_PASSAGE = 1_200
"""Characters of a passage that a context without turns is cut into."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One entry to be. `labels` is what it is evidence for: its own name, or the turns that a fact was drawn from."""

    labels: frozenset[str]
    session: str
    speaker: str
    text: str
    time: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """`evidence` holds labels of turns; with `any_of` one of them is enough. `answers` are all right."""

    text: str
    category: str
    answers: tuple[str, ...]
    evidence: frozenset[str]
    any_of: bool = False
    time: str = ""

    @property
    def answerable(self) -> bool:
        return self.category not in UNANSWERABLE


@dataclass(frozen=True, slots=True)
class Conversation:
    """`sessions` in order of time; `stratum` names what a bootstrap resamples within."""

    name: str
    sessions: tuple[tuple[Turn, ...], ...]
    questions: tuple[Question, ...]
    stratum: str

    @property
    def turns(self) -> list[Turn]:
        return [turn for session in self.sessions for turn in session]


def read(path: Path, kind: str = "turns") -> list[Conversation]:
    """What a file or folder holds, whichever of the data sets it is; `kind` facts = LoCoMo's extracted facts."""
    if path.is_dir():
        return [shared_haystack(path)]
    rows = rows_of(path)
    first = rows[0] if rows else {}
    if "conversation" in first:
        return [locomo(row, kind) for row in rows]
    if "haystack_sessions" in first:
        return [longmemeval(row) for row in rows]
    if "context" in first and "questions" in first:
        return [memory_agent_bench(row, number) for number, row in enumerate(rows, 1)]
    raise SystemExit(f"{path.name}: neither LoCoMo nor LongMemEval nor MemoryAgentBench")


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON, JSON lines or parquet file."""
    if path.suffix == ".parquet":
        try:
            from pyarrow import parquet  # only for who has parquet files
        except ImportError:
            raise SystemExit(f"{path.name}: reading parquet needs pyarrow; run: pip install pyarrow") from None
        rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
        return rows
    text = path.read_text(encoding="utf-8")
    lines = [line for line in text.split("\n") if line.strip()]  # words may hold what `splitlines` also cuts at
    if path.suffix == ".jsonl" or (len(lines) > 1 and is_whole(lines[0])):  # data sets write JSON lines as .json, too
        return [json.loads(line) for line in lines]
    found = json.loads(text)
    return list(found) if isinstance(found, list) else [found]


def is_whole(line: str) -> bool:
    """Whether a line is a JSON object of its own."""
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


# LoCoMo


def locomo(sample: Mapping[str, Any], kind: str = "turns", captions: bool = False) -> Conversation:
    """A conversation; of the evidence what is a turn that exists, malformed strings included."""
    talk = sample["conversation"]
    numbers = sorted(int(found[1]) for key in talk if (found := re.fullmatch(r"session_(\d+)", key)))
    sessions = []
    spoken: set[str] = set()
    for number in numbers:
        day = locomo_time(talk[f"session_{number}_date_time"])
        turns = talk[f"session_{number}"]
        spoken.update(turn["dia_id"] for turn in turns)
        rows = [(turn["speaker"], with_caption(turn, captions), turn["dia_id"]) for turn in turns]
        if kind == "facts":
            told = sample["observation"].get(f"session_{number}_observation", {})
            rows = [(who, fact[0], str(fact[1])) for who, facts in told.items() for fact in facts]
        session = tuple(
            Turn(frozenset(DIA_ID.findall(label)), f"session {number}", who, text, day) for who, text, label in rows
        )
        if session:
            sessions.append(session)
    questions = tuple(
        Question(
            row["question"],
            LOCOMO[row["category"]],
            (str(row.get("answer", row.get("adversarial_answer", ""))),),
            frozenset(label for text in row["evidence"] for label in DIA_ID.findall(text) if label in spoken),
        )
        for row in sample["qa"]
    )
    return Conversation(sample["sample_id"], tuple(sessions), questions, sample["sample_id"])


def with_caption(turn: Mapping[str, Any], captions: bool) -> str:
    """What was said; with captions, also what the image shown with it holds."""
    caption = turn.get("blip_caption", "")
    return f"{turn['text']} [{caption}]" if captions and caption else str(turn["text"])


def locomo_time(text: str) -> str:
    """`1:56 pm on 8 May, 2023` → `2023-05-08T13:56`."""
    return datetime.strptime(text.replace(",", ""), "%I:%M %p on %d %B %Y").isoformat(timespec="minutes")


# LongMemEval


def longmemeval(row: Mapping[str, Any]) -> Conversation:
    """One question with its haystack; the sessions in order of time."""
    ids = row.get("haystack_session_ids") or [f"s{number}" for number in range(len(row["haystack_sessions"]))]
    days = [longmemeval_time(day) for day in row.get("haystack_dates") or [""] * len(ids)]
    found = sorted(zip(days, ids, row["haystack_sessions"], strict=True), key=lambda each: each[0])
    sessions = tuple(
        session_turns(name, day, [(turn["role"], turn["content"]) for turn in turns]) for day, name, turns in found
    )
    marked = frozenset(
        f"{name}:{at}" for _, name, turns in found for at, turn in enumerate(turns) if turn.get("has_answer")
    )
    missing = row["question_id"].endswith("_abs")
    category = "abstention" if missing else row["question_type"]
    question = Question(
        row["question"],
        category,
        (str(row["answer"]),),
        frozenset() if missing else marked,
        time=longmemeval_time(row.get("question_date", "")),
    )
    return Conversation(row["question_id"], sessions, (question,), "longmemeval")


def shared_haystack(folder: Path) -> Conversation:
    """Sessions and questions as the package memory-arena ships them: all questions over all sessions."""
    rows = sorted(rows_of(folder / "sessions.jsonl"), key=lambda row: longmemeval_time(row["timestamp"]))
    sessions = tuple(
        session_turns(
            row["id"],
            longmemeval_time(row["timestamp"]),
            [(turn["role"], turn["content"]) for turn in row["turns"]],
        )
        for row in rows
    )
    marked = {
        row["id"]: [f"{row['id']}:{at}" for at, turn in enumerate(row["turns"]) if turn["metadata"].get("has_answer")]
        for row in rows
    }
    questions = []
    for row in rows_of(folder / "questions.jsonl"):
        truth = row["ground_truth"]
        named = frozenset(label for session in truth["supporting_session_ids"] for label in marked.get(session, ()))
        day = longmemeval_time(truth.get("valid_as_of", ""))
        questions.append(Question(row["question"], row["category"], (str(truth["answer"]),), named, time=day))
    return Conversation("longmemeval", sessions, tuple(questions), "longmemeval")


def session_turns(name: str, day: str, said: Sequence[tuple[str, str]]) -> tuple[Turn, ...]:
    return tuple(
        Turn(frozenset((f"{name}:{at}",)), name, role, text, day)
        for at, (role, text) in enumerate(said)
        if text.strip()
    )


def longmemeval_time(text: str) -> str:
    """`2023/05/20 (Sat) 02:21` → `2023-05-20T02:21`; "" where it is nothing of the kind."""
    found = re.match(r"(\d{4})/(\d\d)/(\d\d)(?: \([^)]*\))?(?: (\d\d:\d\d))?", text or "")
    return "-".join(found.group(1, 2, 3)) + (f"T{found[4]}" if found[4] else "") if found else ""


# MemoryAgentBench


def memory_agent_bench(row: Mapping[str, Any], number: int = 1) -> Conversation:
    """One context with all questions about it."""
    about = row.get("metadata") or {}
    source = str(about.get("source") or "context")
    answers = [(each,) if isinstance(each, str) else tuple(map(str, each)) for each in row["answers"]]
    kinds = list(about.get("question_types") or []) or [source] * len(answers)
    ids = list(about.get("question_ids") or []) or [""] * len(answers)
    days = list(about.get("question_dates") or []) or [""] * len(answers)
    haystack = about.get("haystack_sessions") or []
    sessions = dated_sessions(str(row["context"])) or shared_sessions(haystack) or passages(str(row["context"]))
    turns = [turn for session in sessions for turn in session]
    of_words = {(turn.speaker, turn.text): turn.labels for turn in turns}
    questions = []
    for at, (text, right, kind) in enumerate(zip(row["questions"], answers, kinds, strict=True)):
        named: frozenset[str] = frozenset()
        if len(haystack) == len(answers):
            named = named.union(*(of_words.get(words, ()) for words in marked_turns(haystack[at])))
        missing = str(ids[at]).endswith("_abs")
        any_of = not named and not missing
        if any_of:
            named = frozenset(label for turn in turns if holds_one(turn.text, right) for label in turn.labels)
        category, time = "abstention" if missing else str(kind), longmemeval_time(str(days[at]))
        questions.append(Question(text, category, right, frozenset() if missing else named, any_of, time))
    return Conversation(f"{source} {number}", sessions, tuple(questions), source)


def dated_sessions(context: str) -> tuple[tuple[Turn, ...], ...]:
    """The sessions of a context that is a Python list of `Chat Time: …` and turns in turn; nothing if it is no such."""
    if not context.startswith("["):
        return ()
    try:
        found = ast.literal_eval(context)
    except (ValueError, SyntaxError):
        return ()
    sessions = []
    day = ""
    for each in found:
        if isinstance(each, str):
            day = longmemeval_time(each.removeprefix("Chat Time:").strip())
        else:
            said = [(str(turn["role"]), str(turn["content"])) for turn in each]
            sessions.append(session_turns(f"s{len(sessions)}", day, said))
    return tuple(sorted(sessions, key=lambda session: session[0].time if session else ""))


def shared_sessions(haystack: Sequence[Sequence[Sequence[Mapping[str, Any]]]]) -> tuple[tuple[Turn, ...], ...]:
    """The sessions of all questions, each once."""
    known: dict[str, tuple[Turn, ...]] = {}
    for own in haystack:
        for session in own:
            said = [(str(turn["role"]), str(turn["content"])) for turn in session]
            key = json.dumps(said)
            if key not in known:
                known[key] = session_turns(f"s{len(known)}", "", said)
    return tuple(known.values())


def marked_turns(sessions: Sequence[Sequence[Mapping[str, Any]]]) -> Iterator[tuple[str, str]]:
    """Who said what in the turns that are marked as answering."""
    for session in sessions:
        for turn in session:
            if turn.get("has_answer"):
                yield str(turn["role"]), str(turn["content"])


def passages(context: str) -> tuple[tuple[Turn, ...], ...]:
    """A numbered list line by line; anything else in paragraphs of at most 1,200 characters, a `Document 3:` apart."""
    lines = [line.strip() for line in context.splitlines() if line.strip()]
    numbered = [found[1] for line in lines if (found := re.fullmatch(r"\d+\.\s+(.+)", line))]
    if len(numbered) > len(lines) / 2:
        lines = numbered
    part = ""
    turns: list[Turn] = []
    for line in lines:
        if found := re.fullmatch(r"(Document \d+):", line):
            part = found[1]
            continue
        for text in [line] if lines is numbered else cut(line):
            at = len(turns)
            turns.append(Turn(frozenset((f"p{at}",)), part or f"part {at // 20}", "", text))
    return (tuple(turns),)


def cut(line: str) -> Iterator[str]:
    """A paragraph in pieces that end where a sentence does, if one does."""
    while len(line) > LONGEST_PASSAGE:
        end = line.rfind(". ", 0, LONGEST_PASSAGE) + 1 or LONGEST_PASSAGE
        yield line[:end].strip()
        line = line[end:].strip()
    if line:
        yield line


def holds_one(text: str, answers: Sequence[str]) -> bool:
    """Whether one of the answers stands in a text, as words."""
    return any(
        answer.strip() and re.search(rf"(?<!\w){re.escape(answer.strip())}(?!\w)", text, re.I) for answer in answers
    )
