"""The model's plan, pass by pass. The model names entries and says what becomes of them; everything else is rule.

Each pass asks, reads, and takes steps like any planner's. What the model cannot or may not do is planned without
it, or with `on_failure: keep` stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from infinimem.access.sight import Sight
from infinimem.config import Settings
from infinimem.consolidate.older import Likeness, older_ones
from infinimem.consolidate.passes import (
    CANDIDATES,
    changeable,
    expire,
    expire_in_topics,
    link_what_is_named,
    place_notes,
    route_block,
    split_large,
    supersede_in_buffer,
    supersede_in_topics,
)
from infinimem.consolidate.replies import (
    NEW,
    REWRITE,
    SPLIT,
    UPDATE,
    Block,
    Draft,
    Joined,
    Judged,
    Move,
    Pair,
    Reading,
    Route,
    label,
    merge_schema,
    read_draft,
    read_judged,
    read_merges,
    read_moves,
    read_routes,
    read_summaries,
    route_schema,
    summary_schema,
)
from infinimem.consolidate.run import Finder, Run, prepare, seqs_of, siblings, with_seqs
from infinimem.consolidate.thinking import Thinker, data, entry_line, portions
from infinimem.llm.prompts import load_prompt
from infinimem.model import (
    CURRENT,
    Create,
    Divide,
    Document,
    Entry,
    Extend,
    Join,
    Link,
    Merge,
    Outcome,
    Part,
    Retire,
    Signature,
    Split,
    Summarise,
    Unit,
)
from infinimem.plan import lexical, rules
from infinimem.plan.desk import is_pinned
from infinimem.plan.lexical.weigh import subject_terms
from infinimem.text.document import body_tokens, title_of
from infinimem.text.lines import cut_at_word
from infinimem.text.tokens import estimate
from infinimem.text.words import analyse

Progress = Callable[[str, int, int], None]
Pairs = list[tuple[Entry, str]]
"""A new entry, then the older ones that it may replace, each with the page it stands on."""

TOPICS_SHOWN = 16
"""Pages that a route may choose from, beside those made in this run: a small model loses its way among more."""
HINTS = 3
"""Pages that a block is said to be like."""
BLOCKS_ASKED = 16
"""Blocks that one call routes."""
DIGEST = 180
"""Characters of a block by which it is routed."""
SUMMARY_SHOWN = 120
LONGEST_PAGE = 280
"""Tokens of a page that its summary is written from: the summary so far, and what is new."""
STRANGE_SHOWN = 20
LONGEST_TITLE = 7
"""Words."""
MANY, ALL_BUT = 8, 0.9
"""New entries that a model was asked about, and the share of them that replaces something, from which on it is not
believed: of facts of which most change again and again three quarters do (benchmarks/revision.py)."""
DOUBT = 0.5
"""The confidence that is left then."""
LIKELY_BLOCK = 4
"""Independent notes that a model puts into one block, for an estimate."""
SUMMARY_REPLY = 110
"""Tokens of one summary as JSON."""


@dataclass(slots=True)
class Planning:
    """What every pass needs."""

    run: Run
    index: Finder
    settings: Settings
    thinker: Thinker
    taken: set[str]
    progress: Progress
    sight: Sight
    divisions: list[Divide] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)

    @property
    def keeps(self) -> bool:
        """Whether what the model could not plan stays where it is."""
        return self.settings.text("on_failure") == "keep"


def plan_by_model(plan: Planning, *, rewrite: bool, splitting: bool, merging: bool) -> None:
    """All passes with a model, each on the result of the one before; what it may not see is planned without it."""
    run, index, settings, thinker, progress = plan.run, plan.index, plan.settings, plan.thinker, plan.progress
    supersede_in_buffer(run)
    expire(run, settings)
    waiting = [entry for entry in run.desk.waiting.values() if plan.sight.shows(entry)]
    unseen = [entry for entry in run.desk.waiting.values() if not plan.sight.shows(entry)]
    lines = [entry_line(entry) for entry in waiting]
    per_line = 12  # tokens of the reply: a seq, and its share of block and heading
    parts = portions(lines, thinker.room("rewrite", 400), per_line)
    for number, part in enumerate(parts):
        progress("rewrite", number, len(parts))
        entries = [waiting[at] for at in part]
        draft = rewrite_part(plan, entries, [lines[at] for at in part])
        if draft is None:
            without_model(plan, entries)
            continue
        blocks = carry_out_draft(plan, draft, rewrite=rewrite)
        for first in range(0, len(blocks), BLOCKS_ASKED):
            progress("route", number, len(parts))
            route_blocks(plan, blocks[first : first + BLOCKS_ASKED])
    place_lexically(plan, unseen)
    progress("update", 0, 1)
    supersede_in_topics(run, index)
    update(plan)
    divide(plan)
    expire_in_topics(run, index, settings)
    if splitting:
        progress("split", 0, 1)
        split(plan)
    if merging:
        progress("merge", 0, 1)
        merge(plan)
    progress("summary", 0, 1)
    summarise(plan)
    take_links(plan)
    link_what_is_named(run, index)


# rewrite


def rewrite_part(plan: Planning, entries: Sequence[Entry], lines: Sequence[str]) -> Draft | None:
    """The part of the buffer in blocks, as the model groups it."""
    known = {seq: entry.seq for entry in entries for seq in entry.seqs}
    return plan.thinker.ask(
        "rewrite",
        {"entries": data(lines)},
        REWRITE,
        lambda value: read_draft(value, known),
        reply_tokens=400 + 12 * len(entries),
        likely=lambda: likely_draft(entries),
    )


def likely_draft(entries: Sequence[Entry]) -> dict[str, object]:
    """A reply such as a model may give: for an estimate."""
    talks, notes = lexical.part(list(entries))
    blocks = [*talks, *(notes[at : at + LIKELY_BLOCK] for at in range(0, len(notes), LIKELY_BLOCK))]
    rows = [{"topic": "some subject", "heading": "a side of it", "seqs": [e.seq for e in block]} for block in blocks]
    return {"blocks": rows, "duplicates": [], "corrections": [], "joins": [], "divisions": []}


def without_model(plan: Planning, entries: Sequence[Entry]) -> None:
    """What the model could not sort: the lexical planner does, or it stays in CURRENT."""
    if not plan.keeps:
        place_lexically(plan, entries)


def place_lexically(plan: Planning, entries: Sequence[Entry]) -> None:
    """Have the lexical planner place entries, as far as they still wait."""
    waiting = [entry for entry in entries if plan.run.desk.waiting.get(entry.seq) is entry]
    talks, notes = lexical.part(waiting)
    for block in talks:
        route_block(plan.run, block, plan.index, plan.taken, plan.settings)
    place_notes(plan.run, notes, plan.index, plan.taken, plan.settings)


def carry_out_draft(plan: Planning, draft: Draft, *, rewrite: bool) -> list[Block]:
    """Retire and join what the draft says; give the blocks of what is still waiting."""
    run = plan.run
    if draft.strange:
        step = Extend("", "", draft.strange[:STRANGE_SHOWN])
        run.outcomes.append(Outcome(step, "skipped", "the model named entries that are not in the buffer"))
    if rewrite:
        for pair in draft.pairs:
            take_pair(plan, pair)
        for join in draft.joins:
            take_join(run, join, draft.blocks)
        plan.divisions += draft.divisions
    blocks = []
    for block in draft.blocks:
        seqs = tuple(seq for seq in block.seqs if seq in run.desk.waiting)
        if seqs:
            blocks.append(Block(block.topic, block.heading, seqs))
    return blocks


def take_pair(plan: Planning, pair: Pair) -> None:
    """Retire what another entry replaces or repeats, if a rule does not forbid it."""
    run = plan.run
    gone = {step.seq: step for step in run.desk.retired}
    old = pair.old
    while old in gone and gone[old].why == "duplicate":  # what is said of it is said of the one that stays
        old = gone[old].by
    if old == pair.new:
        return
    if pair.relation == "repeats":
        step = Retire(pair.new, old, "duplicate", pair.conf)
    else:
        step = Retire(old, pair.new, "superseded", pair.conf)
    late = next((seq for seq in (step.seq, *([step.by] if step.why == "duplicate" else [])) if seq in gone), 0)
    if late:
        run.outcomes.append(Outcome(step, "no-op", f"{late} is retired already"))
        return
    prepare(run, step, plan.index)
    run.take(step)


def take_join(run: Run, join: Joined, blocks: Sequence[Block]) -> None:
    """Make one line of several waiting entries of one block."""
    step = Join(join.seqs, join.text.strip(), join.conf)
    if any(gone.seq in join.seqs for gone in run.desk.retired):
        run.outcomes.append(Outcome(step, "skipped", "one of them has just been retired"))
    elif not any(set(join.seqs) <= set(block.seqs) for block in blocks):
        run.outcomes.append(Outcome(step, "skipped", "joins entries of different blocks"))
    else:
        run.take(step)


# route


def route_blocks(plan: Planning, blocks: Sequence[Block]) -> None:
    """Put each block into the document that the model names, or into a new one."""
    run = plan.run
    contents = [[run.desk.waiting[seq] for seq in block.seqs] for block in blocks]
    nears = [near_topics(plan, held) for held in contents]
    pages = routable(plan, nears)
    topics = list(pages)
    rows = [topic_row(page) for page in pages.values()]
    digests = [
        digest(number, block, held, [topic for topic in near if topic in topics])
        for number, (block, held, near) in enumerate(zip(blocks, contents, nears, strict=True), 1)
    ]
    routes = plan.thinker.ask(
        "route",
        {"topics": data(rows), "blocks": data(digests)},
        route_schema(topics),
        lambda value: read_routes(value, len(blocks), topics),
        reply_tokens=200 + 45 * len(blocks),
        likely=lambda: {
            "routes": [
                {"block": number, "topic": NEW, "title": "some subject", "heading": "a side of it"}
                for number in range(1, len(blocks) + 1)
            ]
        },
    )
    made: dict[str, str] = {}
    for number, (block, held) in enumerate(zip(blocks, contents, strict=True), 1):
        route = (routes or {}).get(number)
        if route is None:
            if routes is not None:
                plan.thinker.failures.append(f"route: the model found no place for {block.topic or 'a block'!r}")
            without_model(plan, held)
            continue
        topic = place_of(plan, route, block, made)
        if topic:
            run.take(Extend(topic, route.heading or ("" if route.topic == NEW else block.heading), block.seqs))


def near_topics(plan: Planning, held: Sequence[Entry]) -> dict[str, float]:
    """The topics whose entries are most like a block's, the likest first and 1.0."""
    found = plan.index.similar("\n".join(f"{entry.text} {entry.source}" for entry in held), CANDIDATES)
    top = found[0][1] if found else 1.0
    return {topic: score / top for topic, score in found}


def routable(plan: Planning, nears: Sequence[dict[str, float]]) -> dict[str, Document]:
    """The topics that blocks may go to, as the model may see them: those most like one of them, and this run's own."""
    run = plan.run
    best: dict[str, float] = {}
    for near in nears:
        for topic, score in near.items():
            best[topic] = max(best.get(topic, 0.0), score)
    # each block's own likest page first, then what is like several
    first = dict.fromkeys(next(iter(near)) for near in nears if near)
    rest = sorted(best, key=lambda topic: (-best[topic], topic))
    likest = list(dict.fromkeys([*first, *rest]))[: max(TOPICS_SHOWN, len(first))]
    run.load(likest)
    made = [topic for topic in run.desk.documents if topic not in run.originals][-TOPICS_SHOWN:]
    found = [
        run.desk.documents[topic] for topic in dict.fromkeys([*sorted(likest), *made]) if topic in run.desk.documents
    ]
    shown = [(document.id, plan.sight.of(document)) for document in found if changeable(document)]
    return {topic: page for topic, page in shown if page is not None}


def topic_row(document: Document) -> str:
    """A page as a route sees it: `id: summary (headings)`."""
    headings = [block.headings[-1] for block in document.blocks if block.level > 1][:8]
    summary = str(document.header.fields.get("summary", "") or "") or title_of(document)
    return f"{document.id}: {cut_at_word(summary, SUMMARY_SHOWN)}" + (
        f" ({', '.join(dict.fromkeys(headings))})" if headings else ""
    )


def digest(number: int, block: Block, entries: Sequence[Entry], near: Sequence[str]) -> str:
    """A block as a route sees it."""
    words = " / ".join(entry.text for entry in entries)
    sources = ", ".join(dict.fromkeys(entry.source for entry in entries if entry.source))
    hint = f" (pages with like words: {', '.join(near[:HINTS])})" if near else ""
    return f"block {number}: {block.topic} / {block.heading} [{sources}]: {cut_at_word(words, DIGEST)}{hint}"


def place_of(plan: Planning, route: Route, block: Block, made: dict[str, str]) -> str:
    """The topic that a route leads to, made if it is new; "" where it cannot be."""
    if route.topic != NEW:
        return route.topic
    run = plan.run
    held = [run.desk.waiting[seq] for seq in block.seqs]
    named = [title for title in (route.title, block.topic) if is_title(title) and not is_copied(title, held)]
    title = named[0] if named else lexical.title_of(held, [])
    known = made.get(title.casefold())
    if known:
        return known
    topic = lexical.slug_of(title, plan.taken | set(run.desk.documents))
    if run.take(Create(topic, title)).status != "executed":
        return ""
    plan.taken.add(topic)
    made[title.casefold()] = topic
    return topic


def is_title(text: str) -> bool:
    """Whether a text can be a page's name; small models give the whole entry for one."""
    return 0 < len(text.split()) <= LONGEST_TITLE


def is_copied(title: str, entries: Sequence[Entry]) -> bool:
    """Whether a title comes from a prompt's example and not from the entries: what small models do."""
    said = {term for entry in entries for term in analyse(entry.text)}
    shown = load_prompt("rewrite") + load_prompt("route")
    return f'"{title}"' in shown and said.isdisjoint(analyse(title))


# update


def update(plan: Planning) -> None:
    """Have the model judge, for every new entry, the older visible ones that it may replace, wherever they stand."""
    asked = candidates_for_update(plan)
    if not asked:
        return
    asked.sort(key=lambda pairs: (pairs[0][1], pairs[0][0].seq))  # what shares its older ones shares a batch
    lines = {entry.seq: entry_line(entry) for pairs in asked for entry, _ in pairs}
    room = plan.thinker.room("update", 300)
    batches: list[list[Pairs]] = [[]]
    seen: set[int] = set()
    used = 0
    for pairs in asked:
        cost = pair_cost(pairs, lines, seen)
        if batches[-1] and used + cost > room:
            batches.append([])
            seen, used = set(), 0
            cost = pair_cost(pairs, lines, seen)
        batches[-1].append(pairs)
        seen.update(entry.seq for entry, _ in pairs)
        used += cost
    changes: list[Pair] = []
    for number, batch in enumerate(batches):
        plan.progress("update", number, len(batches))
        judged = judge(plan, batch, lines)
        changes += judged.changes
        plan.links += judged.links
    for pair in sorted(doubted(plan, changes, len(asked)), key=lambda pair: (pair.new, pair.old)):  # as it was said
        take_pair(plan, pair)


def doubted(plan: Planning, changes: Sequence[Pair], asked: int) -> list[Pair]:
    """The changes, with little confidence where the model lets nearly every new entry replace something.

    A small model fills in the form instead of judging: of a talk it retires two turns in five, each time as sure as
    the example in its prompt. What it said waits for a person then, as whatever a gate holds back.
    """
    gate = plan.run.gates.supersede
    new = {pair.new for pair in changes if pair.relation == "replaces" and pair.conf >= gate}
    if gate <= DOUBT or asked < MANY or len(new) < ALL_BUT * asked:  # so low a gate believes whatever is said
        return list(changes)
    plan.thinker.failures.append(
        f"update: the model lets {len(new)} of {asked} new entries replace older ones, too many to be judged; "
        "none did, see: infinimem review"
    )
    return [replace(pair, conf=min(pair.conf, DOUBT)) if pair.relation == "replaces" else pair for pair in changes]


def likely_changes(count: int) -> dict[str, object]:
    """A reply such as a model may give: for an estimate."""
    return {"changes": [{"new": 1, "old": 1, "relation": "replaces", "conf": 0.95}] * (count // 8), "links": []}


def take_links(plan: Planning) -> None:
    """Link what the model says belongs together, as far as both still stand; the surest first."""
    gone = {step.seq for step in plan.run.desk.retired}
    for step in sorted(plan.links, key=lambda step: (-step.conf, int(step.source), int(step.to))):
        if gone.isdisjoint((int(step.source), int(step.to))):
            prepare(plan.run, step, plan.index)
            plan.run.take(step)


def divide(plan: Planning) -> None:
    """Divide entries that hold several facts, as far as they stand on a page and nothing replaced them."""
    gone = {step.seq for step in plan.run.desk.retired}
    for step in plan.divisions:
        if step.seq in gone or plan.run.desk.holding(step.seq) is None:
            continue
        if rules.violation(step, plan.run.desk, plan.run.gates):
            plan.run.take(step)
        else:
            plan.run.take(with_seqs(plan.run, step))


def pair_cost(pairs: Pairs, lines: dict[int, str], seen: set[int]) -> int:
    """Tokens that a new entry and its older ones add to a batch that shows some of them already; the reply's too."""
    return 35 + sum(3 + (0 if entry.seq in seen else estimate(lines[entry.seq]) + 1) for entry, _ in pairs)


def candidates_for_update(plan: Planning) -> list[Pairs]:
    """For each new entry that may replace something: it, then the older ones, each with where it stands."""
    run = plan.run
    language = plan.settings.text("language")
    likeness = Likeness(plan.index)
    gone = {step.seq for step in run.desk.retired}
    standing = {entry.seq: entry for document in run.desk.documents.values() for entry in document.entries}
    asked = []
    for entry in run.buffer.entries.values():
        new = standing.get(entry.seq) or run.desk.waiting.get(entry.seq)
        if new is None or entry.seq in gone or not may_be_shown(plan, new):
            continue
        older = older_ones(entry, plan.index, likeness, language, gone)
        older = [unit for unit in older if may_be_shown(plan, as_entry(unit))]
        if older:
            asked.append([(new, new.topic), *((as_entry(unit), unit.topic) for unit in older)])
    return asked


def may_be_shown(plan: Planning, entry: Entry) -> bool:
    """Whether the model may see an entry and the name of the page it stands on."""
    if not plan.sight or not plan.sight.shows(entry) or entry.topic == CURRENT:
        return plan.sight.shows(entry)
    plan.run.load([entry.topic])
    page = plan.run.desk.documents.get(entry.topic)
    return page is not None and plan.sight.of(page) is not None


def as_entry(unit: Unit) -> Entry:
    """What the index knows of an entry, as one."""
    return Entry(unit.topic, Signature(unit.seqs, unit.fields), unit.text)


def judge(plan: Planning, batch: Sequence[Pairs], lines: dict[int, str]) -> Judged:
    """What the model says of one batch of pairs."""
    pages: dict[str, set[int]] = {}
    for pairs in batch:
        for entry, where in pairs:
            pages.setdefault(where, set()).add(entry.seq)
    shown = [row for where, seqs in pages.items() for row in (f"on {where}:", *(lines[seq] for seq in sorted(seqs)))]
    rows = [f"{pairs[0][0].seq}: {', '.join(str(entry.seq) for entry, _ in pairs[1:])}" for pairs in batch]
    asked = {(pairs[0][0].seq, entry.seq) for pairs in batch for entry, _ in pairs[1:]}
    judged = plan.thinker.ask(
        "update",
        {"entries": data(shown), "pairs": "\n".join(rows)},
        UPDATE,
        lambda value: read_judged(value, asked),
        reply_tokens=300 + 25 * len(batch),
        likely=lambda: likely_changes(len(batch)),
    )
    return judged or Judged()


# split


def split(plan: Planning) -> None:
    """Cut what has grown over the limit; where the model does not, the lexical planner or nobody."""
    run = plan.run
    limit = plan.settings.count("split.max_tokens")
    pending = [topic for topic in run.desk.touched if topic in run.desk.documents]
    while pending:
        document = run.desk.documents[pending.pop(0)]
        if not changeable(document) or body_tokens(document) <= limit:
            continue
        step = split_step(plan, document, limit)
        if step is not None and run.take(step).status == "executed":
            plan.taken.update(part.topic for part in step.parts)
            pending += [part.topic for part in step.parts]
    if not plan.keeps:  # what the model left too large
        split_large(run, plan.taken, plan.settings)


def split_step(plan: Planning, document: Document, limit: int) -> Split | None:
    """The split that the model proposes; None where it has none that is whole."""
    entries = [entry for entry in document.entries if entry.seqs]
    if len(entries) < 2 or not plan.sight.is_whole(document):
        return None
    reply_tokens = 300 + 8 * len(entries)
    longest = min(200, 4 * plan.thinker.room("split", reply_tokens) // len(entries) - 48)
    if longest < 40:
        return None
    sizes = {entry.seq: estimate("".join(document.lines[entry.span.start : entry.span.stop])) for entry in entries}
    found = plan.thinker.ask(
        "split",
        {
            "title": label(title_of(document)),
            "entries": data(lines_by_heading(entries, longest)),
            "count": str(len(entries)),
            "most": str(max(1, limit * len(entries) // max(1, sum(sizes.values())))),
            "least": str(max(2, len(entries) // 20)),
        },
        SPLIT,
        lambda value: read_fitting_moves(value, entries, sizes, limit),
        reply_tokens=reply_tokens,
        likely=lambda: {
            "parts": [{"title": "some subject", "seqs": [entry.seq for entry in entries[len(entries) // 2 :]]}],
            "conf": 0.95,
        },
    )
    return None if found is None else parted(plan, document, entries, *found)


def lines_by_heading(entries: Sequence[Entry], longest: int) -> list[str]:
    """The entries of a page, a line each, with the headings between them."""
    lines = []
    heading: tuple[str, ...] = ()
    for entry in entries:
        if entry.headings != heading and len(entry.headings) > 1:
            lines.append(f"## {entry.headings[-1]}")
        heading = entry.headings
        lines.append(entry_line(entry, longest))
    return lines


def read_fitting_moves(
    value: object, entries: Sequence[Entry], sizes: dict[int, int], limit: int
) -> Reading[tuple[list[Move], float]]:
    """The split step's reply, if no page is over the limit after it."""
    reading = read_moves(value, {seq: entry.seq for entry in entries for seq in entry.seqs})
    if reading.value is None:
        return reading
    moves, _ = reading.value
    gone = {seq for move in moves for seq in move.seqs}
    heavy = [move.title for move in moves if sum(sizes[seq] for seq in move.seqs) > limit]
    if sum(size for seq, size in sizes.items() if seq not in gone) > limit:
        heavy.append("what stays")
    return Reading(None, (f"still too long: {', '.join(heavy[:3])}",)) if heavy else reading


def parted(plan: Planning, document: Document, entries: Sequence[Entry], moves: Sequence[Move], conf: float) -> Split:
    """The split that moves entries out; what no move names stays."""
    gone = {seq for move in moves for seq in move.seqs}
    used = plan.taken | set(plan.run.desk.documents)
    parts = [Part(document.id, title_of(document), seqs_of(e for e in entries if e.seq not in gone))]
    for move in moves:
        topic = lexical.slug_of(move.title, used)
        used.add(topic)
        parts.append(Part(topic, move.title, seqs_of(e for e in entries if e.seq in move.seqs)))
    return Split(document.id, tuple(parts), conf)


# merge


def merge(plan: Planning) -> None:
    """Merge small documents that this run touched with what the model says shares their scope."""
    run = plan.run
    small = plan.settings.count("merge.max_tokens")
    limit = plan.settings.count("split.max_tokens")
    touched = [topic for topic in run.desk.touched if is_small(plan, topic, small)]
    if not touched:
        return
    near: dict[str, None] = {}
    for topic in touched:
        text = "\n".join(entry.text for entry in run.desk.documents[topic].entries)
        near.update(dict.fromkeys(name for name, _ in plan.index.similar(text, 3)))
    run.load(near)
    topics = [topic for topic in dict.fromkeys([*touched, *near]) if is_small(plan, topic, small)][: 2 * TOPICS_SHOWN]
    if len(topics) < 2:
        return
    rows = [f"{topic} ({body_tokens(run.desk.documents[topic])}): {about(run, topic)}" for topic in topics]
    merges = plan.thinker.ask(
        "merge",
        {"topics": data(rows), "limit": str(limit)},
        merge_schema(topics),
        lambda value: read_merges(value, topics),
        reply_tokens=200 + 20 * len(topics),
        likely=lambda: {"merges": [{"topics": topics[:2], "into": topics[0], "conf": 0.95}]},
    )
    for names, into, conf in merges or ():
        step = Merge(names, into, title_of(run.desk.documents[into]), conf)
        stranger = next((name for name in names if name != into and not share_a_word(run, into, name)), "")
        if sum(body_tokens(run.desk.documents[name]) for name in names) > limit:
            run.outcomes.append(Outcome(step, "skipped", "together they would be too long"))
        elif any(not siblings(run, name).isdisjoint(names) for name in names):
            run.outcomes.append(Outcome(step, "skipped", "this flush has just split them"))
        elif stranger:
            run.outcomes.append(Outcome(step, "skipped", f"{into} and {stranger} have no word in common"))
        else:
            run.take(step)


def share_a_word(run: Run, one: str, other: str) -> bool:
    """Whether two pages have a word of their subjects in common: what has none is not about the same."""
    here, there = (
        {
            term
            for text in (title_of(document), *(entry.text for entry in document.entries))
            for term in subject_terms(text)
        }
        for document in (run.desk.documents[one], run.desk.documents[other])
    )
    return not here.isdisjoint(there)


def is_small(plan: Planning, topic: str, small: int) -> bool:
    """Whether a document at hand is ours, under the size from which it stands alone, and for the model to see."""
    document = plan.run.desk.documents.get(topic)
    if document is None or not changeable(document) or not document.entries:
        return False
    return body_tokens(document) < small and plan.sight.is_whole(document)


def about(run: Run, topic: str) -> str:
    """A page's title and what is on it, for a merge."""
    document = run.desk.documents[topic]
    summary = str(document.header.fields.get("summary", "") or "")
    if not summary or topic in run.desk.touched:
        summary = lexical.summarise(title_of(document), document.entries)
    return f"{label(title_of(document))}: {summary[:SUMMARY_SHOWN]}"


# summary


def summarise(plan: Planning) -> None:
    """Have the model say in a line what is on each page that was touched; a rule sees that it invents nothing."""
    run = plan.run
    topics = [
        topic
        for topic in run.desk.touched
        for document in [run.desk.documents.get(topic)]
        if document is not None and changeable(document) and document.entries and not is_pinned(document)
        if plan.sight.is_whole(document)
    ]
    gone = {step.seq for step in run.desk.retired}
    room = plan.thinker.room("summary", 200)
    pages = [page(plan, topic, gone, min(room // 2, LONGEST_PAGE)) for topic in topics]
    for part in portions(pages, room, SUMMARY_REPLY):
        plan.progress("summary", part.start, len(pages))
        write_summaries(plan, [topics[at] for at in part], [pages[at] for at in part])


def page(plan: Planning, topic: str, gone: set[int], room: int) -> str:
    """A page as its summary is written from: the summary so far, and what this run changed."""
    run = plan.run
    document = run.desk.documents[topic]
    before = run.originals.get(topic)
    old = {entry.seqs for entry in before.entries} if before is not None else set()
    new = [entry for entry in document.entries if entry.seqs not in old]
    left = [entry for entry in before.entries if gone.intersection(entry.seqs)] if before is not None else []
    lines = [f"page {topic}: {label(title_of(document))}"]
    summary = str(document.header.fields.get("summary", "") or "")
    if summary:
        lines.append(f"so far: {summary}")
    lines += [f"gone: {entry_line(entry, 200)}" for entry in left if plan.sight.shows(entry)]
    used = sum(estimate(line) for line in lines)
    for entry in new or document.entries:
        line = entry_line(entry, 200)
        used += estimate(line)
        if used > room:
            break
        lines.append(line)
    return data(lines)


def write_summaries(plan: Planning, topics: Sequence[str], pages: Sequence[str]) -> None:
    """Ask for some summaries; those that say what no entry says are asked for once more, then go."""
    run = plan.run

    def read(value: object) -> Reading[dict[str, str]]:
        reading = read_summaries(value, topics)
        bad = {
            topic: why
            for topic, text in (reading.value or {}).items()
            for why in [rules.violation(Summarise(topic, text), run.desk)]
            if why
        }
        complaints = [*reading.complaints, *(f"{topic}: {why}" for topic, why in list(bad.items())[:5])]
        return Reading(reading.value, tuple(complaints))

    found = plan.thinker.ask(
        "summary",
        {"pages": "\n\n".join(pages)},
        summary_schema(topics),
        read,
        reply_tokens=200 + SUMMARY_REPLY * len(topics),
        likely=lambda: {"summaries": [{"topic": topic, "text": "Something of this page. " * 6} for topic in topics]},
    )
    for topic, text in (found or {}).items():
        run.take(Summarise(topic, text))
