"""The view of a library for an audience: made in a folder of its own, brought up to date for the changed files only."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from infinimem.access.growth import Ledger, entries_of, files_telling, grow, learn, prose, read_ledger, write_ledger
from infinimem.access.mask import Rules, shown_of
from infinimem.config import Access
from infinimem.consolidate.run import topics_in as topics_in_step
from infinimem.errors import StorageFailed
from infinimem.forgetting.survey import in_first_form, read_survey
from infinimem.indexing import commit_mark, finish_commit
from infinimem.model import Create, Document, Entry, Outcome, Step, path_of, topic_of
from infinimem.plan.paper import Plan, with_topics
from infinimem.store.evidence import read_records
from infinimem.store.files import digest_of, make_folder, read_bytes, write_private
from infinimem.store.layout import MANIFEST, VIEWS, safe_path
from infinimem.store.lock import exclusive
from infinimem.store.read import File, list_files, read_file
from infinimem.text.document import parse_piece, render
from infinimem.text.lines import FENCE

VERSION = 5
"""Changes with what a view is made of; one of another version is made anew."""
SETTLED = 2.0
"""Seconds after which a file can no longer change without its times telling."""
ATTEMPTS = 5
NUMBER = re.compile(r"\d{1,15}")
NOT_TOLD = "it concerns what you may not see"
LINKING = re.compile(rb"[^\n]*links[^\n]*\n?[^\n]*")
"""The lines on which an entry says what it is linked to; a formatter may have wrapped them."""
NAME = re.compile(r"[a-z][a-z0-9+-]*")


@dataclass(frozen=True, slots=True)
class Made:
    """What a view was made of: the rules, how each file looked, the digests of those that had just changed.

    `names` are the paths in the view of files that go by another name there, or by none (""), by their own path.
    `ends` are the sizes and digests of those that grow at their end.
    """

    rules: str = ""
    files: Mapping[str, list[int]] = field(default_factory=dict)
    recent: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    secret: str = ""
    high: int = 0
    token: str = ""
    ends: Mapping[str, tuple[int, str]] = field(default_factory=dict)


def view(root: Path, audience: str, access: Access) -> Path:
    """The folder in which an audience reads: the library itself where no rule is about it, else its view, up to date.

    Raises `StorageFailed` where the view cannot be written: then nothing is shown.
    """
    if not access:
        return root
    assert NAME.fullmatch(audience) is not None
    place = safe_path(root, f"{VIEWS}/{audience}")
    state = safe_path(root, f"{VIEWS}/{audience}.json")
    try:
        make_folder(place / ".infinimem")
        with exclusive(place / ".infinimem" / "view.lock", doing=f"the view for {audience}"):
            for _ in range(ATTEMPTS):
                finish_commit(root)
                seen = commit_mark(root)
                bring_up_to_date(root, place, state, access)
                if commit_mark(root) == seen and not (root / MANIFEST).exists():
                    break
    except OSError as error:
        raise StorageFailed(f"{place} cannot be written: {error.strerror}; {audience} is shown nothing") from error
    return place


def bring_up_to_date(root: Path, place: Path, state: Path, access: Access) -> None:
    """Make the view what it should be, if any file or rule has changed since it was made."""
    made = known_state(state)
    wanted = f"{VERSION} {access!r}"
    listing = {path: list(status) for path, status in list_files(root).items()}
    now = time.time()
    late = [path for path, digest in made.recent.items() if path in listing and digest_at(root / path) != digest]
    if made.rules == wanted and made.files == listing and not late and ledger_at(state).exists():
        return
    changed = [path for path, status in listing.items() if made.files.get(path) != status or path in late]
    before, ledger = made.names, read_ledger(ledger_at(state))
    grown = None
    longer: dict[str, int] = {}
    if made.rules == wanted and made.token == ledger.token:
        files = [read_changed(root, path, made, longer) for path in changed]
        known = Rules(access, ledger.hidden, ledger.words)
        grown = grow(root, files, made.files.keys() - listing.keys(), longer, ledger, known, made.high)
    if grown is None:
        longer.clear()
        survey = read_survey(root)
        files = [file for file in survey.files if file.path in listing]
        rules, ledger = learn(survey, listing, access)
        made = Made(secret=made.secret or secrets.token_hex(16))
    else:
        rules, ledger, more = grown
        if more:
            files = with_all_of(root, files, files_telling(ledger, more), longer)
        rules = replace(rules, spare=members_of(root, files, rules))
    high = max([made.high, *(seq for file in files for entry in entries_of(file) for seq in entry.seqs)])
    rules = replace(rules, names=topics_in(before))
    state.unlink(missing_ok=True)  # whoever finds none makes it anew
    shown = {file.path: shown_of(file.document, rules, made.secret) for file in files}
    names = {path: name for path, name in made.names.items() if path in listing and path not in shown}
    names |= {path: name_of(document) for path, document in shown.items() if name_of(document) != path}
    renamed = topics_in(names).items() ^ rules.names.items()
    if renamed:  # what links to them, or lists them, stands in any file
        rules = replace(rules, names=topics_in(names))
        told = {name for name, _ in renamed}
        naming = [path for path in listing if mentions(root, path, told)]
        files = with_all_of(root, files, naming, longer)
        shown |= {file.path: shown_of(file.document, rules, made.secret) for file in files if file.path in naming}
    for name in ("topics", "evidence"):
        make_folder(safe_path(place, name))
    kept = {names.get(path, path) for path in listing}
    remove_others(place, kept)
    for path, document in shown.items():
        if document is not None:
            put(place, document, longer=path in longer)
    ends = {path: end for path, end in made.ends.items() if path in listing and path not in shown}
    ends |= {file.path: end for file in files for end in [end_of(file, longer.get(file.path, 0))] if end}
    digests = {file.path: file.digest for file in files}
    recent = {
        path: digests.get(path) or made.recent.get(path) or digest_at(root / path)
        for path, status in listing.items()
        if now - status[1] / 1e9 < SETTLED
    }
    token = secrets.token_hex(8)
    write_ledger(ledger_at(state), replace(ledger, token=token))
    write_state(state, Made(wanted, listing, recent, names, made.secret, high, token, ends))


def read_changed(root: Path, path: str, made: Made, longer: dict[str, int]) -> File:
    """A file, or only what was added at its end; then `longer` gains how many bytes stand above."""
    size, digest = made.ends.get(path, (0, ""))
    content = read_bytes(root / path) if size else None
    if content is None or len(content) <= size or not content.startswith(b"- <", size):
        return read_file(root, path)
    if digest_of(content[:size]) != digest:
        return read_file(root, path)
    longer[path] = size
    return File(path, digest_of(content), parse_piece(path, content[size:]))


def end_of(file: File, above: int) -> tuple[int, str] | None:
    """How long a file is and its digest, if whatever is added to it is read by itself as below the rest."""
    lines = file.document.lines
    if file.path.startswith("topics/") or not lines or file.document.blocking:
        return None
    last = file.document.entries[-1].span.stop if file.document.entries else 0
    is_item = last == len(lines) or lines[-1].startswith("- <")
    if not is_item or not lines[-1].endswith("\n") or any("\r" in line or FENCE.match(line) for line in prose(file)):
        return None
    return above + len(render(file.document)), file.digest


def with_all_of(root: Path, files: Sequence[File], paths: Collection[str], longer: dict[str, int]) -> list[File]:
    """The files with the whole of some others among them."""
    known = {file.path for file in files if file.path not in longer}
    wanted = [path for path in paths if path not in known]
    for path in wanted:
        longer.pop(path, None)
    return [*(file for file in files if file.path not in wanted), *(read_file(root, path) for path in wanted)]


def members_of(root: Path, files: Iterable[File], rules: Rules) -> dict[int, Entry]:
    """The own words of those who share a line with a withheld entry."""
    entries = (entry for file in files for entry in entries_of(file))
    lines = (entry.seqs for entry in entries if len(entry.seqs) > 1 and rules.withholds(entry))
    seqs = {seq for line in lines for seq in line if seq not in rules.hidden}
    found: dict[int, Entry] = {}
    for seq, record in read_records(root, seqs).items():
        for _, entry in record.entries:
            if len(entry.seqs) == 1:
                found[seq] = in_first_form(found.get(seq), entry)
    return found


def mentions(root: Path, path: str, topics: Collection[str]) -> bool:
    """Whether a file names any of some topics in its front matter or a link; its own once more than it must."""
    content = read_bytes(root / path) or b""
    head = content[: content.find(b"\n---", 1)] if b"\n---" in content else content
    places = b"\n".join([head, *LINKING.findall(content)]).decode("utf-8", "surrogateescape")
    own = topic_of(path)
    return any(name in places for name in topics if name != own) or (own in topics and places.count(own) > 1)


def topics_in(names: Mapping[str, str]) -> dict[str, str]:
    """The topics that go by another name, or by none, by their own."""
    return {topic_of(path): topic_of(shown) for path, shown in names.items() if path.startswith("topics/")}


def name_of(document: Document | None) -> str:
    """Where a file stands in a view; "" for nowhere."""
    return "" if document is None else document.path


def digest_at(path: Path) -> str:
    """The digest of a file; "" where there is none."""
    content = read_bytes(path)
    return "" if content is None else digest_of(content)


def remove_others(place: Path, kept: set[str]) -> None:
    """Remove what a view no longer holds."""
    for path in list_files(place):
        if path not in kept:
            (place / path).unlink()
    folders = [path for path in (place / "topics").rglob("*") if path.is_dir() and not path.is_symlink()]
    for folder in sorted(folders, reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()


def put(place: Path, document: Document, *, longer: bool) -> None:
    """Put a document into a view, or below what is there of it; what did not change is not touched."""
    target = safe_path(place, document.path)
    there = read_bytes(target)
    content = (there or b"") + render(document) if longer else render(document)
    if there == content:
        return
    make_folder(target.parent)
    beside = place / ".infinimem" / "view.tmp"
    write_private(beside, content)
    beside.replace(target)


# What is known of a view


def names_in(place: Path) -> dict[str, str]:
    """The topics that go by another name in a view, with the names that they have in the library."""
    names = state_in(place)[0].names
    return {topic_of(shown): topic_of(path) for path, shown in names.items() if shown}


def untelling_outcomes(
    place: Path, access: Access, outcomes: Iterable[Outcome], names: Mapping[str, str]
) -> tuple[Outcome, ...]:
    """What became of steps that an audience planned itself, with the `names` that it knows by the real ones.

    A reason that tells more than it may know, or is about an entry or a topic that it may not see, is not given.
    """
    rules, _ = rules_in(place, access)
    shown = {real: other for real, other in names.items() if other}
    found = []
    for outcome in outcomes:
        [step] = with_topics(Plan((outcome.step,)), shown).steps
        why = outcome.why
        for real in sorted(shown, key=len, reverse=True):
            why = why.replace(real, shown[real])
        telling = without_names(why, [topic for topic in topics_in_step(step) if (place / path_of(topic)).is_file()])
        seqs = {*named_seqs(step), *map(int, NUMBER.findall(telling))}
        unseen = any(not (place / path_of(topic)).is_file() for topic in topics_named(step))
        if unseen or rules.words.in_name(telling) or not rules.hidden.isdisjoint(seqs):
            why = NOT_TOLD
        found.append(replace(outcome, step=step, why=why))
    return tuple(found)


def without_names(why: str, topics: Iterable[str]) -> str:
    """A reason without the names of topics that may be seen: a `1` in one of them is no seq."""
    for topic in sorted(topics, key=len, reverse=True):
        why = why.replace(topic, " ")
    return why


def named_seqs(step: Step) -> set[int]:
    """The seqs that a step is about."""
    one = (getattr(step, "seq", 0), getattr(step, "by", 0))
    return {seq for seq in (*getattr(step, "seqs", ()), *one) if isinstance(seq, int)}


def topics_named(step: Step) -> tuple[str, ...]:
    """The topics that a step changes and does not make."""
    return () if isinstance(step, Create) else topics_in_step(step)


def rules_in(place: Path, access: Access) -> tuple[Rules, str]:
    """What a view withholds, and the secret by which it renames."""
    made, ledger = state_in(place)
    return Rules(access, ledger.hidden, ledger.words, names=topics_in(made.names)), made.secret


def state_in(place: Path) -> tuple[Made, Ledger]:
    """What a view was made of, and the ledger beside it. Raises `StorageFailed` where that cannot be told."""
    state = place.with_name(f"{place.name}.json")
    with exclusive(place / ".infinimem" / "view.lock", doing=f"the view for {place.name}"):
        made, ledger = known_state(state), read_ledger(ledger_at(state))
    if not made.token or made.token != ledger.token:
        state.unlink(missing_ok=True)  # made anew the next time
        raise StorageFailed(f"{ledger_at(state)} does not belong to its view; run the command again")
    return made, ledger


def ledger_at(state: Path) -> Path:
    """Where lies what the files say that a view was made of."""
    return state.with_suffix(".words")


def known_state(state: Path) -> Made:
    """What the view was made of; nothing where that cannot be told."""
    try:
        return Made(**json.loads(state.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return Made()


def write_state(state: Path, made: Made) -> None:
    """Remember what the view was made of. The file is the owner's: it lies beside the view, not in it."""
    beside = state.with_name(f"{state.name}.tmp")
    write_private(beside, json.dumps({one.name: getattr(made, one.name) for one in fields(made)}).encode())
    beside.replace(state)
