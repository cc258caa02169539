"""What a git merge leaves to be done across files, and doing it: one transaction, said in words.

git merges file by file. Whether two machines gave one seq to different entries, flushed the same entry into different
topics, or moved and extended the same topic, is seen only with both versions of the whole library at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from infinimem.consolidate.commit import extract
from infinimem.errors import NeedsAttention, Unreadable
from infinimem.forgetting.forget import forget_held, forget_names
from infinimem.forgetting.survey import Wanted, came_back, forgotten_seqs, is_the_same, others_of, read_survey
from infinimem.git.driver import merge_three
from infinimem.git.renumber import renumber_line
from infinimem.git.run import run_git, under_way
from infinimem.git.sides import (
    Merge,
    Piece,
    Side,
    changed_paths,
    forgets_since,
    has_only_grown,
    is_half_settled,
    is_untouched,
    note_half_settled,
    note_settled,
    published,
    read_side,
    unsettled,
)
from infinimem.git.twins import likeness
from infinimem.model import CURRENT, Change, Document, Entry, Signature, Span, Summarise, path_of
from infinimem.plan.desk import (
    REDIRECTED,
    aux_value,
    insert_entries,
    is_pinned,
    redirect,
    set_header,
    set_headers,
    without_empty_blocks,
)
from infinimem.plan.desk import Desk as PlanDesk
from infinimem.plan.rules import bad_summary
from infinimem.store import transaction
from infinimem.store.buffer import evidence_files, hold, next_seq, note_state
from infinimem.store.evidence import Record, append_to_evidence, event_line, evidence_conflicts, retirement
from infinimem.store.files import digest_of
from infinimem.store.imported import ORIGIN, is_what_was_forgotten
from infinimem.store.layout import BUFFER, EVIDENCE, FLUSH_LOCK, LOG, TOPICS
from infinimem.store.lock import exclusive
from infinimem.store.read import File, list_files, read_file, read_log
from infinimem.text.document import body_tokens, edit, entry_lines, events, parse, render
from infinimem.text.header import key_span, render_flow, render_scalar
from infinimem.text.lines import ending_of, join_lines
from infinimem.text.merge import bare_lines, pieces_of
from infinimem.text.signature import parse_seqs, render_seqs, renumber_seqs

SHOWN = 12
CAME_FROM = (ORIGIN, "id")
"""The fields that say what an entry was where it comes from."""


@dataclass(slots=True)
class Desk:
    """The library's files as they are, and as they will be."""

    root: Path
    at: str
    files: dict[str, File] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    touched: list[str] = field(default_factory=list)

    def put(self, document: Document, edits: Iterable[tuple[Span, tuple[str, ...]]]) -> None:
        """Change a document."""
        self.documents[document.path] = edit(document, list(edits))

    def topics(self) -> list[Document]:
        """The topic documents that may be changed."""
        return [
            document
            for path, document in sorted(self.documents.items())
            if path.startswith(f"{TOPICS}/") and not document.is_guest and not document.blocking
        ]

    def shown(self) -> dict[int, list[tuple[str, Entry]]]:
        """Each seq's lines in topics."""
        found: dict[int, list[tuple[str, Entry]]] = {}
        for document in self.topics():
            for entry in document.entries:
                for seq in entry.seqs:
                    found.setdefault(seq, []).append((document.path, entry))
        return found


def refuse_under_way(root: Path) -> None:
    """Raise `NeedsAttention` while git is in the middle of a rebase, or of a merge that touches memory."""
    what = under_way(root)
    if not what or run_git(root, "check-ignore", "-q", ".").code == 0:
        return
    untouched = run_git(root, "diff", "--cached", "--quiet", "--", BUFFER, TOPICS, EVIDENCE).code == 0
    if what == "rebase" or not untouched:
        raise NeedsAttention(
            f"git is in the middle of a {what} in {root}; finish it (git status says how), then run the command again"
        )


@dataclass(frozen=True, slots=True)
class Settled:
    """A line for each thing that was done, and the files that were changed."""

    said: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


def is_pending(root: Path) -> bool:
    """Whether a git merge has left something to be looked at; nothing is changed."""
    return any(
        changed_paths(root, merge) and (not is_settled(root, merge) or is_half_settled(root, merge))
        for merge in unsettled(root)[1]
    )


def settle(root: Path, at: str) -> Settled:
    """Finish what git merges have left; empty where there was nothing to do.

    Does nothing while conflicts stand in the files that it would have to change: `check` names those.
    """
    head, merges = unsettled(root)
    if not head:
        return Settled()
    said: list[str] = []
    touched: dict[str, None] = {}
    with exclusive(root / FLUSH_LOCK, doing="flush"):
        for merge in merges:
            paths = changed_paths(root, merge)
            done = is_settled(root, merge)
            if not paths or (done and not is_half_settled(root, merge)):
                continue
            note_half_settled(root, merge)
            if not done:
                touched.update(dict.fromkeys(forget_merged(root, at, merge, paths)))
                with hold(root) as note:
                    desk = finish(root, note, at, merge, paths)
                said += desk.said
                touched.update(dict.fromkeys(desk.touched))
            again = forget_renumbered(root, at, merge, paths)
            said += again.said
            touched.update(dict.fromkeys(again.paths))
            note_half_settled(root, None)
        came = forgets_since(root, head)
        if came is not None:  # also where git had nothing to merge: what this clone made of the words goes
            touched.update(dict.fromkeys(forget_merged(root, at, came, changed_paths(root, came))))
        note_settled(root, head)
    return Settled(tuple(said), tuple(touched))


def forget_merged(root: Path, at: str, merge: Merge, paths: list[str]) -> tuple[str, ...]:
    """What one side forgot and the other named, split or renamed a topic after goes from there, too.

    Only here the words are still known: from the versions that were merged. Gives the files that changed.
    """
    if not forgotten_seqs(root):
        return ()
    buffer = read_file(root, BUFFER).document
    if buffer.blocking or evidence_conflicts(root):
        return ()
    sides = [read_side(root, commit, paths) for commit in (merge.base, merge.ours, merge.theirs)]
    gone = {seq: event for side in sides for _, event in side.events if event.kind == "forget" for seq in event.seqs}
    known = [
        entry
        for side in sides
        for document in side.documents.values()
        for entry in document.entries
        if gone and came_back(entry, gone, others_of(document.entries, gone))
    ]
    return forget_names(root, list(dict.fromkeys(known)), datetime.fromisoformat(at)) if known else ()


def forget_renumbered(root: Path, at: str, merge: Merge, paths: list[str]) -> Settled:
    """What one side forgot and the other has under another number goes, too: renumbered meanwhile, or loaded."""
    if not forgotten_seqs(root) or read_file(root, BUFFER).document.blocking or evidence_conflicts(root):
        return Settled()
    base, ours, theirs = (read_side(root, commit, paths) for commit in (merge.base, merge.ours, merge.theirs))
    had = base.firsts
    events = [event for side in (ours, theirs) for _, event in side.events if event.kind == "forget"]
    gone = [had[seq] for event in events for seq in event.seqs if seq in had and is_the_same(had[seq], event)]
    told = {(entry.observed, entry.text) for entry in gone if entry.observed}
    loaded = {*map(identity, loaded_unaware(base, ours, theirs)), *map(identity, loaded_unaware(base, theirs, ours))}
    if not (told or loaded):
        return Settled()
    with hold(root):  # which first finishes what a killed process left
        alone = [entry for _, entry in read_survey(root).entries() if len(entry.seqs) == 1]
    renumbered = {one.seq for one in alone if (one.observed, one.text) in told and one.seq not in had}
    brought = {one.seq for one in alone if identity(one) in loaded and one.seq not in had}
    if not (renumbered or brought):
        return Settled()
    done = forget_held(root, Wanted(tuple(sorted(renumbered | brought))), datetime.fromisoformat(at))
    seqs = render_seqs(sorted(brought))
    said = f"{seqs}: forgotten, for it is what was forgotten on another machine; import --again brings it back"
    return Settled((said,) if brought else (), (*done.changed, *done.removed))


def loaded_unaware(base: Side, forgetful: Side, other: Side) -> list[Entry]:
    """What one side loaded or imported while the other forgot the same, and the one had not heard of it.

    Where it had, it was asked to bring it back. What the forgetful side has itself, it means to have.
    """
    known = {line for side in (base, other) for line, event in side.events if event.kind == "forget"}
    news = [event for line, event in forgetful.events if event.kind == "forget" and line not in known]
    kept = {entry.signature.get(name) for entry in forgetful.firsts.values() for name in CAME_FROM}
    return [
        entry
        for seq, entry in other.firsts.items()
        if seq not in base.firsts and len(entry.seqs) == 1
        if kept.isdisjoint(one for name in CAME_FROM if (one := entry.signature.get(name)))
        if any(is_what_was_forgotten(entry, event) for event in news)
    ]


def is_settled(root: Path, merge: Merge) -> bool:
    """Whether evidence says that a machine has finished this merge."""
    mark = f"<event=merge, of={merge.name},".encode()
    if any(mark in path.read_bytes() for path in evidence_files(root)):
        return True
    # whatever writes evidence finishes merges first: one above the merge means that there was nothing to do then,
    # and doing it now would undo what happened since
    span = f"{merge.result}..HEAD"
    return bool(run_git(root, "rev-list", "--no-merges", "--ancestry-path", "-n", "1", span, "--", EVIDENCE).out)


def finish(root: Path, note: int, at: str, merge: Merge, paths: list[str]) -> Desk:
    """Finish one merge: renumber, bring every entry to one place, complete evidence. One transaction."""
    # evidence of months that neither side touched knows seqs that both may have brought back
    months = {path for path in list_files(root) if path.startswith(f"{EVIDENCE}/")}
    sides = [
        read_side(root, commit, sorted({*paths, *months}) if commit == merge.base else paths)
        for commit in (merge.base, merge.ours, merge.theirs)
    ]
    base, ours, theirs = sides
    clashes = clashes_of(base, ours, theirs)
    gone, lost = forgotten_clashes(base, ours, theirs), forgotten_clashes(base, theirs, ours)
    known = published(root, merge) if clashes else ""
    if gone or lost:
        ours_keeps = bool(gone)  # a forgotten number stays forgotten; the other entry gets a new one
    else:
        ours_keeps = known == merge.ours if known else not clashes or older(clashes[0], ours, theirs)
    clashes = sorted({*clashes, *(gone or lost)})
    keeps, yields = (ours, theirs) if ours_keeps else (theirs, ours)
    desk = read_desk(root, at, {path for side in sides for path in side.documents})
    if any(document.blocking for path, document in desk.documents.items() if not path.startswith(f"{TOPICS}/")):
        return desk
    moving = moving_seqs(clashes, base, keeps, yields)
    numbers = new_numbers(desk, moving, sides, yields, next_seq(root, note))
    if numbers:
        renumber(desk, numbers, base, keeps, yields)
        pairs = ", ".join(f"{old} is now {new}" for old, new in list(numbers.items())[:SHOWN])
        more = ", …" if len(numbers) > SHOWN else ""
        desk.said.append(f"two machines had given the same numbers to different entries: {pairs}{more}")
        yields = renumbered_side(yields, numbers, base)
    complete_evidence(desk, base, keeps, yields)
    records = records_of(desk)
    mend_buffer(desk, base, keeps, yields, records, complete=has_only_grown(root, merge))
    one_place_each(desk, base, keeps, yields, records)  # first, for it knows which words a person wrote
    follow_redirects(desk)
    retire_both(desk, base, keeps, yields, records)
    tell_rivals(desk, base, keeps, yields)
    if is_untouched(root, merge):
        bring_back(desk, base, keeps, yields, records)
    commit(desk, note, merge, max([next_seq(root, note), *(new + 1 for new in numbers.values())]))
    return desk


# numbers


def clashes_of(base: Side, ours: Side, theirs: Side) -> list[int]:
    """The seqs that both sides gave, to entries that are not the same."""
    fresh = (ours.firsts.keys() & theirs.firsts.keys()) - base.firsts.keys()
    return sorted(seq for seq in fresh if identity(ours.firsts[seq]) != identity(theirs.firsts[seq]))


def forgotten_clashes(base: Side, forgetful: Side, other: Side) -> list[int]:
    """The seqs that one side gave and forgot, and that the other side gave to an entry written at another time."""
    return [
        seq
        for line, event in forgetful.events
        if event.kind == "forget" and (line,) not in base.pieces
        for seq in event.seqs
        if seq in other.firsts and seq not in base.firsts and seq not in forgetful.firsts
        if event.get("observed") and other.firsts[seq].observed not in ("", event.get("observed"))
    ]


def identity(entry: Entry) -> tuple[str, str, str]:
    """What makes an entry itself, whatever number it has."""
    return entry.observed or "~", entry.source, entry.text


def older(seq: int, ours: Side, theirs: Side) -> bool:
    """Whether our entry keeps a seq that theirs has too: the same answer on every machine."""
    return identity(ours.firsts[seq]) < identity(theirs.firsts[seq])


def moving_seqs(clashes: list[int], base: Side, keeps: Side, yields: Side) -> list[int]:
    """The seqs that get new numbers: from the first clash on all that the yielding side gave.

    A number left behind would be smaller than those of entries that were written before it.
    """
    if not clashes:
        return []
    fresh = yields.firsts.keys() - base.firsts.keys()
    shared = {seq for seq in fresh & keeps.firsts.keys() if seq not in clashes}
    return sorted(seq for seq in fresh - shared if seq >= clashes[0])


def new_numbers(desk: Desk, moving: list[int], sides: list[Side], yields: Side, following: int) -> dict[int, int]:
    """New seqs, in order: the first after both sides' own, so that every machine finds the same.

    What another machine has renumbered already keeps the number that it got there.
    """
    if not moving:
        return {}
    highs = [
        int(high) for side in sides for _, event in side.events if (high := event.get("high")) and high.isdecimal()
    ]
    first = max([*highs, *(seq for side in sides for seq in side.firsts)]) + 1
    given = {seq for side in sides for seq in side.firsts}
    known = {identity(entry): seq for seq, entry in Side(desk.documents).firsts.items() if seq not in given}
    done = {seq: known[identity(yields.firsts[seq])] for seq in moving if identity(yields.firsts[seq]) in known}
    taken = {seq for document in desk.documents.values() for entry in document.entries for seq in entry.seqs}
    if not done and not taken.isdisjoint(range(first, first + len(moving))):
        first = max(following, first)
    return {seq: done.get(seq, first + step) for step, seq in enumerate(moving)}


def renumber(desk: Desk, numbers: Mapping[int, int], base: Side, keeps: Side, yields: Side) -> None:
    """Give one side's entries, and whatever on that side refers to them, their new numbers."""
    for path, document in list(desk.documents.items()):
        if not document.blocking or path.startswith(f"{EVIDENCE}/"):
            desk.documents[path] = renumber_document(document, numbers, base, keeps, yields)


def renumber_document(
    document: Document, numbers: Mapping[int, int], base: Side, keeps: Side, yields: Side
) -> Document:
    """One document with new numbers on the lines that only the yielding side wrote."""
    lines = bare_lines(document)
    entries = {entry.span.start: entry for entry in document.entries}
    edits = []
    at = document.header.span.stop
    while at < len(lines):
        entry = entries.get(at)
        stop = entry.span.stop if entry else at + 1
        piece = lines[at:stop]
        if is_yielded(piece, entry, numbers, base, keeps, yields):
            changed = renumber_line(lines[at], numbers)
            if changed != lines[at]:
                end = document.lines[at][len(lines[at]) :]
                edits.append((Span(at, at + 1), (changed + end,)))
        at = stop
    changed_document = edit(document, edits) if edits else document
    return renumber_log(changed_document, numbers, base, keeps, yields)


def is_yielded(
    piece: Piece, entry: Entry | None, numbers: Mapping[int, int], base: Side, keeps: Side, yields: Side
) -> bool:
    """Whether a line comes from the yielding side alone; one that a person wrote anew is told by its words."""
    if piece in base.pieces or piece in keeps.pieces:
        return False
    if piece in yields.pieces:
        return True
    clash = next((seq for seq in entry.seqs if seq in numbers), None) if entry else None
    if clash is None or entry is None or clash not in yields.firsts:
        return False
    if clash not in keeps.firsts:
        return True
    return likeness(entry.text, yields.firsts[clash].text) > likeness(entry.text, keeps.firsts[clash].text)


def renumber_log(document: Document, numbers: Mapping[int, int], base: Side, keeps: Side, yields: Side) -> Document:
    """The update log's rows of one side with new numbers."""
    rows = document.header.fields.get("update_log")
    if not isinstance(rows, list) or document.path not in yields.documents or document.blocking:
        return document
    theirs = yields.documents[document.path].header.fields.get("update_log") or []
    others = [
        row
        for side in (base, keeps)
        if document.path in side.documents
        for row in side.documents[document.path].header.fields.get("update_log") or []
    ]
    span = key_span(document.lines, document.header, "update_log")
    changed = list(document.lines)
    for row in rows:
        if not isinstance(row, Mapping) or "seq" not in row or row in others or row not in theirs:
            continue
        old = str(row["seq"])
        new = renumber_seqs(old, numbers)
        for at in range(span.start, span.stop):
            if new != old and f"seq: {old}}}" in changed[at] and str(row.get("op")) in changed[at]:
                changed[at] = changed[at].replace(f"seq: {old}}}", f"seq: {new}}}")
                break
    return parse(document.path, join_lines(tuple(changed)))


def renumbered_side(side: Side, numbers: Mapping[int, int], base: Side) -> Side:
    """The yielding side as if it had given the new numbers from the start.

    Here every line is its own, also one that reads the same on the other side: two retirements of one second.
    """
    return Side(
        {path: renumber_document(document, numbers, base, Side({}), side) for path, document in side.documents.items()}
    )


# evidence


def complete_evidence(desk: Desk, base: Side, keeps: Side, yields: Side) -> None:
    """Both sides' evidence, whole: git's own union merge cuts lines that two entries share out of one of them."""
    evidence = {path: document for path, document in desk.documents.items() if path.startswith(f"{EVIDENCE}/")}
    there = {piece for document in evidence.values() for piece in pieces_of(document)}
    wanted = dict.fromkeys(
        piece
        for side in (keeps, yields)
        for path in sorted(side.documents)
        if path.startswith(f"{EVIDENCE}/")
        for piece in pieces_of(side.documents[path])
        if piece[0].startswith("- <") and piece not in base.pieces
    )
    forgotten = {
        seq
        for document in evidence.values()
        for event in events(bare_lines(document))
        if event.kind == "forget"
        for seq in event.seqs
    }
    known = {*wanted, *base.pieces}
    fresh = {seq for side in (keeps, yields) for seq in side.firsts} - base.firsts.keys()
    for path, document in evidence.items():
        lines = bare_lines(document)
        torn = [
            entry.span
            for entry in document.entries
            if not entry.signature.get("rev")
            and fresh.issuperset(entry.seqs)
            and lines[entry.span.start : entry.span.stop] not in known
        ]
        if torn and path in (*keeps.documents, *yields.documents):
            desk.put(document, [(span, ()) for span in torn])
    for piece in wanted:
        if piece not in there and forgotten.isdisjoint(seqs_of_piece(piece)):
            desk.lines += [f"{line}\n" for line in piece]


def seqs_of_piece(piece: Piece) -> tuple[int, ...]:
    """The seqs that an entry stands for or an event concerns."""
    document = parse("", join_lines(tuple(f"{line}\n" for line in piece)))
    if document.entries:
        return document.entries[0].seqs
    return next((event.seqs for event in events(bare_lines(document))), ())


def records_of(desk: Desk) -> dict[int, Record]:
    """What evidence says by seq, as it will be."""
    entries: dict[int, list[tuple[str, Entry]]] = {}
    happened: dict[int, list[tuple[str, object]]] = {}
    evidence = [document for path, document in sorted(desk.documents.items()) if path.startswith(f"{EVIDENCE}/")]
    for document in (*evidence, parse("", "".join(desk.lines).encode("utf-8", "surrogateescape"))):
        for entry in document.entries:
            for seq in entry.seqs:
                entries.setdefault(seq, []).append((document.path, entry))
        for event in events(bare_lines(document)):
            for seq in event.seqs:
                happened.setdefault(seq, []).append((document.path, event))
    return {
        seq: Record(seq, tuple(entries.get(seq, ())), tuple(happened.get(seq, ())))  # type: ignore[arg-type]
        for seq in {*entries, *happened}
    }


# places


def mend_buffer(
    desk: Desk, base: Side, keeps: Side, yields: Side, records: Mapping[int, Record], *, complete: bool
) -> None:
    """CURRENT as it comes out by entry, where nobody has written to these lines since.

    With `complete`, what it lacks is put back: nobody can have deleted it by hand.
    """
    versions = [render(side.documents[BUFFER]) if BUFFER in side.documents else b"" for side in (base, keeps, yields)]
    if versions[1] == versions[2]:
        return
    merged = merge_three(BUFFER, *versions)
    buffer = desk.documents.get(BUFFER)
    if merged is None or buffer is None or buffer.blocking:
        return
    wanted = {entry.seqs: entry for entry in parse(BUFFER, merged.content).entries}
    known = {piece for side in (base, keeps, yields) for piece in side.pieces}
    lines = bare_lines(buffer)
    ending = ending_of(buffer.lines)
    edits: list[tuple[Span, tuple[str, ...]]] = []
    seen: set[tuple[tuple[int, ...], str]] = set()
    for entry in buffer.entries:
        again = (entry.seqs, entry.observed) in seen  # one that only has the same number is renumbered by its own merge
        seen.add((entry.seqs, entry.observed))
        right = wanted.get(entry.seqs)
        both = entry.seq in keeps.buffered() or entry.seq in yields.buffered() or entry.seq in base.buffered()
        if (
            again
            and right is not None
            and right.text != entry.text
            and lines[entry.span.start : entry.span.stop] in known
        ):
            continue  # both sides changed its words: `check` names it
        if again or (right is None and both and entry.seq in records and knows(records[entry.seq], entry)):
            edits.append((entry.span, ()))
        elif right is not None and right.text != entry.text and is_torn(entry, right):
            edits.append((entry.span, entry_lines(right.signature, right.text, ending)))
    if edits:
        desk.put(buffer, edits)
    there = {seq for entry in desk.documents[BUFFER].entries for seq in entry.seqs} | desk.shown().keys()
    missing = [entry for seqs, entry in wanted.items() if there.isdisjoint(seqs) and seqs[0] not in records]
    append_to_buffer(desk, missing if complete else [])


def knows(record: Record, entry: Entry) -> bool:
    """Whether evidence speaks of this entry, not of another with the same number."""
    return not record.entries or any(one.observed in ("", entry.observed) for _, one in record.entries)


def is_torn(entry: Entry, right: Entry) -> bool:
    """Whether an entry only lost or gained whole lines, as when lines are merged."""
    return entry.text.split("\n")[0] == right.text.split("\n")[0]


def append_to_buffer(desk: Desk, entries: Iterable[Entry]) -> None:
    """Put entries at CURRENT's end."""
    document = desk.documents.get(BUFFER) or parse(BUFFER, b"# CURRENT\n\n")
    ending = ending_of(document.lines)
    lines = tuple(line for entry in entries for line in entry_lines(entry.signature, entry.text, ending))
    if lines:
        desk.put(document, [(Span(len(document.lines), len(document.lines)), lines)])


def follow_redirects(desk: Desk) -> None:
    """Entries that came to a topic which the other side had merged into another one follow it."""
    for topic in [document.id for document in desk.topics()]:
        target = end_of_redirects(desk, topic)
        document = desk.documents[path_of(topic)]
        into = desk.documents.get(path_of(target)) if target != topic else None
        if not document.entries or into is None or into.blocking or into.is_guest:
            continue
        there = {entry.seqs for entry in into.entries}
        fresh = [entry for entry in document.entries if entry.seqs not in there]
        try:
            for entry in fresh:
                name = entry.headings[-1] if len(entry.headings) > 1 else ""
                into = insert_entries(into, name, [entry])
        except Unreadable:
            continue
        desk.documents[into.path] = into
        desk.documents[document.path] = redirect(document, target)
        if fresh:
            desk.said.append(f"{named(fresh)} followed {document.id} into {target}")


def end_of_redirects(desk: Desk, topic: str) -> str:
    """Where a topic has gone in the end. Two that each side merged into the other meet in the first by name."""
    trail = [topic]
    while (document := desk.documents.get(path_of(trail[-1]))) is not None and aux_value(document, "merged_into"):
        following = str(aux_value(document, "merged_into"))
        if following in trail:
            circle = trail[trail.index(following) :]
            desk.documents[path_of(min(circle))] = without_redirect(desk.documents[path_of(min(circle))])
            return min(circle)
        trail.append(following)
    return trail[-1]


def without_redirect(document: Document) -> Document:
    """A topic that is one again."""
    aux = {key: value for key, value in document.header.fields["aux"].items() if key != "merged_into"}
    lines = [at for at, line in enumerate(document.lines) if line.startswith(REDIRECTED)]
    return set_header(edit(document, [(Span(at, at + 1), ()) for at in lines]), "aux", render_flow(aux))


def one_place_each(desk: Desk, base: Side, keeps: Side, yields: Side, records: Mapping[int, Record]) -> None:
    """An entry that both sides moved or flushed stands in one place: where the keeping side has it.

    Words that a person changed on one side are the words.
    """
    brought: list[int] = []
    while True:
        doubled = [(seq, places) for seq, places in sorted(desk.shown().items()) if len(places) > 1]
        if not doubled:
            break
        seq, places = doubled[0]
        ranked = sorted(places, key=lambda place: rank_of_place(place, seq, base, keeps))
        (path, stays), *others = ranked
        edited = next((entry for _, entry in others if is_edited(entry, stays, base, seq)), None)
        for other_path, other in others:
            rest = [one for one in other.seqs if one not in stays.seqs]
            drop_line(desk, other_path, other, rest, records)
        if edited is not None and edited.seqs == stays.seqs:
            put_words(desk, path, stays, edited)
        brought.append(seq)
    if brought:
        desk.said.append(f"both sides had placed {render_seqs(sorted(brought))}; each stands in one topic now")
    settle_buffer(desk, base, keeps, yields)


def rank_of_place(place: tuple[str, Entry], seq: int, base: Side, keeps: Side) -> tuple[bool, bool, str, int]:
    """Better places first: where the keeping side has it, unless it stood there before and the other side moved it."""
    path, entry = place
    here = keeps.shown.get(seq, ("", entry))[0] == path
    before = base.shown.get(seq, ("", entry))[0] == path
    return not (here and not before), not here, path, entry.span.start


def is_edited(entry: Entry, stays: Entry, base: Side, seq: int) -> bool:
    """Whether a person changed the words here and not in the line that stays."""
    return words_before(seq, base, entry) == stays.text != entry.text


def words_before(seq: int, base: Side, default: Entry) -> str:
    """The words of an entry before both sides parted, wherever it stood then."""
    return (base.shown[seq][1] if seq in base.shown else base.firsts.get(seq, default)).text


def drop_line(desk: Desk, path: str, entry: Entry, rest: list[int], records: Mapping[int, Record]) -> None:
    """Take a line out of a topic; other members of a joined line come back verbatim."""
    document = desk.documents[path]
    here = next(
        (one for one in document.entries if one.seqs == entry.seqs and one.span.start == entry.span.start), None
    )
    if here is None:
        here = next(one for one in document.entries if one.seqs == entry.seqs)
    ending = ending_of(document.lines)
    found = [records[seq].newest for seq in rest if seq in records]
    lines = tuple(line for one in found if one is not None for line in entry_lines(one.signature, one.text, ending))
    changed = edit(document, [(here.span, lines)])
    desk.documents[path] = changed if lines else without_empty_blocks(changed, here.headings)


def put_words(desk: Desk, path: str, stays: Entry, edited: Entry) -> None:
    """Give a line the words that a person gave it on the other side."""
    document = desk.documents[path]
    here = next((one for one in document.entries if one.seqs == stays.seqs), None)
    if here is not None:
        desk.put(document, [(here.span, entry_lines(edited.signature, edited.text, ending_of(document.lines)))])


def settle_buffer(desk: Desk, base: Side, keeps: Side, yields: Side) -> None:
    """What one side flushed and the other edited in CURRENT stands in its topic, with the new words.

    So does what one side took back out of a topic that stays, because the other side has edited it.
    """
    buffer = desk.documents.get(BUFFER)
    if buffer is None or buffer.blocking:
        return
    shown = desk.shown()
    before = {**{seq: entry for seq, (_, entry) in base.shown.items()}, **base.buffered()}
    spans = []
    for entry in buffer.entries:
        places = shown.get(entry.seq, [])
        known = entry.seq in keeps.shown or entry.seq in yields.shown
        if not places or not known:
            continue
        path, line = places[0]
        was = before.get(entry.seq)
        if was is not None and line.seqs == entry.seqs and line.text == was.text != entry.text:
            put_words(desk, path, line, entry)
        elif line.text != entry.text and (was is None or entry.text != was.text):
            continue
        spans.append(entry.span)
    if spans:
        desk.put(buffer, [(span, ()) for span in spans])


def retire_both(desk: Desk, base: Side, keeps: Side, yields: Side, records: Mapping[int, Record]) -> None:
    """What either side replaced is replaced; words that the other side had changed are noted in evidence."""
    for side, other in ((keeps, yields), (yields, keeps)):
        fate = last_events(side, base)
        theirs = last_events(other, base)
        for seq, (kind, why) in sorted(fate.items()):
            if kind != "retire" or theirs.get(seq, ("", ""))[0] in ("restore", "unflush"):
                continue
            for path, entry in desk.shown().get(seq, []):
                edited = words_before(seq, base, entry) != entry.text
                if edited and why == "deleted":
                    desk.lines.append(event_line("restore", desk.at, seq=str(seq)))
                    break
                if edited and len(entry.seqs) == 1:
                    count = len([one for _, one in records[seq].entries if one.seqs == entry.seqs]) + 1
                    signature = Signature(entry.seqs, (("rev", str(count)), ("at", desk.at)))
                    desk.lines += entry_lines(signature, entry.text)
                drop_line(desk, path, entry, [one for one in entry.seqs if one != seq], records)


def tell_rivals(desk: Desk, base: Side, keeps: Side, yields: Side) -> None:
    """Say where each side put another entry in the place of the same one: which of them holds, a person knows."""
    ours, theirs = (successors(side, base) for side in (keeps, yields))
    for seq in sorted(ours.keys() & theirs.keys()):
        if ours[seq] != theirs[seq]:
            desk.said.append(
                f"both sides replaced {seq}, by {ours[seq]} and by {theirs[seq]}; both are shown: see which holds"
            )


def successors(side: Side, base: Side) -> dict[int, int]:
    """What took the place of each seq on one side since both sides parted."""
    found: dict[int, int] = {}
    for line, event in side.events:
        by = parse_seqs(event.get("by"))
        if (line,) not in base.pieces and event.kind == "retire" and event.get("why") == "superseded" and by:
            found.update(dict.fromkeys(event.seqs, by[0]))
    return found


def last_events(side: Side, base: Side) -> dict[int, tuple[str, str]]:
    """What last happened to each seq on one side since both sides parted."""
    found: dict[int, tuple[str, str]] = {}
    for line, event in side.events:
        if (line,) not in base.pieces and event.kind in ("retire", "restore", "unflush", "forget"):
            found.update((seq, (event.kind, event.get("why"))) for seq in event.seqs)
    return found


def bring_back(desk: Desk, base: Side, keeps: Side, yields: Side, records: Mapping[int, Record]) -> None:
    """An entry that a side shows, that nobody has retired, and that the merged files lack goes into CURRENT."""
    shown = desk.shown()
    buffer = desk.documents.get(BUFFER)
    there = {seq for entry in (buffer.entries if buffer else ()) for seq in entry.seqs} | shown.keys()
    sides = (keeps, yields)
    lost = []
    for seq in sorted({seq for side in sides for seq in side.shown}):
        removed = any(seq in base.shown and seq not in side.shown for side in sides)
        record = records.get(seq)
        if seq in there or removed or record is None or record.newest is None or retirement(record) is not None:
            continue
        lost.append(record.newest)
    if lost:
        elsewhere = shown_elsewhere(desk)
        lost = [entry for entry in lost if elsewhere.isdisjoint(entry.seqs)]
    if lost:
        append_to_buffer(desk, lost)
        desk.lines.append(event_line("unflush", desk.at, seq=render_seqs(entry.seq for entry in lost)))
        desk.said.append(f"{named(lost)} had lost their place and wait in {CURRENT} for the next flush")


def shown_elsewhere(desk: Desk) -> set[int]:
    """The seqs that topics show which the merge did not touch; reads all of them."""
    paths = [path for path in list_files(desk.root) if path.startswith(f"{TOPICS}/") and path not in desk.files]
    return {seq for path in paths for entry in read_file(desk.root, path).document.entries for seq in entry.seqs}


def named(entries: Iterable[Entry]) -> str:
    """Some entries by their seqs."""
    return f"seq {render_seqs(sorted(seq for entry in entries for seq in entry.seqs))}"


# disk


def read_desk(root: Path, at: str, paths: Iterable[str]) -> Desk:
    """The topics that a merge touched and those that they lead to, CURRENT, the log of writes and all evidence."""
    desk = Desk(root, at)
    there = list_files(root)
    wanted = [path for path in there if path in paths or not path.startswith(f"{TOPICS}/")]
    while wanted:
        path = wanted.pop()
        if path in there and path not in desk.files:
            file = read_file(root, path)
            desk.files[path] = file
            desk.documents[path] = file.document
            target = aux_value(file.document, "merged_into")
            wanted += [path_of(str(target))] if target else []
    desk.files[LOG] = read_log(root)
    desk.documents[LOG] = desk.files[LOG].document
    return desk


def commit(desk: Desk, note: int, merge: Merge, following: int) -> None:
    """Write what has changed, and that this merge is finished: one transaction; nothing where nothing has changed."""
    changes = []
    for path, document in desk.documents.items():
        file = desk.files.get(path, File(path, "", parse(path, b"")))
        if path.startswith(f"{TOPICS}/"):
            document = recounted(document)
        content = render(document)
        if digest_of(content) != file.digest and content != render(file.document):
            changes.append(Change(path, file.digest, content))
    appends = []
    if desk.lines or changes:
        finished = event_line("merge", desk.at, of=merge.name)
        lines = [*desk.lines, finished, event_line("flush", desk.at, high=str(following - 1))]
        append = append_to_evidence(desk.root, desk.at, lines)
        rewritten = next((change for change in changes if change.path == append.path), None)
        if rewritten is None:
            appends.append(append)
        else:
            changes.remove(rewritten)
            lead = b"" if rewritten.new is not None and rewritten.new.endswith(b"\n") else b"\n"
            whole = (rewritten.new or b"") + lead + "".join(lines).encode("utf-8", "surrogateescape")
            changes.append(Change(rewritten.path, rewritten.old_digest, whole))
    if changes or appends:
        transaction.commit(desk.root, changes, appends, None)
        note_state(desk.root, note, following)
        desk.touched += [change.path for change in changes if change.path != LOG]


def recounted(document: Document) -> Document:
    """A topic document with its token count right, and with a summary that says nothing that no entry says any more."""
    if document.is_guest or document.blocking or not document.header.fields:
        return document
    fields = document.header.fields
    keys = {}
    tokens = body_tokens(document)
    if fields.get("token_count", tokens) != tokens:
        keys["token_count"] = str(tokens)
    said = Summarise(document.id, str(fields.get("summary") or ""))
    if said.text and not is_pinned(document) and bad_summary(said, PlanDesk({}, {document.id: document})):
        keys["summary"] = render_scalar(extract(document))
    try:
        return set_headers(document, keys)
    except Unreadable:
        return document
