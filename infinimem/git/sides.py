"""The merges that git has made since the last look: their three versions of the library's files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from infinimem.git.run import must_git, run_git, under_way, work_tree
from infinimem.model import Document, Entry
from infinimem.store.files import read_bytes, write_private
from infinimem.store.layout import BUFFER, EVIDENCE, STATE, TOPICS
from infinimem.text.document import Event, events, parse
from infinimem.text.merge import bare_lines, pieces_of

SETTLED = f"{STATE}/settled"
"""Holds the commit up to which merges have been finished."""
SETTLING = f"{STATE}/settling"
"""Holds the name of the merge that is being finished: forgetting again follows its one transaction."""
FIRST_LOOK = 20
"""So many of the newest merges are looked at in a clone that has never been looked at."""
REBASE = re.compile(r"\(start\): checkout ")
MOST_STEPS = 200

Piece = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Merge:
    """Two commits that came together, the one that they come from ("" where there is none), and what came of it."""

    base: str
    ours: str
    theirs: str
    result: str

    @property
    def name(self) -> str:
        """How evidence names it once it is finished; the same whichever side is ours."""
        return "+".join(sorted((self.ours[:12], self.theirs[:12])))


class Side:
    """One version of the library's files that a merge touched."""

    def __init__(self, documents: Mapping[str, Document]) -> None:
        self.documents = documents

    @cached_property
    def pieces(self) -> frozenset[Piece]:
        """Every entry and event with its lines."""
        return frozenset(
            piece for document in self.documents.values() for piece in pieces_of(document) if piece[0][:1] in "-*+ \t"
        )

    @cached_property
    def firsts(self) -> dict[int, Entry]:
        """Each seq as it was first written: evidence knows best, then CURRENT, then a topic."""
        found: dict[int, Entry] = {}
        for path in sorted(self.documents, key=rank_of):
            for entry in self.documents[path].entries:
                if not entry.signature.get("rev"):
                    for seq in entry.seqs:
                        found.setdefault(seq, entry)
        return found

    @cached_property
    def shown(self) -> dict[int, tuple[str, Entry]]:
        """The topic line that shows a seq, and the path of its document."""
        return {
            seq: (path, entry)
            for path, document in self.documents.items()
            if path.startswith(f"{TOPICS}/")
            for entry in document.entries
            for seq in entry.seqs
        }

    @cached_property
    def events(self) -> list[tuple[str, Event]]:
        """What happened, in order, each with its line."""
        found = []
        for path in sorted(self.documents):
            if path.startswith(f"{EVIDENCE}/"):
                lines = bare_lines(self.documents[path])
                found += [(lines[event.line - 1], event) for event in events(lines)]
        return found

    def buffered(self) -> Mapping[int, Entry]:
        """CURRENT's entries by seq."""
        document = self.documents.get(BUFFER)
        return {seq: entry for entry in (document.entries if document else ()) for seq in entry.seqs}


def rank_of(path: str) -> tuple[int, str]:
    """Evidence, CURRENT, topics."""
    return (0 if path.startswith(f"{EVIDENCE}/") else 1 if path == BUFFER else 2, path)


def unsettled(root: Path) -> tuple[str, list[Merge]]:
    """Where git stands, and the merges since it was last looked at; ("", []) where git has nothing to say.

    While git is in the middle of something, that has to end first.
    """
    if work_tree(root) is None or under_way(root):
        return "", []
    ran = run_git(root, "rev-parse", "-q", "--verify", "HEAD^{commit}")
    head = ran.text.strip()
    seen = (read_bytes(root / SETTLED) or b"").decode("ascii", "replace").strip()
    if ran.code or head == seen:
        return "" if ran.code else head, []
    known = bool(seen) and run_git(root, "cat-file", "-e", f"{seen}^{{commit}}").code == 0
    span = [f"{seen}..{head}"] if known else ["-n", str(FIRST_LOOK), head]
    rows = must_git(root, "rev-list", "--merges", "--topo-order", "--reverse", "--parents", *span).text.split("\n")
    merges = []
    for row in filter(None, rows):
        result, first, *others = row.split()
        merges += [Merge(common(root, first, other), first, other, result) for other in others]
    return head, [*merges, *rebased(root, seen if known else "", head)]


def forgets_since(root: Path, head: str) -> Merge | None:
    """The way from where git was last looked at to where it stands, as a merge, if forgetting came in on it."""
    seen = (read_bytes(root / SETTLED) or b"").decode("ascii", "replace").strip()
    if seen in ("", head) or run_git(root, "cat-file", "-e", f"{seen}^{{commit}}").code:
        return None
    came = run_git(root, "diff", "--no-ext-diff", "--no-textconv", "-U0", seen, head, "--", EVIDENCE).out
    return Merge(seen, seen, head, head) if b"\n+- <event=forget," in came else None


def common(root: Path, one: str, other: str) -> str:
    """The commit that two come from; "" where they have nothing in common."""
    return run_git(root, "merge-base", one, other).text.split("\n")[0].strip()


def rebased(root: Path, seen: str, head: str) -> list[Merge]:
    """The newest rebase, as the merge that it amounts to: the commits moved, and what they were moved onto.

    One that had moved commits before they were `seen` is finished already.
    """
    ran = run_git(root, "log", "-g", "-n", str(MOST_STEPS), "--format=%H%x09%gs", "HEAD")
    rows = [row.partition("\t") for row in ran.text.split("\n") if row]
    for (onto, _, what), (before, _, _) in pairwise(rows):
        if not REBASE.search(what):
            continue
        if not seen or run_git(root, "merge-base", "--is-ancestor", seen, before).code == 0:
            return [Merge(common(root, onto, before), onto, before, head)]
        break
    return []


def published(root: Path, merge: Merge) -> str:
    """The one side that others know already, as remote branches tell; "" where both or neither are known.

    Whoever pulls has the other's entries from there, and nobody has yet seen theirs.
    """
    known = [
        side
        for side in (merge.ours, merge.theirs)
        if run_git(
            root, "for-each-ref", "--count=1", f"--contains={side}", f"--no-contains={merge.result}", "refs/remotes"
        ).out
    ]
    return known[0] if len(known) == 1 else ""


def is_untouched(root: Path, merge: Merge) -> bool:
    """Whether nobody has changed a topic since the merge."""
    return run_git(root, "diff", "--quiet", merge.result, "--", TOPICS).code == 0


def has_only_grown(root: Path, merge: Merge) -> bool:
    """Whether nothing but writing has changed CURRENT since the merge."""
    prefix = must_git(root, "rev-parse", "--show-prefix").text
    then = run_git(root, "cat-file", "blob", f"{merge.result}:{prefix}{BUFFER}").out
    return (read_bytes(root / BUFFER) or b"").startswith(then)


def note_settled(root: Path, head: str) -> None:
    """Remember up to where merges are finished."""
    if head:
        with suppress(OSError):  # then it is looked at once more
            write_private(root / SETTLED, f"{head}\n".encode())


def is_half_settled(root: Path, merge: Merge) -> bool:
    """Whether a process was killed while it finished this merge."""
    return read_bytes(root / SETTLING) == f"{merge.name}\n".encode()


def note_half_settled(root: Path, merge: Merge | None) -> None:
    """Remember which merge is being finished; None once it is."""
    if merge is not None:
        write_private(root / SETTLING, f"{merge.name}\n".encode())
    else:
        (root / SETTLING).unlink(missing_ok=True)


def changed_paths(root: Path, merge: Merge) -> list[str]:
    """The library's files that both versions together changed, relative to the library."""
    empty = must_git(root, "hash-object", "-t", "tree", "--stdin").text
    found: set[str] = set()
    for side in (merge.ours, merge.theirs):
        ran = must_git(
            root, "diff", "--no-renames", "--name-only", "--relative", "-z", merge.base or empty, side, "--", "."
        )
        found.update(name.decode("utf-8", "surrogateescape") for name in ran.out.split(b"\0") if name)
    return sorted(path for path in found if is_ours(path))


def is_ours(path: str) -> bool:
    """Whether a file of the folder is memory."""
    return path == BUFFER or (path.endswith(".md") and path.startswith((f"{TOPICS}/", f"{EVIDENCE}/")))


def read_side(root: Path, commit: str, paths: Iterable[str]) -> Side:
    """Some files as they stood in a commit."""
    if not commit:
        return Side({})
    prefix = must_git(root, "rev-parse", "--show-prefix").text
    names = list(paths)
    asked = "".join(f"{commit}:{prefix}{name}\n" for name in names)
    out = must_git(root, "cat-file", "--batch", content=asked.encode("utf-8", "surrogateescape")).out
    documents: dict[str, Document] = {}
    at = 0
    for name in names:
        line_end = out.index(b"\n", at)
        head = out[at:line_end].split()
        at = line_end + 1
        if len(head) == 3 and head[1] == b"blob":
            size = int(head[2])
            documents[name] = parse(name, out[at : at + size])
            at += size + 1
    return Side(documents)
