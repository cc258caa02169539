"""The watch itself: wait, look at what changed, check it, sign it, flush what is due.

Events only wake it; what changed is seen by comparing the files with how they looked before. So an event that
was lost, doubled or invented costs a look, and nothing else depends on it.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinimem.consolidate.due import seconds_until_due
from infinimem.errors import BadInput, ChangedOnDisk, InfinimemError, NeedsAttention, StorageFailed
from infinimem.library import Library
from infinimem.model import FileState, Problem
from infinimem.saved import check_saved, is_loose, sign_saved
from infinimem.store.buffer import refuse_links
from infinimem.store.files import digest_of, read_bytes
from infinimem.store.layout import BUFFER, EDIT_LOCK, EVIDENCE, SETTINGS, WATCH_LOCK, is_library
from infinimem.store.lock import exclusive, is_free
from infinimem.store.read import list_files, read_file, seen_of
from infinimem.store.transaction import written_digests
from infinimem.text.lines import counted
from infinimem.text.signature import render_seqs
from infinimem.watch import git
from infinimem.watch.bell import Bell, Eyes, eyes_on
from infinimem.watch.flushing import Flushed, Flushing

if TYPE_CHECKING:
    from infinimem.search.index import Index

HEARTBEAT = 5.0
"""Seconds between looks at whether the folders are still the same ones."""
FULL_LOOK = 300.0
"""Seconds after which the files are looked at without an event: a kernel out of watches may keep some to itself."""
SIGN_AFTER = 2.0
"""Seconds that a file has to be quiet before its plain bullets are signed."""
GONE_AFTER = 1.0
"""Seconds that a file has to be gone before it is said: many an editor renames the old one away first."""
SAID_AFTER = 1.0
"""Seconds that git has to be at work before that is said."""
AGAIN = 0.5
"""Seconds between looks at whether git has finished."""
RETRY = (60.0, 3600.0)
"""Seconds after which a flush that left CURRENT due is tried again: at first, and at most."""
LISTED = 20
"""Files of one batch that are named one by one."""
M_ARENA_MAX = -8
"""What malloc.h calls it."""
POLL_SHARE = 50
"""Without events, the files are looked at as seldom as keeps this at 1/50 of a core; no oftener than a second."""


@dataclass(frozen=True, slots=True)
class News:
    """Something that a watch has to say.

    `event` is watching, polling, saved, moved, gone, problem, signed, flushed, failed, waiting, lost, back or
    stopped; `count` the number of topics, or of files where they are too many to be named.
    """

    event: str
    path: str = ""
    line: int = 0
    message: str = ""
    code: str = ""
    blocking: bool = False
    fixable: bool = False
    seqs: tuple[int, ...] = ()
    count: int = 0


Tell = Callable[[News], None]


def watch(library: Library, tell: Tell, bell: Bell, *, poll: bool = False) -> None:
    """Watch a library until the bell says stop; where its folder vanishes, wait until it is back.

    Raises `NeedsAttention` when another watch is at work on it, `BadInput` when its settings cannot be understood.
    """
    root = library.root
    share_one_arena()
    while not bell.is_stopped:
        try:
            with only_watch(root), eyes_on(root, bell, polling_said(tell), poll=poll) as eyes:
                Session(library, tell, bell, eyes).run()
        except StorageFailed:
            if is_there(root):
                raise
        if bell.is_stopped:
            break
        tell(News("lost", message=f"{root} is no library any more; waiting until it is back"))
        while not bell.is_stopped and not is_there(root):
            bell.wait(GONE_AFTER)
        if not bell.is_stopped:
            tell(News("back", message=f"{root} is back"))
        library = Library(root, library.clock)
    tell(News("stopped"))


def share_one_arena() -> None:
    """Have all threads allocate from one arena: the index is written by new threads each time, and for each that
    is new glibc would keep what the last one freed (see benchmarks/README.md)."""
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # glibc
        mallopt(M_ARENA_MAX, 1)


def give_memory_back() -> None:
    """Return to the system what a look at many files needed and the next will not, where glibc would keep it."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def polling_said(tell: Tell) -> Callable[[str], None]:
    """Says that files are looked at by the clock."""

    def say(why: str) -> None:
        tell(News("polling", message=f"{why}, so the files are looked at every few seconds instead"))

    return say


@contextmanager
def only_watch(root: Path) -> Iterator[None]:
    """Be the only watch on a library. Raises `NeedsAttention` when there is another."""
    refuse_links(root)
    try:
        with exclusive(root / WATCH_LOCK, wait=0.0, doing="watch") as note:
            os.ftruncate(note, 0)
            os.pwrite(note, f"{os.getpid()}\n".encode(), 0)
            yield
    except NeedsAttention as error:
        if not str(error).startswith(str(root / WATCH_LOCK)):
            raise
        holder = (read_bytes(root / WATCH_LOCK) or b"").decode("ascii", "replace").strip()
        who = f" (process {holder})" if holder else ""
        raise NeedsAttention(f"{root} is watched already{who}; one watch is enough for a library") from None


def is_there(root: Path) -> bool:
    """Whether the library is where it was; a folder that cannot be read is not."""
    try:
        return is_library(root)
    except StorageFailed:
        return False


class Session:
    """A watch of one folder, from its coming to its going."""

    def __init__(self, library: Library, tell: Tell, bell: Bell, eyes: Eyes) -> None:
        self.library = library
        self.root = library.root
        self.tell = tell
        self.bell = bell
        self.eyes = eyes
        self.flushing = Flushing(self.root, bell)
        self.known: dict[str, FileState] = {}
        self.settings_seen: FileState | None = None
        self.to_sign: dict[str, float] = {}
        self.open_in_editor: set[str] = set()
        self.missing: dict[str, float] = {}
        self.signed: dict[str, str] = {}
        self.told: dict[str, str] = {}
        self.at_first: dict[str, FileState] = {}
        self.retry_at = math.inf
        self.trouble = ""
        self.clocks = time.time() - time.monotonic()
        self.waiting_for = ""
        self.moving = 0.0
        self.due_at = math.inf
        self.not_before = 0.0
        self.patience = RETRY[0]
        self.looked_at = 0.0
        self.poll_every = 1.0

    def run(self) -> None:
        """Until the bell says stop or the library is gone."""
        self.begin()
        try:
            while True:
                rang = self.bell.wait(self.seconds_to_wait())
                if rang:
                    self.bell.settle()
                if self.bell.is_stopped or not is_there(self.root):
                    return
                try:
                    self.renew_eyes()
                    if rang or self.is_time_to_look():
                        self.look()
                    self.attend()
                except (InfinimemError, OSError) as error:
                    self.say_trouble(error)
        finally:
            self.flushing.stop()

    def begin(self) -> None:
        """See how everything looks now; CURRENT is then looked at as if it had just been saved."""
        self.keep_settings()  # read now, so that a wrong one is said before anything is done
        self.known = self.listing()
        self.settings_seen = seen_at(self.root / SETTINGS)
        self.told = written_digests(self.root)
        topics = sum(path.startswith("topics/") for path in self.known)
        self.tell(News("watching", message=str(self.root), count=topics))
        self.at_first = {path: seen for path, seen in self.known.items() if path == BUFFER}
        self.known.pop(BUFFER, None)
        self.bell.ring()

    def say_trouble(self, error: InfinimemError | OSError) -> None:
        """A look that failed is made again: at once where a file went away under it, else in a while."""
        is_fleeting = isinstance(error, FileNotFoundError)
        self.retry_at = time.monotonic() + (AGAIN if is_fleeting else HEARTBEAT)
        if not is_fleeting and str(error) != self.trouble:
            self.trouble = str(error)
            self.tell(News("failed", message=self.trouble))

    # Time

    def seconds_to_wait(self) -> float:
        """Until the next thing that has to be done without an event."""
        now = time.monotonic()
        if self.moving:
            return AGAIN
        if self.retry_at < math.inf:  # whatever else has come due may be what fails
            return max(0.0, self.retry_at - now)
        times = [now + HEARTBEAT]
        times += [max(self.due_at, self.not_before)] if self.flushing.process is None else []
        times += [since + GONE_AFTER for since in self.missing.values()]
        times += self.to_sign.values()
        times += [self.looked_at + self.poll_every] if self.eyes.observer is None else []
        return max(0.0, min(times) - now)

    def is_time_to_look(self) -> bool:
        """Whether the files have to be looked at though nothing rang."""
        pause = FULL_LOOK if self.eyes.observer is not None else self.poll_every
        return bool(self.moving) or time.monotonic() >= min(self.looked_at + pause, self.retry_at)

    def renew_eyes(self) -> None:
        """Listen to the folders that are there now, where one was removed or put in another's place."""
        if self.eyes.observer is not None and self.eyes.is_stale():
            why = self.eyes.open()
            if why:
                polling_said(self.tell)(why)
            self.bell.ring()

    # Looking

    def listing(self) -> dict[str, FileState]:
        """How every file looks from outside now."""
        started = time.monotonic()
        found = list_files(self.root)
        self.looked_at = time.monotonic()
        self.poll_every = max(1.0, (self.looked_at - started) * POLL_SHARE)
        return found

    def look(self) -> None:
        """Find what changed since the last look, and treat it as saved."""
        if self.is_moving():
            return
        self.look_at_settings()
        before, now = self.known, self.listing()
        changed = [path for path, seen in now.items() if before.get(path) != seen]
        gone = before.keys() - now.keys()
        moved = renames(before, now)
        at = time.monotonic()
        self.missing.update((path, at) for path in sorted(gone - set(moved.values())))
        if changed or gone:
            quiet = {path for path in changed if self.at_first.get(path) == now[path]}
            self.take([path for path in changed if path not in moved], moved, quiet)
            give_memory_back()
        self.known, self.retry_at, self.trouble = now, math.inf, ""

    def is_moving(self) -> bool:
        """Whether git is changing files at this moment; said when it takes its time."""
        lock = git.moving(self.root)
        if not lock:
            self.moving = 0.0
            return False
        self.moving = self.moving or time.monotonic()
        if time.monotonic() >= self.moving + SAID_AFTER:
            self.say_waiting(lock, f"git is at work ({lock}); waiting until it is done")
        return True

    def say_waiting(self, what: str, message: str) -> None:
        """Say once what is waited for."""
        if what != self.waiting_for:
            self.tell(News("waiting", message=message))
        self.waiting_for = what

    def look_at_settings(self) -> None:
        """Use settings that were changed, from now on; a wrong one is said and the old ones stay."""
        seen = seen_at(self.root / SETTINGS)
        if seen == self.settings_seen:
            return
        self.settings_seen = seen
        try:
            self.keep_settings()
        except BadInput:
            self.check([SETTINGS], self.library.index())
        else:
            self.tell(News("saved", SETTINGS))
            self.consider_buffer()

    def keep_settings(self) -> None:
        """Keep to the settings as they are now, until they are read again. Raises `BadInput`; then nothing changes."""
        fresh = Library(self.root, self.library.clock)
        self.library = Library(self.root, self.library.clock, settings=fresh.settings)

    def take(self, changed: Sequence[str], moved: Mapping[str, str], quiet: Collection[str]) -> None:
        """Everything that a save sets off: index, news (but of `quiet` ones), check, and what has to be done later."""
        index = self.library.index()
        for path, old in moved.items():
            self.tell(News("moved", path, message=f"was {old}"))
        ours = written_digests(self.root) | self.signed
        saved = []
        for path in changed:
            self.missing.pop(path, None)
            if path in quiet or path.startswith(f"{EVIDENCE}/") or self.is_ours(path, ours):
                self.to_sign.pop(path, None)
                continue
            saved.append(path)
        self.at_first = {}
        self.tell_saved(saved)
        self.check([*moved, *changed], index)
        if BUFFER in changed:
            self.consider_buffer()

    def is_ours(self, path: str, digests: dict[str, str]) -> bool:
        """Whether infinimem has just made the file what it is: a flush, a split, a merge, a signature.

        Once: whoever goes back to that state later has saved it.
        """
        if path not in digests or self.told.get(path) == digests[path]:
            return False
        content = read_bytes(self.root / path)
        if content is None or digest_of(content) != digests[path]:
            return False
        self.told[path] = digests[path]
        return True

    def tell_saved(self, paths: Sequence[str]) -> None:
        """Name the files that were saved, or count them."""
        if len(paths) > LISTED:
            self.tell(News("saved", count=len(paths)))
            return
        for path in paths:
            self.tell(News("saved", path))

    def check(self, paths: Sequence[str], index: Index) -> None:
        """Say what is wrong in files, and note those with bullets to be signed."""
        for path in paths:
            if self.bell.is_stopped:
                return
            for finding in check_saved(self.root, path, index):
                self.tell(problem_news(finding.problem, fixable=finding.fixable))
            if not path.startswith(f"{EVIDENCE}/") and path != SETTINGS and is_loose(self.root, path):
                self.to_sign[path] = time.monotonic() + SIGN_AFTER
            else:
                self.to_sign.pop(path, None)

    def consider_buffer(self) -> None:
        """Work out when CURRENT is due."""
        document = read_file(self.root, BUFFER).document
        left = seconds_until_due(document, self.library.settings, self.library.clock())
        self.due_at = time.monotonic() + left

    # Doing

    def attend(self) -> None:
        """Do what has come due."""
        self.tell_gone()
        ended = self.flushing.take_ended()
        if ended is not None:
            self.tell_flushed(ended)
        at = time.monotonic()
        if abs(time.time() - at - self.clocks) > HEARTBEAT:  # the machine slept, or its clock was set
            self.clocks = time.time() - at
            self.consider_buffer()
        if git.moving(self.root):  # and is to be looked at when it has ended
            self.moving = self.moving or at
        if self.moving or self.bell.is_stopped:
            return
        ready = [path for path, when in self.to_sign.items() if when <= at]
        is_due = max(self.due_at, self.not_before) <= at and self.flushing.process is None
        if not ready and not is_due:
            return
        pending = git.unfinished(self.root)
        if pending:
            self.put_off(ready, pending)
            return
        self.waiting_for = ""
        for path in ready:
            self.sign(path)
        if is_due:
            self.flushing.start()

    def put_off(self, ready: Sequence[str], pending: str) -> None:
        """Write nothing while git waits for a person to finish something."""
        message = f"{pending}; nothing is signed or flushed until that is done"
        self.say_waiting(pending, message)
        for path in ready:
            self.to_sign[path] = time.monotonic() + SIGN_AFTER
        self.not_before = max(self.not_before, time.monotonic() + SIGN_AFTER)

    def tell_gone(self) -> None:
        """Say which files are gone for good."""
        at = time.monotonic()
        gone = [path for path, since in self.missing.items() if at >= since + GONE_AFTER]
        for path in gone:
            del self.missing[path]
        gone = [path for path in gone if path not in self.known]
        if len(gone) > LISTED:
            self.tell(News("gone", count=len(gone)))
        else:
            for path in gone:
                self.tell(News("gone", path))
        for path in gone:
            self.to_sign.pop(path, None)
            self.signed.pop(path, None)
            if path == BUFFER:
                self.due_at = math.inf

    def sign(self, path: str) -> None:
        """Sign the plain bullets of a file that has been quiet for a moment."""
        later = time.monotonic() + SIGN_AFTER
        if held_open(self.root / path) or not is_free(self.root / EDIT_LOCK):
            if path not in self.open_in_editor:
                self.open_in_editor.add(path)
                self.tell(News("waiting", path, message="its plain bullets are signed when the editor closes it"))
            self.to_sign[path] = later
            return
        self.open_in_editor.discard(path)
        del self.to_sign[path]
        try:
            seqs = sign_saved(self.root, path, self.library.clock(), wait=0.0)
        except (ChangedOnDisk, NeedsAttention) as error:
            if isinstance(error, StorageFailed):
                self.tell(News("failed", path, message=str(error)))
            elif is_loose(self.root, path):  # saved again, or a flush is at work
                self.to_sign[path] = later
            return
        content = read_bytes(self.root / path)
        if seqs and content is not None:
            self.signed[path] = digest_of(content)
            self.tell(News("signed", path, message=f"signed as {render_seqs(seqs)}", seqs=tuple(seqs)))
        if path == BUFFER:
            self.consider_buffer()

    def tell_flushed(self, ended: Flushed) -> None:
        """Say how a flush went, and when to try again."""
        self.not_before = time.monotonic() + self.patience
        self.look()
        report = ended.report
        if report.get("flushed"):
            self.tell(News("flushed", message=flush_words(report), seqs=tuple(report["seqs"])))
        if ended.code not in (0, 130) and ended.talk:
            last = ended.talk.splitlines()[-1].removeprefix("infinimem: ")
            self.tell(News("failed", message=f"flush: {last}"))
        self.consider_buffer()
        if self.due_at <= time.monotonic():
            self.patience = min(self.patience * 2, RETRY[1])
        else:
            self.not_before, self.patience = 0.0, RETRY[0]


def problem_news(problem: Problem, *, fixable: bool) -> News:
    """A problem as news."""
    return News(
        "problem", problem.path, problem.line, problem.message, problem.code, blocking=problem.blocking, fixable=fixable
    )


def renames(before: Mapping[str, FileState], after: Mapping[str, FileState]) -> dict[str, str]:
    """Files that only changed their name: new path → old path."""
    old = {seen_as(before[path]): path for path in before.keys() - after.keys()}
    fresh = after.keys() - before.keys() if old else ()
    return {path: old[seen_as(after[path])] for path in sorted(fresh) if seen_as(after[path]) in old}


def seen_as(seen: FileState) -> tuple[int, int, int]:
    """What a rename leaves as it is."""
    return seen.inode, seen.size, seen.mtime_ns


def flush_words(report: dict[str, Any]) -> str:
    """What a flush did, in one line."""
    seqs, made = len(report["seqs"]), len(report["created"])
    topics = made + len(report["changed"])
    new = f" ({made} new)" if made else ""
    retired = f", {len(report['retired'])} retired" if report["retired"] else ""
    return f"{counted(seqs, 'entry', 'entries')} into {counted(topics, 'topic')}{new}{retired}"


def seen_at(path: Path) -> FileState | None:
    """How a file looks from outside; None where there is none."""
    try:
        return seen_of(path.stat())
    except OSError:
        return None


def held_open(path: Path) -> bool:
    """Whether an editor says beside the file that it has it open: vim's swap file, Emacs' lock, Kate's."""
    name = path.name
    marks = (f".{name}.swp", f".{name}.swo", f".#{name}", f".{name}.kate-swp")
    return any(os.path.lexists(path.with_name(mark)) for mark in marks)
