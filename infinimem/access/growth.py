"""What changed files change in a view: words that only new withheld entries say, and the files in which these stand."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from infinimem.access.mask import PLAIN_EVENTS, Rules, rules_of
from infinimem.config import Access
from infinimem.forgetting.survey import Survey
from infinimem.forgetting.words import CUT, Kept, Words, grams_of, tokens_of, words_besides
from infinimem.model import Entry
from infinimem.store.files import write_private
from infinimem.store.read import File, read_file
from infinimem.text.words import analyse

FEW = 8
"""Files that are read at most to learn whether one of them says a sentence; if more could, it counts as unsaid."""
TERM, GRAM = "=", "~"
"""Stand before what is no whole word."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a file says: `kept` in entries that are shown, `told` outside of entries. A space is around each word."""

    kept: str
    told: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """What the files of a library say, so that what is new has to be compared with no file.

    `heard` are the words of withheld entries, `token` is that of the view's state of which it is a part.
    """

    files: Mapping[str, Said] = field(default_factory=dict)
    heard: str = " "
    hidden: frozenset[int] = frozenset()
    words: Words = field(default_factory=Words)
    token: str = ""

    def says(self, word: str) -> bool:
        """Whether a shown entry says a word."""
        return any(f" {word} " in said.kept for said in self.files.values())


def new_ones(entries: Iterable[Entry], rules: Rules, high: int) -> list[Entry] | None:
    """The withheld entries written since seq `high`; None where anything is told otherwise than before.

    An older one may stand in files that have not changed, and what is shown again may free words that were kept back.
    """
    found = []
    denied = Access(rules.access.deny)
    for entry in entries:
        fields = dict(entry.signature.fields)
        known = not rules.hidden.isdisjoint(entry.seqs)
        if len(entry.seqs) > 1 or entry.signature.get("rev"):
            if not known and not denied.permits(fields):
                return None
        elif known is rules.access.permits(fields):
            if known or entry.seq <= high:
                return None
            found.append(entry)
    return found


def learn(survey: Survey, listing: Collection[str], access: Access) -> tuple[Rules, Ledger]:
    """Which entries of a whole library are kept back, and what they and the others say."""
    rules = rules_of(survey, access)
    kept = {file.path: kept_in(file, rules) for file in survey.files if file.path in listing}
    rest = Kept()
    for one in kept.values():
        rest.take_all(one)
    words = words_besides([entry for _, entry in survey.entries() if rules.withholds(entry)], rest)
    said = {file.path: said_in(file, kept[file.path]) for file in survey.files if file.path in kept}
    heard = heard_in((entry for _, entry in survey.entries()), rules)
    return replace(rules, words=words), Ledger(said, heard, rules.hidden, words)


def grow(
    root: Path,
    files: Sequence[File],
    gone: Collection[str],
    longer: Collection[str],
    before: Ledger,
    rules: Rules,
    high: int,
) -> tuple[Rules, Ledger, Words] | None:
    """The rules and the ledger once files have changed or gone, and the words that are new to the rules.

    Of those in `longer` only what was added at their end is given.
    None where anything is told otherwise than before, so that all has to be looked at.
    """
    fresh = new_ones((entry for file in files for entry in entries_of(file)), rules, high)
    if fresh is None:
        return None
    if fresh:
        rules = replace(rules, hidden=rules.hidden | {entry.seq for entry in fresh})
    said = {path: one for path, one in before.files.items() if path not in gone}
    for file in files:
        here = said_in(file, kept_in(file, rules))
        said[file.path] = below(before.files[file.path], here) if file.path in longer else here
    heard = before.heard + heard_in(fresh, rules) if fresh else before.heard
    after = replace(before, files=said, heard=heard, hidden=rules.hidden)
    if is_unsaid(before, after):
        return None
    more = words_said_only_by(fresh, root, after, rules) if fresh else Words()
    rules = replace(rules, words=together(rules.words, more) if more else rules.words)
    return rules, replace(after, words=rules.words), more


def entries_of(file: File) -> Sequence[Entry]:
    """The entries of a file, if it is not others'."""
    return () if file.path.startswith("topics/") and file.document.is_guest else file.document.entries


def kept_in(file: File, rules: Rules) -> Kept:
    """What the shown entries of a file say."""
    rest = Kept()
    for entry in entries_of(file):
        if not rules.withholds(entry):
            rest.take(entry)
    return rest


def said_in(file: File, rest: Kept) -> Said:
    """What a file says, the words of its entries being given."""
    told = "".join(outside(file))
    return Said(spaced(marked(rest)), spaced((*tokens_of(told), *(GRAM + gram for gram in grams_of(told)))))


def below(above: Said, here: Said) -> Said:
    """What a file says once something was added at its end."""
    new = [word for word in here.kept.split() if f" {word} " not in above.kept]
    return Said(above.kept + spaced(new) if new else above.kept, above.told + here.told)


def marked(rest: Kept) -> Iterator[str]:
    """The words of entries, their terms and pieces of unspaced script with a mark."""
    yield from rest.tokens
    yield from (TERM + term for term in rest.terms)
    yield from (GRAM + gram for gram in rest.grams)


def spaced(words: Iterable[str]) -> str:
    """Words with a space around each."""
    return f" {' '.join(words)} "


def outside(file: File) -> Iterator[str]:
    """What a file tells outside of entries: its name, its prose, events that tell more than what became of a seq."""
    plain = tuple(f"- <event={kind}," for kind in PLAIN_EVENTS)
    yield f"{file.path}\n"
    yield from (line for line in prose(file) if not line.startswith(plain))


def prose(file: File) -> Iterator[str]:
    """The lines outside of entries."""
    spans = [entry.span for entry in entries_of(file)]
    taken = {at for span in spans for at in range(span.start, span.stop)}
    yield from (line for at, line in enumerate(file.document.lines) if at not in taken)


def heard_in(entries: Iterable[Entry], rules: Rules) -> str:
    """The words of those entries that are withheld."""
    gone = Kept()
    for entry in entries:
        if rules.withholds(entry):
            gone.take(entry)
    return spaced(marked(gone))


def is_unsaid(before: Ledger, after: Ledger) -> bool:
    """Whether nothing shown says any more what a withheld entry says, too: then it tells of that one."""
    gone = {
        word
        for path, said in before.files.items()
        if after.files.get(path) != said
        if path not in after.files or not after.files[path].kept.startswith(said.kept)
        for word in set(said.kept.split()).difference(after.files[path].kept.split() if path in after.files else ())
    }
    return any(f" {word} " in after.heard and not after.says(word) for word in gone)


def words_said_only_by(fresh: Sequence[Entry], root: Path, ledger: Ledger, rules: Rules) -> Words:
    """What new withheld entries say that no shown one does. A sentence that many files may say counts as unsaid."""
    bare = words_besides(fresh, Kept())
    rest = Kept()
    rest.tokens = {token for token in bare.telling | bare.numbers if ledger.says(token)}
    terms = {term for token in bare.telling for term in analyse(token)}
    rest.terms = {term for term in terms if ledger.says(TERM + term)}
    rest.grams = {gram for gram in bare.grams if ledger.says(GRAM + gram)}
    for path in {path for one in bare.statements for path in may_say(one, ledger)}:
        rest.texts |= kept_in(read_file(root, path), rules).texts
    return words_besides(fresh, rest)


def may_say(statement: str, ledger: Ledger) -> list[str]:
    """The files in which all words of a statement are said, if they are few."""
    words = {f" {word} " for word in statement.split(" ")}
    found = [path for path, said in ledger.files.items() if all(word in said.kept for word in words)]
    return found if len(found) <= FEW else []


def files_telling(ledger: Ledger, words: Words) -> list[str]:
    """The files that may hold some words outside of entries, cut as in names or whole."""
    needles = {*(word[:CUT] for word in words.telling), *words.numbers, *(GRAM + gram for gram in words.grams)}
    needles |= {max(one.split(" "), key=len) for one in words.statements}
    return [path for path, said in ledger.files.items() if any(needle in said.told for needle in needles)]


def together(one: Words, other: Words) -> Words:
    """The words of both."""
    return Words(
        one.telling | other.telling,
        one.grams | other.grams,
        one.numbers | other.numbers,
        tuple(dict.fromkeys((*one.statements, *other.statements))),
    )


# On disk


def read_ledger(path: Path) -> Ledger:
    """What was kept; an empty one, of no view, where that cannot be told."""
    try:
        given = json.loads(path.read_text("utf-8"))
        telling, grams, numbers = (frozenset(given[name].split()) for name in ("telling", "grams", "numbers"))
        words = Words(telling, grams, numbers, tuple(given["statements"]))
        files = {name: Said(kept, told) for name, (kept, told) in given["files"].items()}
        return Ledger(files, given["heard"], frozenset(given["hidden"]), words, given["token"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return Ledger()


def write_ledger(path: Path, ledger: Ledger) -> None:
    """Keep it. The file is the owner's: it lies beside the view, not in it."""
    words = ledger.words
    content = {
        "token": ledger.token, "hidden": sorted(ledger.hidden), "telling": spaced(sorted(words.telling)),
        "grams": spaced(sorted(words.grams)), "numbers": spaced(sorted(words.numbers)),
        "statements": words.statements, "heard": ledger.heard,
        "files": {name: (said.kept, said.told) for name, said in ledger.files.items()},
    }  # fmt: skip
    beside = path.with_name(f"{path.name}.tmp")
    write_private(beside, json.dumps(content).encode())
    beside.replace(path)
