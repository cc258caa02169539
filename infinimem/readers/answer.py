"""The answer: written by a model from evidence, believed only as far as the evidence bears it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from infinimem.ask import Evidence
from infinimem.llm.port import Message, Model, Reply, Request
from infinimem.llm.prompts import harmless, prompt_for
from infinimem.llm.reply import THOUGHT
from infinimem.model import Usage
from infinimem.readers.cite import ABSENT, CITATION, NOT_THERE, check, finished, leads_on, statements
from infinimem.text.lines import cut_at_word
from infinimem.text.when import dates_meant

LONGEST_PIECE = 1500
"""Characters of a piece of evidence that the model sees."""
REPLY = 400
"""Tokens that an answer may have."""
LONGEST_ANSWER = 20_000
"""Characters of a reply that are looked at."""
REMINDER = "Write the same answer once more, with the number of its piece in brackets, like [1], after every sentence."


@dataclass(frozen=True, slots=True)
class Written:
    """An answer in which every statement cites `[topic:line]` of evidence that bears it out; or none, and `why`.

    `removed` counts citations of entries that do not exist or bear nothing out, `dropped` are statements without
    support.
    """

    text: str
    found: bool
    citations: tuple[str, ...] = ()
    removed: int = 0
    dropped: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)
    why: str = ""


@dataclass(slots=True)
class Sieve:
    """Takes an answer statement by statement and keeps what the evidence bears out."""

    question: str
    pieces: Sequence[Evidence]
    count: int
    hear: Callable[[str], None] | None = None
    kept: list[str] = field(default_factory=list)
    citations: dict[str, None] = field(default_factory=dict)
    removed: int = 0
    dropped: list[str] = field(default_factory=list)
    why: str = ""
    before: list[int] = field(default_factory=list)
    denies: bool = False
    denied: bool = False
    """Said at once, so that nothing after it counts."""
    lead: str = ""
    broken: bool = False
    rest: str = ""

    def take(self, piece: str) -> None:
        """More of the reply, as it comes."""
        self.rest += piece
        if "<think" in self.rest and "</think" not in self.rest:
            return
        done, self.rest = finished(THOUGHT.sub("", self.rest) if "<think" in self.rest else self.rest)
        for statement in done:
            self.judge(statement)

    def end(self) -> None:
        """The reply is over."""
        rest, self.rest = THOUGHT.sub("", self.rest), ""
        for statement, _ in statements(rest):
            self.judge(statement)

    def judge(self, statement: str) -> None:
        """Keep a statement, or drop it and remember why. What only leads on waits for what it leads to."""
        between = "\n" if self.broken or statement.startswith(("\n", "\r")) else " "
        self.broken = statement.endswith(("\n", "\r"))
        statement = statement.strip()
        if self.denied:
            return
        if NOT_THERE.search(statement):
            self.denies = True
            self.denied = not self.kept
            return
        if ABSENT.search(statement) and not CITATION.search(statement):
            self.denies = True
            return
        if leads_on(statement, self.pieces, self.question):
            self.lead += f"{between if self.lead or self.kept else ''}{statement}"
            return
        checked, self.before = check(statement, self.pieces, self.question, before=self.before, count=self.count)
        self.removed += checked.removed
        if checked.why:
            self.lead = ""
            if checked.text:
                self.dropped.append(checked.text)
                self.why = self.why or checked.why
            return
        said = f"{self.lead}{between if self.lead or self.kept else ''}{checked.text}"
        self.lead = ""
        self.kept.append(said)
        self.citations.update(dict.fromkeys(checked.citations))
        if self.hear is not None:
            self.hear(said)


def write_answer(
    question: str,
    evidence: Sequence[Evidence],
    model: Model,
    *,
    complete: bool = False,
    total: int = 0,
    hear: Callable[[str], None] | None = None,
) -> Written:
    """The model's answer to a question from these pieces, checked statement by statement.

    `complete` says that the pieces are all `total` entries that match, in order of time. `hear` is told what has
    passed the check, as it comes. Raises `ModelFailed`.
    """
    system, user = prompt_for(
        "answer",
        {
            "evidence": "\n".join(lines_of(evidence)) or "(none)",
            "count": counted(len(evidence), complete, total),
            "question": " ".join(question.split()),
        },
    )
    messages = (Message("system", system), Message("user", user))
    sieve = Sieve(question, evidence, total if complete else 0, hear)
    reply = ask(model, messages, sieve)
    usage = reply.usage
    if not sieve.kept and not sieve.denies and sieve.why in ("", "it cites no entry") and reply.text.strip():
        again = (*messages, Message("assistant", reply.text[:LONGEST_ANSWER]), Message("user", REMINDER))
        second = Sieve(question, evidence, total if complete else 0, hear)
        reply = ask(model, again, second)
        usage += reply.usage
        if second.kept or second.denies:
            sieve = second
    return written(sieve, usage)


def ask(model: Model, messages: tuple[Message, ...], sieve: Sieve) -> Reply:
    """One try: the reply goes through the sieve as it comes."""
    if sieve.hear is None:
        reply = model.complete(Request("answer", messages, max_tokens=REPLY))
        sieve.take(reply.text[:LONGEST_ANSWER])
    else:
        reply = model.complete(Request("answer", messages, max_tokens=REPLY, hear=sieve.take))
    sieve.end()
    return reply


def written(sieve: Sieve, usage: Usage) -> Written:
    """What is left in the sieve, as an answer."""
    dropped = tuple(sieve.dropped)
    if sieve.kept and not (sieve.denies and not sieve.citations):
        why = f"{len(dropped)} without support left out: {sieve.why}" if dropped else ""
        text = "".join(sieve.kept)
        return Written(text, True, tuple(sieve.citations), sieve.removed, dropped, usage, why)
    why = "the entries found do not answer it"
    if dropped and not sieve.denies:
        why = f"what the model wrote has no support: {sieve.why}"
    return Written("", False, (), sieve.removed, dropped, usage, why)


def lines_of(evidence: Sequence[Evidence]) -> list[str]:
    """The pieces as the model sees them: numbered, a line each, none of which can close the fence."""
    numbers = {(piece.library, seq): number for number, piece in enumerate(evidence, 1) for seq in piece.seqs}
    lines = []
    for number, piece in enumerate(evidence, 1):
        when = piece.time or (f"noted {piece.observed[:10]}" if piece.observed else "")
        text = cut_at_word("".join(char if char.isprintable() else " " for char in piece.text), LONGEST_PIECE)
        notes = [f"{said} = {date}" for said, date in dates_meant(text, piece.time or piece.observed)]
        if piece.retired:
            by = numbers.get((piece.library, piece.by), 0)
            notes.insert(0, f"{piece.retired}; replaced by {by}" if by else f"{piece.retired}: no longer true")
        if piece.holds_from:
            notes.insert(0, f"not yet true: only from {piece.holds_from} on")
        opposed = [numbers[one] for seq in piece.contradicts if (one := (piece.library, seq)) in numbers]
        notes += [f"contradicts {other}: only one of them can be true" for other in opposed]
        mark = f" ({'; '.join(notes)})" if notes else ""
        under = "" if piece.seqs else " > ".join(piece.headings)  # headings over entries are the planner's
        about = " · ".join(word for word in (piece.library, when, piece.source, under) if word)
        lines.append(harmless(f"[{number}] {about}{mark}: {text}"))
    return lines


def counted(shown: int, complete: bool, total: int) -> str:
    """A line that says whether the pieces are all there is."""
    if complete:
        return f"These are all {shown} entries that match, in order of time.\n"
    return f"{total} entries match; these are {shown} of them, in order of time.\n" if total > shown else ""
