"""What differs between two states of a library, told by entry: values in, values out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from infinimem.model import CURRENT, Document, Entry, topic_of
from infinimem.plan.desk import aux_list, aux_value
from infinimem.store.evidence import Record, retirement
from infinimem.text.document import title_of, unsigned_entries
from infinimem.text.lines import is_blank
from infinimem.text.signature import parse_seqs, render_fields

State = Mapping[str, Document]
"""Documents by path; of two states only those that differ need be there."""
Records = Callable[[Sequence[int]], Mapping[int, Record]]
"""What evidence says of some seqs."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that changed. `line` is where it stands now (1-based), 0 for what stands nowhere.

    `kind`: added · moved (from `source`) · changed (words, `before`) · marked (signature) · joined · retired
    (`why`, `by`) · created, removed, renamed (a topic, from `source`) · summary · prose.
    """

    kind: str
    topic: str
    seqs: tuple[int, ...] = ()
    text: str = ""
    before: str = ""
    source: str = ""
    by: int = 0
    why: str = ""
    line: int = 0


def compare(old: State, new: State, records: Records) -> list[Difference]:
    """What became of every entry, topic and summary, by topic; CURRENT comes last."""
    topics = topic_differences(old, new)
    renamed = {one.source: one.topic for one in topics if one.kind == "renamed"}
    found = [*topics, *entry_differences(old, new, renamed), *retired_differences(old, new, records)]
    for path, document in new.items():
        if not target_of(document):
            found += text_differences(old.get(old_path(path, renamed), Document(path, ())), document)
    order = {kind: at for at, kind in enumerate(("created", "renamed", "removed", "summary"))}
    return sorted(found, key=lambda one: (one.topic == CURRENT, one.topic, order.get(one.kind, 9), one.line or 1 << 30))


def old_path(path: str, renamed: Mapping[str, str]) -> str:
    """Where a document was before its topic was renamed."""
    return next((f"topics/{old}.md" for old, new in renamed.items() if new == topic_of(path)), path)


# Topics


def topic_differences(old: State, new: State) -> list[Difference]:
    """Topics that came, went, or have another name now."""
    created = {topic_of(path): document for path, document in new.items() if path not in old and not is_buffer(path)}
    removed = {topic_of(path): document for path, document in old.items() if path not in new and not is_buffer(path)}
    found = []
    for topic, document in list(created.items()):
        for former, before in removed.items():
            if is_renamed(before, document):
                found.append(Difference("renamed", topic, text=title_of(document), source=former))
                del created[topic], removed[former]
                break
    found += [
        Difference("removed", document.id, text=title_of(document), why=f"merged into {target}")
        for path, document in new.items()
        if (target := target_of(document)) and not target_of(old.get(path, Document(path, ())))
    ]
    found += [Difference("created", topic, text=title_of(document)) for topic, document in created.items()]
    return found + [Difference("removed", topic, text=title_of(document)) for topic, document in removed.items()]


def target_of(document: Document) -> str:
    """The topic that a page only points to, because its own was merged into that one; "" for an ordinary page."""
    return str(aux_value(document, "merged_into") or "")


def is_buffer(path: str) -> bool:
    """Whether a path is that of CURRENT."""
    return topic_of(path) == CURRENT


def is_renamed(before: Document, after: Document) -> bool:
    """Whether one document is another under a new name: it says so, or most of its lines are the same."""
    if str(after.header.fields.get("id")) == before.id or before.id in aux_list(after, "former_ids"):
        return True
    if before.id in aux_list(after, "merged_from"):
        return False
    old, new = set(body_of(before)), set(body_of(after))
    return len(old & new) * 2 > max(len(old), len(new))


def body_of(document: Document) -> tuple[str, ...]:
    """The lines below the front matter that say something."""
    return tuple(line for line in document.lines[document.header.span.stop :] if not is_blank(line))


# Entries


def entry_differences(old: State, new: State, renamed: Mapping[str, str]) -> Iterator[Difference]:
    """What is shown now and was not, or stood elsewhere, or said something else."""
    lines: dict[int, list[Entry]] = {}
    for document in old.values():
        for entry in document.entries:
            for seq in entry.seqs:
                lines.setdefault(seq, []).append(entry)
    for document in new.values():
        for entry in document.entries:
            before = list(dict.fromkeys(one for seq in entry.seqs for one in lines.get(seq, ())))
            yield from line_differences(entry, before, renamed)
        known = {one.text for one in unsigned_entries(old.get(document.path, Document(document.path, ())))}
        for entry in unsigned_entries(document):
            if entry.text not in known:
                yield Difference("added", document.id, text=entry.text, line=entry.span.start + 1)


def line_differences(entry: Entry, before: Sequence[Entry], renamed: Mapping[str, str]) -> Iterator[Difference]:
    """What one line shows against the old lines that stood for its seqs."""
    topic, line = entry.topic, entry.span.start + 1
    if not before:
        yield Difference("added", topic, entry.seqs, entry.text, line=line)
        return
    same = [one for one in before if one.seqs == entry.seqs]
    if not same:
        yield Difference("joined", topic, entry.seqs, entry.text, "\n".join(one.text for one in before), line=line)
        return
    here = next((one for one in same if renamed.get(one.topic, one.topic) == topic), same[0])
    if renamed.get(here.topic, here.topic) != topic:
        yield Difference("moved", topic, entry.seqs, entry.text, source=here.topic, line=line)
    if here.text != entry.text:
        yield Difference("changed", topic, entry.seqs, entry.text, here.text, line=line)
    if here.signature.fields != entry.signature.fields:
        yield marked(here, entry, line)


def marked(before: Entry, after: Entry, line: int) -> Difference:
    """The fields of a signature that changed, and only they."""
    old = [field for field in before.signature.fields if field not in after.signature.fields]
    new = [field for field in after.signature.fields if field not in before.signature.fields]
    text, former = (render_fields(fields) if fields else "" for fields in (new, old))
    return Difference("marked", after.topic, after.seqs, text, former, line=line)


def retired_differences(old: State, new: State, records: Records) -> Iterator[Difference]:
    """What was shown and is not any more, with what evidence says of it."""
    shown = {seq for document in new.values() for entry in document.entries for seq in entry.seqs}
    lines = [entry for document in old.values() for entry in document.entries if not shown.issuperset(entry.seqs)]
    known = records([seq for entry in lines for seq in entry.seqs])
    told: set[int] = set()
    for entry in lines:
        for seq in entry.seqs:
            if seq in shown or seq in told:
                continue
            told.add(seq)
            record = known.get(seq, Record(seq, (), ()))
            event = retirement(record)
            newest = record.newest
            text = entry.text if len(entry.seqs) == 1 or newest is None else newest.text
            by = parse_seqs(event.get("by")) if event is not None else ()
            why = "gone" if event is None else event.get("why") or event.kind
            yield Difference("retired", entry.topic, (seq,), text, by=by[0] if by else 0, why=why)


# What is no entry


def text_differences(before: Document, after: Document) -> Iterator[Difference]:
    """A document's summary, and its prose as lines that came and went."""
    old, new = (summary_of(document) for document in (before, after))
    if old != new and after.id != CURRENT:
        yield Difference("summary", after.id, text=new, before=old)
    lines, known = prose_of(after), prose_of(before)
    came = [line for line in lines if line not in set(known)]
    went = [line for line in known if line not in set(lines)]
    if came or went:
        yield Difference("prose", after.id, text="\n".join(came), before="\n".join(went))


def summary_of(document: Document) -> str:
    """What the front matter says a document is about."""
    summary = document.header.fields.get("summary")
    return summary if isinstance(summary, str) else ""


def prose_of(document: Document) -> list[str]:
    """The lines outside of front matter, entries, plain bullets and headings that say something."""
    taken = {block.span.start for block in document.blocks if block.level}
    for entry in (*document.entries, *unsigned_entries(document)):
        taken.update(range(entry.span.start, entry.span.stop))
    rest = range(document.header.span.stop, len(document.lines))
    lines = (document.lines[at].strip() for at in rest if at not in taken)
    return [line for line in lines if line]
