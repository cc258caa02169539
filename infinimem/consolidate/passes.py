"""The lexical plan, pass by pass, each on the result of the one before; and plans given from outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from infinimem.config import Retention, Settings
from infinimem.consolidate.expiry import has_expired
from infinimem.consolidate.run import Finder, Run, prepare, siblings, spare_for, waits, with_seqs
from infinimem.errors import BadPlan
from infinimem.model import CURRENT, Create, Document, Entry, Extend, Join, Link, Outcome, Retire, Step, Unit
from infinimem.plan import lexical, rules
from infinimem.plan.paper import step_of
from infinimem.store.evidence import read_records
from infinimem.store.proposals import read_proposals
from infinimem.text.document import body_tokens, title_of
from infinimem.text.signature import parse_seqs, render_seqs
from infinimem.text.words import analyse

CANDIDATES = 8
TITLED_CANDIDATES = 3
LONG_ENOUGH = 4000
"""Characters of a conversation by which topics like it are looked for."""
SMALL_CATALOGUE = 64
"""Topics up to which each note is compared with CANDIDATES of them; beyond, with the one most like it (placing is
no worse by it: B-cubed .504-.507 with 1, 2 or 3)."""


def plan_lexically(
    run: Run,
    index: Finder,
    settings: Settings,
    rewrite: bool,
    splitting: bool,
    merging: bool,
    progress: Callable[[str, int, int], None],
) -> None:
    """All passes with the built-in planner, each on the result of the one before."""
    waiting = list(run.desk.waiting.values())
    if rewrite:
        progress("rewrite", 0, len(waiting))
        corrected = {seq for entry in waiting for seq in parse_seqs(entry.signature.get("supersedes"))}
        for step in lexical.duplicates(waiting):
            if step.by not in corrected:  # said, corrected and said again: the last word stands
                run.take(step)
    supersede_in_buffer(run)
    expire(run, settings)
    titled, untitled = lexical.part_titled(run.desk.waiting.values())
    talks, notes = lexical.part(untitled)
    taken = set(index.topics())
    place_titled(run, titled, index, taken, settings)
    for number, block in enumerate(talks):
        progress("route", number, len(talks) + 1)
        route_block(run, block, index, taken, settings)
    progress("route", len(talks), len(talks) + 1)
    place_notes(run, notes, index, taken, settings)
    progress("update", 0, 1)
    supersede_in_topics(run, index)
    expire_in_topics(run, index, settings)
    if splitting:
        progress("split", 0, 1)
        sort_odds(run, index, taken, settings)
        split_large(run, taken, settings)
    if merging:
        progress("merge", 0, 1)
        merge_small(run, index, taken, settings)
    link_what_is_named(run, index)


def link_what_is_named(run: Run, index: Finder) -> None:
    """Where a writer names another entry or a topic (`see #12`, `[[maya-work]]`), the new entry is linked to it."""
    topics: dict[str, str] = {}
    for entry in sorted(run.buffer.entries.values(), key=lambda entry: entry.seq):
        named = lexical.named_in(entry.text)
        here = run.desk.holding(entry.seq) if named else None
        if here is None:
            continue
        topics = topics or {topic.casefold(): topic for topic in (*index.topics(), *run.desk.documents)}
        for one in named:
            step = link_to(entry, one, topics, index)
            if step is None or step.to == here.topic:
                continue
            prepare(run, step, index)
            if not rules.violation(step, run.desk, run.gates):  # the name of nothing here: a room, an issue, a song
                run.take(step)


def link_to(entry: Entry, one: lexical.Named, topics: Mapping[str, str], index: Finder) -> Link | None:
    """The link from an entry to what it names; None where that is nothing that memory knows for sure."""
    if one.topic:
        is_word = any(letter.isalnum() for letter in one.topic)
        topic = topics.get(one.topic.casefold()) or (topics.get(lexical.slug_of(one.topic, ())) if is_word else None)
        return None if topic is None else Link(str(entry.seq), topic, one.relation)
    there = next(iter(index.standing(one.seq)), None)
    if there is None or one.seq >= entry.seq:
        return None
    if one.relation == "related" and not lexical.share_a_subject(entry.text, there.text):
        return None
    return Link(str(entry.seq), str(one.seq), one.relation)


def supersede_in_buffer(run: Run) -> None:
    """Corrections of entries that have not left CURRENT yet."""
    for entry in sorted(run.desk.waiting.values(), key=lambda entry: entry.seq):
        for seq in parse_seqs(entry.signature.get("supersedes")):
            if run.desk.buffered(seq) is not None:
                spare_for(run, seq)
                run.take(Retire(seq, entry.seq, "superseded"))


def supersede_in_topics(run: Run, index: Finder) -> None:
    """Where the writer said what an entry replaces, the old one leaves the visible surface, wherever it stands."""
    for entry in sorted(run.buffer.entries.values(), key=lambda entry: entry.seq):
        retired = {gone.seq for gone in run.desk.retired}
        olds = [seq for seq in parse_seqs(entry.signature.get("supersedes")) if seq not in run.buffer.entries]
        standing = {seq: index.standing(seq) for seq in olds if seq not in retired}
        records = read_records(run.root, [seq for seq, places in standing.items() if not places])
        for seq, places in standing.items():
            run.load(unit.topic for unit in places)
            if not places:
                record = records.get(seq)
                if record is not None and (record.entries or record.events):
                    run.outcomes.append(Outcome(Retire(seq, entry.seq, "superseded"), "no-op", "it is retired already"))
                    continue
            spare_for(run, seq)
            run.take(Retire(seq, entry.seq, "superseded"))


def overdue(run: Run, index: Finder) -> list[Retire]:
    """Replacements that no flush could make so far, and this one can.

    They are those that a writer said, and those of which a model was sure. What takes the old one's place had not
    begun, or there were conflict marks in the old one's document.
    """
    begun = [(unit, seq) for unit, seq in index.unsettled() if not waits(unit.time, run.now)]
    steps = [Retire(seq, unit.seqs[-1], "superseded") for unit, seq in begun]
    steps += held_up(run.root)
    for step in steps:
        prepare(run, step, index)
    return [step for step in steps if not rules.violation(step, run.desk, run.gates)]


def held_up(root: Path) -> list[Retire]:
    """The replacements among the proposals that nothing but a file that could not be changed stood against."""
    found: list[Retire] = []
    for row in read_proposals(root):
        with suppress(BadPlan):
            step = step_of(row.get("step"), "proposal") if row.get("held") else None
            found += [step] if isinstance(step, Retire) else []
    return found


def supersede_overdue(run: Run, index: Finder) -> None:
    """What could not be replaced before is replaced now; what still cannot was said then, and `check` names it."""
    for step in overdue(run, index):
        if not rules.violation(step, run.desk, run.gates):
            run.take(step)


def expire(run: Run, settings: Settings) -> None:
    """Buffered entries whose `expires` date has passed, or whom no retention rule keeps, go straight to evidence."""
    for entry in list(run.desk.waiting.values()):
        if has_expired(entry.signature.fields, datetime.fromisoformat(run.now), settings.retention):
            for seq in entry.seqs:
                spare_for(run, seq)
                run.take(Retire(seq, 0, "expired"))


def expire_in_topics(run: Run, index: Finder, settings: Settings) -> None:
    """Entries in topics whose `expires` date has passed, or whom no retention rule keeps, leave the visible surface."""
    for unit in expired_units(index, run.now, settings):
        run.load([unit.topic])
        for seq in unit.seqs:
            if seq not in run.desk.gone:  # replaced in this very run
                spare_for(run, seq)
                run.take(Retire(seq, 0, "expired"))


def expired_units(index: Finder, now: str, settings: Settings) -> list[Unit]:
    """What stands in topics although it is over."""
    units = [
        *index.expiring(),
        *(unit for rule in settings.retention if rule.do == "retire" for unit in aged(index, rule)),
    ]
    moment = datetime.fromisoformat(now)
    found = {
        (unit.path, unit.line): unit
        for unit in units
        if unit.topic != CURRENT and unit.seqs and has_expired(unit.fields, moment, settings.retention)
    }
    return list(found.values())


def aged(index: Finder, rule: Retention, *, retired: bool = False) -> Sequence[Unit]:
    """The entries that a retention rule may be about, visible ones or, on demand, retired ones."""
    return index.with_field(rule.where[0][0] if rule.where else "", retired=retired)


def to_forget(index: Finder, now: str, settings: Settings) -> list[int]:
    """The seqs that a retention rule wants forgotten, wherever they stand by now."""
    rules = [rule for rule in settings.retention if rule.do == "forget"]
    units = [unit for rule in rules for old in (False, True) for unit in aged(index, rule, retired=old)]
    moment = datetime.fromisoformat(now)
    gone = {seq for unit in units if has_expired(unit.fields, moment, rules, "forget") for seq in unit.seqs}
    return sorted(gone)


def route_block(run: Run, block: Sequence[Entry], index: Finder, taken: set[str], settings: Settings) -> None:
    """Find the document that a block belongs to, or make one."""
    text = "\n".join(entry.text for entry in block)
    near = dict(index.similar(text, CANDIDATES))
    run.load(near)
    made = [topic for topic in run.desk.documents if topic not in run.originals]
    candidates = [
        candidate(run, run.desk.documents[topic], near.get(topic, 0.0))
        for topic in [*near, *made]
        if topic in run.desk.documents and changeable(run.desk.documents[topic])
    ]
    for step in lexical.route(block, candidates, taken | set(run.desk.documents), settings.count("split.max_tokens")):
        outcome = run.take(step)
        if isinstance(step, Create) and outcome.status == "executed":
            taken.add(step.topic)


def place_titled(
    run: Run, titled: Sequence[lexical.Titled], index: Finder, taken: set[str], settings: Settings
) -> None:
    """Find for each titled conversation and note the document that it belongs to as a whole, or make one."""
    limit = settings.count("split.max_tokens")
    near: dict[str, float] = {}
    for told in titled:
        text = "\n".join([told.title, *(entry.text for entry in told.entries)])[:LONG_ENOUGH]
        near.update(index.similar(text, TITLED_CANDIDATES))
        near.update(dict.fromkeys(index.titled(told.entries[0].signature.get("title")), 0.0))
        slug = lexical.slug_of(told.title, ())
        near.update(dict.fromkeys([slug] if slug in taken else [], 0.0))
    run.load(near)
    whole: list[lexical.Titled] = []
    homes = lexical.homes_of(open_candidates(run))
    for told in titled:
        if not lexical.is_stream(told, homes.get(told.key, ()), limit):
            whole.append(told)
            continue
        for block in lexical.pieces_of_stream(told):
            here = lexical.homes_of(open_candidates(run)).get(told.key, ())
            names = taken | set(run.desk.documents)
            take_and_note(run, lexical.route(block, here, names, limit, under=told.title), taken)
    names = taken | set(run.desk.documents)
    fixed = [topic for topic, document in run.desk.documents.items() if rules.unmovable(document)]
    steps = lexical.gather(whole, open_candidates(run), frequencies(run, index), names, fixed, limit)
    take_and_note(run, steps, taken)


def open_candidates(run: Run) -> list[lexical.Candidate]:
    """The documents at hand that can be changed."""
    return [candidate(run, document, 0.0) for document in run.desk.documents.values() if changeable(document)]


def take_and_note(run: Run, steps: Sequence[Step], taken: set[str]) -> None:
    """Carry steps out; the ids that they make are taken from then on."""
    for step in steps:
        outcome = run.take(step)
        if isinstance(step, Create) and outcome.status == "executed":
            taken.add(step.topic)


def place_notes(run: Run, notes: Sequence[Entry], index: Finder, taken: set[str], settings: Settings) -> None:
    """Find for each independent note the document that it belongs to, or make one."""
    near: dict[str, float] = {}
    index.met(seq for note in notes for seq in parse_seqs(note.signature.get("supersedes")))  # all at once: see below
    count = CANDIDATES if len(taken) <= SMALL_CATALOGUE else 1
    for note in notes:
        for topic, score in index.similar(f"{note.text}\n{note.source}", count):
            near[topic] = max(score, near.get(topic, 0.0))
        for seq in parse_seqs(note.signature.get("supersedes")):
            unit = index.locate(seq)
            if unit is not None and unit.topic != CURRENT:
                near.setdefault(unit.topic, 0.0)
    run.load([*near, *sorted(topic for topic in taken if lexical.is_odds(topic))[-2:]])
    candidates = [
        candidate(run, document, near.get(topic, 0.0))
        for topic, document in run.desk.documents.items()
        if changeable(document)
    ]
    for step in lexical.place(
        notes, candidates, frequencies(run, index), taken | set(run.desk.documents), settings.count("split.max_tokens")
    ):
        outcome = run.take(step)
        if isinstance(step, Create) and outcome.status == "executed":
            taken.add(step.topic)


def frequencies(run: Run, index: Finder) -> lexical.Frequencies:
    """How common words are in the library, in what is being placed, too."""
    if not run.apart:
        return lexical.Frequencies(index.visible(), index.holding)
    if run.own is None:
        run.own = Counter(term for entry in run.buffer.entries.values() for term in set(analyse(entry.text)))
    own = run.own
    return lexical.Frequencies(index.visible() + len(run.buffer.entries), lambda term: index.holding(term) + own[term])


def changeable(document: Document) -> bool:
    """Whether the document is ours and can be understood."""
    return not document.is_guest and not document.blocking


def candidate(run: Run, document: Document, score: float) -> lexical.Candidate:
    """A document as the lexical planner sees it; described once for as long as it stays the same."""
    known = run.described.get(document.id)
    if known is None or known[0] is not document:
        known = (document, describe(document))
        run.described[document.id] = known
    return replace(known[1], score=score)


def describe(document: Document) -> lexical.Candidate:
    """A document as the lexical planner sees it."""
    return lexical.Candidate(
        document.id,
        title_of(document),
        str(document.header.fields.get("summary", "") or ""),
        body_tokens(document),
        0.0,
        tuple(block.headings[-1] for block in document.blocks if block.level > 1),
        document.entries,
    )


def sort_odds(run: Run, index: Finder, taken: set[str], settings: Settings) -> None:
    """Let odds and ends at hand go where they have come to belong."""
    for topic in [name for name in run.desk.documents if lexical.is_odds(name)]:
        document = run.desk.documents[topic]
        if not changeable(document):
            continue
        others = [
            candidate(run, other, 0.0)
            for name, other in run.desk.documents.items()
            if name != topic and changeable(other)
        ]
        names = taken | set(run.desk.documents)
        limit = settings.count("split.max_tokens")
        odds = candidate(run, document, 0.0)
        for step in lexical.plan_sort(odds, others, frequencies(run, index), names, limit, beside_prose(document)):
            if run.take(step).status != "executed":
                break


def beside_prose(document: Document) -> set[int]:
    """The entries that stand with a person's own prose under a heading: somebody put them together there."""
    entries = {at for entry in document.entries for at in range(entry.span.start, entry.span.stop)}
    arranged = [
        block.span
        for block in document.blocks
        if block.level > 1
        and any(at not in entries and document.lines[at].strip() for at in range(block.span.start + 1, block.span.stop))
    ]
    return {
        entry.seq for entry in document.entries if any(span.start <= entry.span.start < span.stop for span in arranged)
    }


def split_large(run: Run, taken: set[str], settings: Settings) -> None:
    """Split what has grown over the limit, until nothing is; let sections that became a subject stand alone."""
    limit = settings.count("split.max_tokens")
    pending = [topic for topic in run.desk.touched if topic in run.desk.documents]
    while pending:
        document = run.desk.documents[pending.pop(0)]
        if not changeable(document):
            continue
        names = taken | set(run.desk.documents)
        if body_tokens(document) > limit:
            step = lexical.plan_split(document, limit, names)
        else:
            of_many = lexical.is_talk(document.entries) and not lexical.is_titled(document.entries)
            step = lexical.plan_promote(document, names) if of_many else None
        if step is not None and run.take(step).status == "executed":
            taken.update(part.topic for part in step.parts)
            pending += [part.topic for part in step.parts]


def merge_small(run: Run, index: Finder, taken: set[str], settings: Settings) -> None:
    """Merge small documents that this run touched with what shares their scope."""
    small = settings.count("merge.max_tokens")
    limit = settings.count("split.max_tokens")
    smallest = index.smallest(CANDIDATES)
    for topic in list(run.desk.touched):
        document = run.desk.documents.get(topic)
        if document is None or not changeable(document):
            continue
        here = candidate(run, document, 1.0)
        if here.tokens >= small:
            continue
        if lexical.is_titled(document.entries):  # it has its place; only parts of one long conversation go together
            merge_parts(run, here, small, limit)
            continue
        text = "\n".join(entry.text for entry in document.entries)
        near = dict(index.similar(text, CANDIDATES))
        run.load([*near, *smallest])
        kin = siblings(run, topic)
        others = [
            candidate(run, run.desk.documents[name], near.get(name, 0.0))
            for name in dict.fromkeys([*near, *smallest, *run.desk.touched])
            if name not in {topic, *kin} and name in run.desk.documents and changeable(run.desk.documents[name])
        ]
        others = [other for other in others if other.topic in run.originals or not lexical.is_titled(other.entries)]
        steps: Sequence[Step]
        if lexical.is_talk(document.entries):
            step = lexical.plan_merge(here, others, small, limit)
            steps = [] if step is None else [step]
        else:
            names = taken | set(run.desk.documents)
            made = set(run.desk.documents) - set(run.originals)
            steps = lexical.plan_union(here, others, frequencies(run, index), small, limit, names, made)
        for one in steps:
            run.take(one)


def merge_parts(run: Run, here: lexical.Candidate, small: int, limit: int) -> None:
    """Merge a small part of a long conversation with the part most like it."""
    title = lexical.only_title(here.entries)
    if not title:
        return
    others = [one for one in open_candidates(run) if one.topic != here.topic]
    others = [one for one in others if lexical.only_title(one.entries) == title]
    step = lexical.plan_merge(here, others, small, limit)
    if step is not None:
        run.take(step)


def carry_out(run: Run, steps: Sequence[Step], index: Finder) -> None:
    """Carry out the steps of a given plan, in order."""
    for step in steps:
        if isinstance(step, Extend):
            step = without_placed(run, step)
            if not step.seqs:
                continue
        prepare(run, step, index)
        if not rules.violation(step, run.desk, run.gates):
            step = with_seqs(run, step)
        run.take(step)


def without_placed(run: Run, step: Extend) -> Extend:
    """The step without the entries that an earlier one placed: a repeated seq keeps its first place."""
    placed = tuple(seq for seq in step.seqs if seq in run.desk.placed)
    if placed:
        why = f"{render_seqs(placed)} has a place already"
        run.outcomes.append(Outcome(replace(step, seqs=placed), "skipped", why))
    return replace(step, seqs=tuple(seq for seq in step.seqs if seq not in placed))


def mentioned(steps: Iterable[Step]) -> set[int]:
    """Every buffered seq that some step of a plan names."""
    seqs: set[int] = set()
    for step in steps:
        match step:
            case Extend() | Join():
                seqs.update(step.seqs)
            case Retire():
                seqs.add(step.seq)
    return seqs


def place_unmentioned(run: Run, steps: Sequence[Step]) -> None:
    """Entries that a plan forgot are kept verbatim in the block of their nearest neighbour."""
    named = mentioned(steps)
    blocks = [
        outcome.step for outcome in run.outcomes if outcome.status == "executed" and isinstance(outcome.step, Extend)
    ]
    for seq in list(run.desk.waiting):
        if seq in named or not blocks:
            continue
        near = min(blocks, key=lambda step: min((abs(seq - other), other) for other in step.seqs))
        if near.topic in run.desk.documents:
            run.take(Extend(near.topic, near.heading, (seq,)))
