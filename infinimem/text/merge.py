"""Three versions of a file as one: by entry, not by line. Pure; what cannot be merged stands between git's markers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any

from infinimem.errors import Unreadable
from infinimem.model import Document, Entry, Signature
from infinimem.text.document import body_tokens, item_lines, parse, read_heading, render
from infinimem.text.header import key_span, render_flow, render_scalar, set_key
from infinimem.text.lines import closing_fence, ending_of, is_blank, join_lines, strip_ending
from infinimem.text.signature import render_signature

LOG_ROWS = 20
CODE = "code"
OURS, MIDDLE, THEIRS = "<<<<<<< ours", "=======", ">>>>>>> theirs"


@dataclass(frozen=True, slots=True)
class Merged:
    """A merged file, and how many places of it a person has to decide."""

    content: bytes
    conflicts: int = 0


@dataclass(frozen=True, slots=True)
class Atom:
    """What is merged as one piece: an entry, known by its seqs whatever its words, or a line of prose.

    `twin` tells apart what shares seqs in one file, or what two machines gave the same seq.
    """

    seqs: tuple[int, ...] = ()
    line: str = ""
    twin: str = ""

    @property
    def is_blank(self) -> bool:
        """Whether it is a line with nothing on it."""
        return not self.seqs and not self.twin.startswith(CODE) and is_blank(self.line)


BLANK = Atom()
Words = Mapping[Atom, tuple[str, ...]]


def merge_appended(path: str, base: bytes, ours: bytes, theirs: bytes) -> Merged:
    """CURRENT or evidence: what either side added is kept whole, what either side took out stays out.

    Pieces are compared as they stand, an entry with all its lines. Ours come first, then what theirs adds.
    """
    old, mine, other = (pieces_of(parse(path, content)) for content in (base, ours, theirs))
    left = Counter(mine) - (Counter(old) - Counter(other))
    kept: list[tuple[str, ...]] = []
    for piece in reversed(mine):  # of equal pieces the first stay
        if is_blank(piece[0]) or left[piece] > 0:
            left[piece] -= 1
            kept.append(piece)
    kept.reverse()
    added = Counter(other) - Counter(old) - Counter(kept)
    for piece in other:
        if added[piece] > 0 and not is_blank(piece[0]):
            added[piece] -= 1
            kept.append(piece)
    ending = ending_of(parse(path, ours).lines or parse(path, theirs).lines)
    return Merged(join_lines(tuple(line + ending for piece in kept for line in piece)))


def pieces_of(document: Document) -> list[tuple[str, ...]]:
    """A file's entries with all their lines, and every other line, without terminators."""
    lines = bare_lines(document)
    starts = {entry.span.start: entry.span.stop for entry in document.entries}
    found = []
    at = 0
    while at < len(lines):
        stop = starts.get(at, at + 1)
        found.append(lines[at:stop])
        at = stop
    return found


def bare_lines(document: Document) -> tuple[str, ...]:
    """A document's lines without their terminators."""
    ending = ending_of(document.lines)
    return tuple(strip_ending(line, ending) for line in document.lines)


def merge_topic(path: str, base: bytes, ours: bytes, theirs: bytes) -> Merged | None:
    """A topic document, by entry; None where one of the three cannot be understood, or the result would not be.

    Both sides' entries are kept, the same one once, an edit wins over a deletion, two edits of one entry are a
    conflict around that entry alone. Prose is merged as text. Front matter is put together key by key.
    """
    old, mine, other = (parse(path, content) for content in (base, ours, theirs))
    if any(document.blocking for document in (old, mine, other)) or not (
        mine.header.span.stop and other.header.span.stop
    ):
        return None
    words = merge_words(*(words_of(document) for document in (old, mine, other)))
    names = words.renamed
    skeletons = [layout_of(document) for document in (old, mine, other)]
    skeletons[2] = [names.get(atom, atom) for atom in skeletons[2]]
    if leads_away(mine) != leads_away(other):
        layout, conflicts = after_redirect(*((1, 2) if leads_away(mine) else (2, 1)), skeletons, words.kept), 0
    else:
        layout, conflicts = merge_layout(skeletons[0], skeletons[1], skeletons[2], words.kept)
    layout = settled(layout, words.kept, skeletons)
    ending = ending_of(mine.lines) if ending_of(mine.lines) != ending_of(old.lines) else ending_of(other.lines)
    body = [line for atom in layout for line in (words.kept[atom] if atom.seqs else (atom.line,))]
    try:
        header, torn = merge_headers(old, mine, other)
        document = parse(path, join_lines(tuple(line + ending for line in (*header, *body))))
        document = counted(document)
    except Unreadable:
        return None
    conflicts += words.conflicts + torn
    if not conflicts and not says_just(document, words.kept.values()):
        return None
    return Merged(render(document), conflicts)


def says_just(document: Document, wanted: Iterable[tuple[str, ...]]) -> bool:
    """Whether the document reads without complaint, and as just these entries."""
    lines = bare_lines(document)
    there = Counter(lines[entry.span.start : entry.span.stop] for entry in document.entries)
    return not document.problems and there == Counter(wanted)


def counted(document: Document) -> Document:
    """The document with its token count right."""
    tokens = body_tokens(document)
    if document.problems or document.header.fields.get("token_count", tokens) == tokens:
        return document
    stop = document.header.span.stop
    header = set_key(document.path, document.lines[:stop], "token_count", str(tokens))
    return parse(document.path, join_lines((*header, *document.lines[stop:])))


# words


@dataclass(slots=True)
class Kept:
    """The entries that stay, each with its lines; `renamed` are theirs that only share a seq with ours."""

    kept: dict[Atom, tuple[str, ...]] = field(default_factory=dict)
    renamed: dict[Atom, Atom] = field(default_factory=dict)
    conflicts: int = 0


def words_of(document: Document) -> dict[Atom, tuple[str, ...]]:
    """Each entry's lines, without terminators."""
    lines = bare_lines(document)
    found: dict[Atom, tuple[str, ...]] = {}
    for entry in document.entries:
        found[atom_of(entry, found)] = lines[entry.span.start : entry.span.stop]
    return found


def atom_of(entry: Entry, taken: Mapping[Atom, object]) -> Atom:
    """The atom of an entry; a second one with the same seqs is another."""
    atom = Atom(entry.seqs)
    while atom in taken:
        atom = replace(atom, twin=f"{atom.twin}'")
    return atom


def merge_words(old: Words, mine: Words, other: Words) -> Kept:
    """What is left of all entries, three ways."""
    result = Kept()
    for atom in (*mine, *(atom for atom in other if atom not in mine)):
        was, ours, theirs = old.get(atom), mine.get(atom), other.get(atom)
        if ours is None or theirs is None:
            there = ours if theirs is None else theirs
            if there is not None and there != was:  # new on one side, or edited there and deleted here
                result.kept[atom] = there
        elif was is None and ours != theirs:  # two machines gave one seq
            result.kept[atom] = ours
            result.renamed[atom] = replace(atom, twin=f"{atom.twin}theirs")
            result.kept[result.renamed[atom]] = theirs
        elif theirs in (was, ours):
            result.kept[atom] = ours
        elif ours == was:
            result.kept[atom] = theirs
        else:
            assert was is not None
            both = merge_entry(was, ours, theirs)
            result.conflicts += not both
            result.kept[atom] = both or (OURS, *ours, MIDDLE, *theirs, THEIRS)
    return result


def merge_entry(was: tuple[str, ...], ours: tuple[str, ...], theirs: tuple[str, ...]) -> tuple[str, ...]:
    """An entry that both sides changed, where one changed its fields and the other its words; () where both did."""
    old, mine, other = (parse("", join_lines(tuple(f"{line}\n" for line in lines))) for lines in (was, ours, theirs))
    if any(len(document.entries) != 1 for document in (old, mine, other)):
        return ()
    one, two, three = (document.entries[0] for document in (old, mine, other))
    text = three.text if two.text == one.text else two.text
    if three.text not in (one.text, two.text, text):
        return ()
    fields: list[tuple[str, str]] = []
    for key in dict.fromkeys(key for key, _ in (*two.signature.fields, *three.signature.fields)):
        before, here, there = (entry.signature.get(key, "\0") for entry in (one, two, three))
        if here not in (before, there) and there != before:
            return ()
        value = there if here == before else here
        if value != "\0":
            fields.append((key, value))
    signature = Signature(one.seqs, tuple(fields))
    return tuple(line.removesuffix("\n") for line in item_lines(render_signature(signature), text))


# layout


def layout_of(document: Document) -> list[Atom]:
    """A document's body as atoms, front matter left out."""
    lines = bare_lines(document)
    entries = {entry.span.start: entry for entry in document.entries}
    taken: dict[Atom, bool] = {}
    found = []
    at = document.header.span.stop
    while at < len(lines):
        entry = entries.get(at)
        if entry is None:
            code_end = closing_fence(document.lines, at)
            found.append(Atom(line=lines[at]))
            at += 1
            while at <= code_end:  # no headings, no blank lines to be trimmed: code
                found.append(Atom(line=lines[at], twin=CODE))
                at += 1
            continue
        atom = atom_of(entry, taken)
        taken[atom] = True
        found.append(atom)
        at = entry.span.stop
    return found


def merge_layout(
    old: Sequence[Atom], mine: Sequence[Atom], other: Sequence[Atom], words: Words
) -> tuple[list[Atom], int]:
    """The order of everything, three ways; and in how many places prose cannot be merged."""
    result: list[Atom] = []
    conflicts = 0
    for was, ours, theirs in regions(old, mine, other):
        if theirs in (was, ours):
            result += ours
        elif ours == was:
            result += theirs
        else:
            both, torn = resolve(
                was, *([atom for atom in atoms if not atom.seqs or atom in words] for atoms in (ours, theirs))
            )
            result += both
            conflicts += torn
    return result, conflicts


def regions(
    old: Sequence[Atom], mine: Sequence[Atom], other: Sequence[Atom]
) -> Iterable[tuple[list[Atom], list[Atom], list[Atom]]]:
    """The three versions cut at what all of them share, in order (as diff3 does)."""
    here = matches(old, mine)
    there = matches(old, other)
    at = a = b = 0
    shared = [line for line in range(len(old)) if line in here and line in there]
    for line in [*shared, len(old)]:
        ours = here.get(line, len(mine))
        theirs = there.get(line, len(other))
        if line > at or ours > a or theirs > b:
            yield list(old[at:line]), list(mine[a:ours]), list(other[b:theirs])
        if line < len(old):
            yield [old[line]], [mine[ours]], [other[theirs]]
        at, a, b = line + 1, ours + 1, theirs + 1


def matches(old: Sequence[Atom], new: Sequence[Atom]) -> dict[int, int]:
    """For each atom of the old version that the new one keeps in place: where."""
    found: dict[int, int] = {}
    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        found.update((block.a + step, block.b + step) for step in range(block.size))
    return found


def resolve(was: list[Atom], ours: list[Atom], theirs: list[Atom]) -> tuple[list[Atom], int]:
    """A region that both sides changed. Entries of both stay; prose, where both wrote over the same, is a conflict.

    Headings are no prose: one that either side added stays, one that either side removed goes when nothing is left
    below it.
    """
    old, mine, other = (prose_of(atoms) for atoms in (was, ours, theirs))
    if other == old or mine == other:
        both = with_groups(ours, entries_alone(theirs))
    elif mine == old:
        both = with_groups(theirs, entries_alone(ours))
    elif is_within(old, mine) and is_within(old, other):
        both = with_groups(ours, paragraphs_added(theirs, old, ours))
    else:
        torn = [Atom(line=OURS), *mine, Atom(line=MIDDLE), *other, Atom(line=THEIRS)]
        rest = with_groups(entries_alone(ours), entries_alone(theirs))
        return [*torn, BLANK, *rest], 1
    doomed = {heading(atom) for atom in was if heading(atom) and not (atom in ours and atom in theirs)}
    return without_empty(both, doomed), 0


def without_empty(atoms: Sequence[Atom], names: set[str]) -> list[Atom]:
    """A region without those of some headings below which nothing stands."""
    return [
        atom
        for name, members in grouped(atoms).items()
        if name not in names or any(not atom.is_blank and not heading(atom) for atom in members)
        for atom in members
    ]


def prose_of(atoms: Sequence[Atom]) -> list[Atom]:
    """The lines that say something and are neither entries nor headings."""
    return [atom for atom in atoms if not atom.seqs and not atom.is_blank and not heading(atom)]


def entries_alone(atoms: Sequence[Atom]) -> list[Atom]:
    """The entries, and the headings that tell where they belong."""
    return [atom for atom in atoms if atom.seqs or heading(atom)]


def paragraphs_added(theirs: Sequence[Atom], old: Sequence[Atom], ours: Sequence[Atom]) -> list[Atom]:
    """A region without the prose that was there before; prose that ours lacks as a whole paragraph is made distinct.

    Lines such as ``` or |---| stand in many paragraphs: one of theirs is not there because ours has such a line.
    """
    rest = list(old)
    result: list[Atom] = []
    run: list[Atom] = []
    for atom in (*theirs, BLANK):
        if atom.seqs or atom.is_blank or heading(atom):
            known = any(list(ours[at : at + len(run)]) == run for at in range(len(ours)))
            result += run if known else [replace(one, twin=f"{one.twin}theirs") for one in run]
            run = []
            result.append(atom)
        elif rest and atom == rest[0]:
            rest.pop(0)
        else:
            run.append(atom)
    return result[:-1]


def is_within(few: Sequence[Atom], many: Sequence[Atom]) -> bool:
    """Whether a version only has lines added."""
    rest = iter(many)
    return all(atom in rest for atom in few)


def leads_away(document: Document) -> bool:
    """Whether a document only says where its topic has gone."""
    aux = document.header.fields.get("aux")
    return isinstance(aux, Mapping) and bool(aux.get("merged_into")) and not document.entries


def after_redirect(short: int, full: int, skeletons: Sequence[Sequence[Atom]], words: Words) -> list[Atom]:
    """A page that says where a topic has gone, and below it what the other side has added to the topic."""
    known = set(skeletons[0])
    result = list(skeletons[short])
    for members in grouped(skeletons[full]).values():
        fresh = [
            atom
            for atom in members
            if (atom in words if atom.seqs else atom not in known and not atom.is_blank and not heading(atom))
        ]
        if fresh:
            names = [atom for atom in members if heading(atom) and heading(atom) != "# title"]
            result += [BLANK, *names[:1], *([BLANK] if names else []), *fresh]
    return result


def heading(atom: Atom) -> str:
    """The heading that a line is, by name; the title is the same whatever it says. "" for none."""
    level, name = (0, "") if atom.seqs or atom.twin.startswith(CODE) else read_heading(atom.line, "\n")
    return "# title" if level == 1 else f"{level} {name.casefold()}" if level else ""


def with_groups(atoms: Sequence[Atom], more: Sequence[Atom]) -> list[Atom]:
    """The first region with what stands in a second one: below the same headings, or at the end."""
    groups = grouped(atoms)
    there = {atom for atom in atoms if not atom.is_blank}
    for name, members in grouped(more).items():
        fresh = [atom for atom in members if atom not in there and not (name and heading(atom))]
        if not any(not atom.is_blank for atom in fresh):
            continue
        if name in groups:
            groups[name] = added(groups[name], trimmed(fresh))
        elif any(heading(atom) and atom not in there for atom in members):
            last = next(reversed(groups))
            groups[last] = [*groups[last], *([] if not groups[last] or groups[last][-1].is_blank else [BLANK])]
            groups[name] = list(members)
        else:  # entries below a heading that the first region has not: after its last
            last = next(reversed(groups))
            groups[last] = added(groups[last], trimmed(fresh))
    return [atom for members in groups.values() for atom in members]


def grouped(atoms: Sequence[Atom]) -> dict[str, list[Atom]]:
    """Atoms by the heading that they stand below, each group with its heading; "" before the first."""
    groups: dict[str, list[Atom]] = {"": []}
    name = ""
    for atom in atoms:
        name = heading(atom) or name
        groups.setdefault(name, []).append(atom)
    return groups


def trimmed(atoms: Sequence[Atom]) -> list[Atom]:
    """Without blank lines at either end."""
    start, stop = 0, len(atoms)
    while start < stop and atoms[start].is_blank:
        start += 1
    while stop > start and atoms[stop - 1].is_blank:
        stop -= 1
    return list(atoms[start:stop])


def added(atoms: Sequence[Atom], more: Sequence[Atom]) -> list[Atom]:
    """A group with more at its end, above its closing blank lines."""
    stop = len(atoms)
    while stop and atoms[stop - 1].is_blank:
        stop -= 1
    apart = [BLANK] if stop and not (atoms[stop - 1].seqs and more[0].seqs) else []
    return [*atoms[:stop], *apart, *more, *atoms[stop:]]


def settled(layout: Sequence[Atom], words: Words, skeletons: Sequence[Sequence[Atom]]) -> list[Atom]:
    """The layout with every entry that stays just once, and no other; one that has lost its place follows its
    neighbour.
    """
    seen: set[Atom] = set()
    result: list[Atom] = []
    for atom in layout:
        if not atom.seqs or (atom in words and atom not in seen):
            result.append(atom)
            seen.add(atom)
    for atom in words:
        if atom not in seen:
            result.insert(place_after(result, atom, skeletons), atom)
            seen.add(atom)
    return result


def place_after(layout: Sequence[Atom], atom: Atom, skeletons: Sequence[Sequence[Atom]]) -> int:
    """Where an entry belongs: behind what precedes it in the version that has it, else at the end."""
    for version in reversed(skeletons):
        if atom in version:
            for before in reversed(version[: version.index(atom)]):
                if not before.is_blank and before in layout:
                    return list(layout).index(before) + 1
    return len(layout)


# front matter


def merge_headers(old: Document, mine: Document, other: Document) -> tuple[list[str], int]:
    """The front matter as lines without terminators, and how many keys both sides set to different values."""
    lines = mine.lines[: mine.header.span.stop]
    before, here, there = old.header.fields, mine.header.fields, other.header.fields
    torn: list[str] = []
    for key in there:
        if repr(here.get(key)) == repr(there[key]) or (key in before and repr(before[key]) == repr(there[key])):
            continue
        if key not in here and key in before:
            continue
        if repr(here.get(key)) == repr(before.get(key)):
            lines = set_key(mine.path, lines, key, raw_value(other, key))
        elif key in MERGED_KEYS:
            lines = set_key(mine.path, lines, key, MERGED_KEYS[key](old, mine, other))
        else:
            torn.append(key)
    for key in before:
        if key not in there and key not in MERGED_KEYS and repr(here.get(key)) == repr(before[key]):
            span = key_span(lines, parse(mine.path, join_lines(tuple(lines))).header, key)
            lines = (*lines[: span.start], *lines[span.stop :])  # theirs took it out
    ending = ending_of(mine.lines)
    result = [strip_ending(line, ending) for line in lines]
    for key in torn:
        span = key_span(tuple(f"{line}\n" for line in result), parse("", join_lines(lines)).header, key)
        value = f"{key}: {raw_value(other, key)}".split("\n")
        result[span.start : span.stop] = [OURS, *result[span.start : span.stop], MIDDLE, *value, THEIRS]
    return result, len(torn)


def raw_value(document: Document, key: str) -> str:
    """A key's value as it is written, its first line without the key."""
    span = key_span(document.lines, document.header, key)
    lines = bare_lines(document)[span.start : span.stop]
    if not lines:
        return render_flow(document.header.fields[key])
    first = lines[0].partition(":")[2].strip()
    return "\n".join((first, *lines[1:]))


def newest_summary(old: Document, mine: Document, other: Document) -> str:
    """The summary of the side whose update log is newer; of equal ones the longer."""
    versions = [(last_change(one), len(str(one.header.fields["summary"])), one) for one in (mine, other)]
    best = max(versions, key=lambda version: version[:2])[2]
    return render_scalar(str(best.header.fields["summary"]))


def last_change(document: Document) -> str:
    """The time of the update log's newest row; "" for none."""
    return max((time_of(row) for row in rows_of(document)), default="")


def rows_of(document: Document) -> list[Any]:
    """The update log's rows."""
    rows = document.header.fields.get("update_log")
    return list(rows) if isinstance(rows, list) else []


def time_of(row: Any) -> str:
    """When a row of the update log was written."""
    value = row.get("time") if isinstance(row, Mapping) else ""
    return value.strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(value, datetime) else str(value or "")


def both_logs(old: Document, mine: Document, other: Document) -> str:
    """The update logs together, in order of time, the newest rows."""
    rows = {repr(row): row for row in (*rows_of(mine), *rows_of(other))}
    newest = sorted(rows.values(), key=time_of)[-LOG_ROWS:]
    return "\n".join(["", *(f"- {render_row(row)}" for row in newest)])


def render_row(row: Any) -> str:
    """A row as the update log has it."""
    if isinstance(row, Mapping):
        pairs = [(key, time_of(row) if key == "time" else value) for key, value in row.items()]
        if all(isinstance(value, str | int) and str(value).isascii() for _, value in pairs):
            return "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
    return render_flow(row)


def both_aux(old: Document, mine: Document, other: Document) -> str:
    """`aux` key by key, lists member by member: what either side added or took out; ours where both changed it."""
    was, here, there = (document.header.fields.get("aux") or {} for document in (old, mine, other))
    if not isinstance(here, Mapping) or not isinstance(there, Mapping):
        raise Unreadable(f"{mine.path}: `aux` is not a list of `key: value`; make it one, or remove it")
    was = was if isinstance(was, Mapping) else {}
    both = {}
    for key in dict.fromkeys((*there, *here)):
        before, ours, theirs = was.get(key), here.get(key), there.get(key)
        if isinstance(ours, list) and isinstance(theirs, list):
            known = before if isinstance(before, list) else []
            gone = [one for one in known if one not in ours or one not in theirs]
            both[key] = [one for one in (*ours, *(one for one in theirs if one not in ours)) if one not in gone]
            continue
        value = theirs if ours == before else ours
        if value is not None:
            both[key] = value
    return render_flow(both)


MERGED_KEYS: Mapping[str, Callable[[Document, Document, Document], str]] = {
    "id": lambda old, mine, other: render_scalar(str(mine.header.fields["id"])),
    "summary": newest_summary,
    "token_count": lambda old, mine, other: str(mine.header.fields["token_count"]),
    "created_time": lambda old, mine, other: min(raw_value(mine, "created_time"), raw_value(other, "created_time")),
    "update_log": both_logs,
    "aux": both_aux,
}
