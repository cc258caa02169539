"""One commit per flush, where the library's settings ask for it: only its own files, only with a free hand.

The index that the user sees is never the means: `git commit --only` makes its own, so that what they have staged
meanwhile stays staged and apart, and a hook that refuses leaves everything as it was.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from infinimem.consolidate.run import Report
from infinimem.consolidate.story import gains, stories
from infinimem.errors import InfinimemError
from infinimem.git.run import run_git, under_way, work_tree
from infinimem.model import Merge, Retire, Split, Step, path_of
from infinimem.store.buffer import refuse_links
from infinimem.store.evidence import read_records
from infinimem.store.files import read_bytes, write_private
from infinimem.store.layout import ATTRIBUTES, BUFFER, EVIDENCE, SETTINGS, STATE
from infinimem.store.read import read_file
from infinimem.text.lines import counted

PENDING = f"{STATE}/uncommitted"
"""The files of a run that could not be committed: they go with the next commit."""
LOCKED = "index.lock"
TRIES = 25
PAUSE = 0.2
"""Another git that holds the index for longer than five seconds is waiting for a person."""
LONGEST = 60
MOST_LINES = 100
"""Lines of a message's body: after them a reader looks at the commit itself."""
HUNK = re.compile(rb"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit's short id, or in one line why none was made; both empty where there was nothing to commit."""

    id: str = ""
    why_not: str = ""


def commit_flush(root: Path, report: Report, *, undone: bool = False) -> Commit:
    """Commit what a flush, a split, a merge or an undo changed, saying in words what that was."""
    subject = undo_subject(report) if undone else subject_of(report)
    return commit_paths(root, paths_of(report), subject, body_of(root, report))


def commit_repairs(root: Path, repairs: Sequence[tuple[str, str]]) -> Commit:
    """Commit what `check --fix` repaired: (path, what was wrong) for each repair."""
    subject = f"memory: {counted(len(repairs), 'repair')}"
    return commit_paths(root, [path for path, _ in repairs], subject, [f"{path}: {what}" for path, what in repairs])


def commit_paths(root: Path, paths: Iterable[str], subject: str, body: Sequence[str] = ()) -> Commit:
    """Commit some of the library's files with CURRENT and evidence. Never raises: the files themselves are safe."""
    own = dict.fromkeys(paths)
    earlier = [path for path in read_pending(root) if path not in own]
    wanted = {*own, *earlier}
    also = [f"and of an earlier run: {', '.join(earlier)}"] if earlier else []
    try:
        note_pending(root, wanted)
        commit = attempt(root, wanted, subject, [*body, *([""] * bool(body and also)), *also])
        if commit.why_not:  # another process may have committed its own meanwhile
            note_pending(root, {*wanted, *read_pending(root)})
        else:
            (root / PENDING).unlink(missing_ok=True)
    except InfinimemError as error:
        return Commit(why_not=f"not committed: {error}")
    except OSError as error:
        return Commit(why_not=f"not committed: {error.filename or root}: {error.strerror}")
    return commit


def attempt(root: Path, wanted: set[str], subject: str, body: Sequence[str]) -> Commit:
    """Make the commit, unless something stands in the way."""
    why_not = obstacle(root)
    if why_not:
        return Commit(why_not=f"not committed: {why_not}")
    changed = [path for path in changed_paths(root) if is_ours(path, wanted)]
    new = [path for path in new_paths(root) if is_ours(path, wanted) or path in (SETTINGS, ATTRIBUTES)]
    if not changed and not new:
        return Commit()
    secrets = secret_places(root, changed, new)
    if secrets:
        return Commit(why_not=f"not committed: {secrets}")
    message = "\n".join(map(printable, [subject, *(["", *shortened(body)] if body else [])])) + "\n"
    return record(root, [*changed, *new], new, message)


def obstacle(root: Path) -> str:
    """Why nothing may be committed now, and what to do about it; "" when nothing stands in the way."""
    if work_tree(root) is None:
        return f"{root} lies in no git repository; run: infinimem init --git"
    doing = under_way(root)
    if doing:
        return f"git is in the middle of a {doing}; finish that, the next flush commits this too"
    branch = run_git(root, "symbolic-ref", "--quiet", "HEAD")
    if branch.code:
        no_branch = "no branch is checked out; switch to one, the next flush commits this too"
        return first_line(branch.said) or no_branch
    staged = run_git(root, "diff", "--cached", "--quiet", "--no-ext-diff")
    if staged.code == 1:
        return "you have something staged; commit or unstage that, the next flush commits this too"
    if staged.code:
        return first_line(staged.said) or "git diff failed"
    for who in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        if run_git(root, "-c", "user.useConfigOnly=true", "var", who).code:
            return "git knows no name and e-mail of yours; set user.name and user.email with git config"
    return ""


def changed_paths(root: Path) -> list[str]:
    """The tracked files of the library that are not as the last commit has them."""
    if run_git(root, "rev-parse", "--verify", "--quiet", "HEAD").code:
        return []
    ran = run_git(root, "diff", "--name-only", "--no-renames", "--no-ext-diff", "--relative", "-z", "HEAD", "--", ".")
    return names_in(ran.out)


def new_paths(root: Path) -> list[str]:
    """The files of the library that git does not know yet and does not ignore."""
    return names_in(run_git(root, "ls-files", "--others", "--exclude-standard", "-z", "--", ".").out)


def names_in(listing: bytes) -> list[str]:
    """The names of a listing that ends each with a NUL."""
    return [os.fsdecode(name) for name in listing.split(b"\0") if name]


def is_ours(path: str, wanted: set[str]) -> bool:
    """Whether a file belongs into this commit."""
    return path in wanted or path == BUFFER or (path.startswith(f"{EVIDENCE}/") and path.endswith(".md"))


def record(root: Path, paths: Sequence[str], new: Sequence[str], message: str) -> Commit:
    """Run git; what a refusing hook or a busy index leaves is what was there before."""
    if new:
        added = patiently(root, "add", "--intent-to-add", *STDIN, content=pathspecs(new))
        if added:
            return Commit(why_not=f"not committed: {added}")
    failed = patiently(
        root,
        "-c",
        "user.useConfigOnly=true",
        "commit",
        "--quiet",
        "--no-gpg-sign",
        "--cleanup=whitespace",
        f"--message={message}",
        "--only",
        *STDIN,
        content=pathspecs(paths),
    )
    if failed:
        if new:
            patiently(root, "reset", "--quiet", *STDIN, content=pathspecs(new))
        return Commit(why_not=f"not committed: {failed}; the files are as they should be")
    return Commit(run_git(root, "rev-parse", "--short", "HEAD").text)


def pathspecs(paths: Iterable[str]) -> bytes:
    """Paths as git reads them from its standard input: each means only itself."""
    return b"".join(b":(literal)" + os.fsencode(path) + b"\0" for path in paths)


def patiently(root: Path, *arguments: str, content: bytes) -> str:
    """Run git, again while another one holds the index; what it said when it failed, "" when it did not."""
    for attempt in range(TRIES):
        ran = run_git(root, *arguments, content=content)
        if not ran.code:
            return ""
        if LOCKED not in ran.said:
            return last_line(ran.said) or f"git ended with {ran.code}"
        if attempt < TRIES - 1:
            time.sleep(PAUSE)
    return "another git holds index.lock; the next flush commits this too"


def first_line(said: str) -> str:
    """What git says first."""
    return said.split("\n", 1)[0].strip()


def last_line(said: str) -> str:
    """What a hook or git said last, where the reason mostly stands."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("hint:")]
    return lines[-1] if lines else ""


# What could not be committed


def read_pending(root: Path) -> list[str]:
    """The files of earlier runs that are in no commit yet."""
    return names_in(read_bytes(root / PENDING) or b"")


def note_pending(root: Path, paths: Iterable[str]) -> None:
    """Remember files until they are committed, should this process not live to do it."""
    refuse_links(root)
    if (root / PENDING).is_symlink():
        (root / PENDING).unlink()
    write_private(root / PENDING, b"".join(os.fsencode(path) + b"\0" for path in sorted(paths)))


# Secrets


def secret_places(root: Path, changed: Sequence[str], new: Sequence[str]) -> str:
    """What looks like a key or a password among the lines that a commit would add, by file and line."""
    from infinimem.secrets import MEANT, secrets_of

    documents = {path: read_file(root, path).document for path in [*changed, *new] if path.endswith(".md")}
    meant = {
        seq
        for document in documents.values()
        for entry in document.entries
        if MEANT in entry.signature.fields
        for seq in entry.seqs
    }
    places = []
    for path, document in documents.items():
        lines = set(range(1, len(document.lines) + 1)) if path in new else set(added_lines(root, path))
        places += [f"{path}:{line} ({kind})" for kind, line in secrets_of(document, meant) if line in lines]
    if not places:
        return ""
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""
    named = f"{', '.join(places[:3])}{more}"
    return f"{named} looks like a secret; take it out, or add secret=ok to the entry if it is meant"


def added_lines(root: Path, path: str) -> Iterator[int]:
    """The 1-based lines of a file that its last committed version lacks."""
    ran = run_git(root, "diff", "-U0", "--no-ext-diff", "--no-textconv", "HEAD", "--", f":(literal){path}")
    for hunk in HUNK.finditer(ran.out):
        first = int(hunk[1])
        yield from range(first, first + (int(hunk[2]) if hunk[2] is not None else 1))


# Words


def paths_of(report: Report) -> list[str]:
    """The topic documents that a report names."""
    return [path_of(topic) for topic in (*report.created, *report.changed, *report.removed, *report.signed)]


def subject_of(report: Report) -> str:
    """The first line of the message."""
    places = [*report.created, *report.changed]
    if report.signed and not report.flushed:
        return f"memory: what was typed into {counted(len(report.signed), 'topic')}"
    if report.seqs:
        where = places[0] if len(places) == 1 else counted(len(places), "topic")
        return f"memory: {counted(len(report.seqs), 'entry', 'entries')} into {where}"
    for step in reshapings(report):
        if isinstance(step, Split):
            return f"memory: split {step.topic} into {counted(len(step.parts), 'topic')}"
        if isinstance(step, Merge):
            return f"memory: merged {counted(len(step.topics), 'topic')} into {step.into}"
    return f"memory: {counted(len(places) + len(report.removed), 'topic')} tidied"


def undo_subject(report: Report) -> str:
    """The first line of the message of an undo."""
    if report.seqs:
        return f"memory: undone, {counted(len(report.seqs), 'entry', 'entries')} back in CURRENT"
    return f"memory: undone, {counted(len(report.changed) + len(report.removed), 'topic')} as before"


def body_of(root: Path, report: Report) -> list[str]:
    """What became of which topic and which entry, in words."""
    gained = gains(report)
    lines = []
    for topic in (*report.created, *report.changed, *report.removed):
        marks = ["new"] if topic in report.created else ["removed"] if topic in report.removed else []
        marks += [f"+{gained[topic]}"] if gained.get(topic) else []
        lines.append(f"{topic}: {', '.join(marks) or 'changed'}")
    told = stories(reshapings(report), report.removed)
    gone = [retired_line(step, words) for words in [words_of(root, report.retired)] for step in report.retired]
    return lines + ["", *told] * bool(told) + ["", *gone] * bool(gone)


def reshapings(report: Report) -> list[Step]:
    """The steps that a reader of topics notices: splits, merges and joins."""
    done = (outcome.step for outcome in report.outcomes if outcome.status == "executed")
    return [step for step in done if not isinstance(step, Retire)]


def words_of(root: Path, retired: Sequence[Retire]) -> dict[int, str]:
    """The words of entries that were replaced and of those that replaced them, on a line each."""
    records = read_records(root, [seq for step in retired for seq in (step.seq, step.by) if seq])
    return {seq: gist(record.newest.text) for seq, record in records.items() if record.newest is not None}


def retired_line(step: Retire, words: dict[int, str]) -> str:
    """`"Maya works at Fjord Labs." (12) → "Maya joined Nordlys." (41)`"""
    old = f'"{words[step.seq]}" ({step.seq})' if step.seq in words else str(step.seq)
    if not step.by:
        return f"{old} {step.why}"
    new = f'"{words[step.by]}" ({step.by})' if step.by in words else str(step.by)
    return f"{old} → {new}" if step.why == "superseded" else f"{old} {step.why} of {new}"


def gist(text: str) -> str:
    """The beginning of an entry's words, on one line."""
    line = " ".join(printable(text).split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1].rsplit(" ", 1)[0] + "…"


def printable(text: str) -> str:
    """A text in which nothing breaks a line, a terminal or a command's argument."""
    return "".join(char if char.isprintable() else " " for char in text)


def shortened(body: Sequence[str]) -> list[str]:
    """A body of a length that is read."""
    left = len(body) - MOST_LINES
    return [*body] if left <= 0 else [*body[:MOST_LINES], f"… and {left} lines more"]
