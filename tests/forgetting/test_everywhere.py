"""A word planted wherever it could survive; afterwards no byte of the folder has it, nor a segment of the index."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import tantivy
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from infinimem import Library
from infinimem.errors import InfinimemError
from infinimem.model import Create, Extend, Merge
from infinimem.plan.paper import Plan
from tests.conftest import NIGHTLY
from tests.git.clones import ATTRIBUTES, DRIVER, LOCAL, git

START = datetime(2026, 5, 1, 9, tzinfo=UTC)
SAYS = "{word} keeps the key of the boat house."


@pytest.fixture
def library(tmp_path: Path) -> Library:
    ticks = itertools.count()
    return Library.open(tmp_path / "memory", create=True, clock=lambda: START + timedelta(seconds=next(ticks)))


def forms_of(word: str) -> set[str]:
    """A word as it may stand in a file: composed, decomposed, in any case, escaped as JSON does."""
    forms = set()
    for form in ("NFC", "NFD"):
        for one in (word, word.upper(), word.lower(), word.casefold(), word.title()):
            forms.add(unicodedata.normalize(form, one))  # type: ignore[arg-type]
    return forms | {json.dumps(form)[1:-1] for form in forms}


def holding(root: Path, word: str) -> list[str]:
    """The files of a library whose name or bytes hold a word in any form, its index's segments unpacked."""
    forms = forms_of(word)
    found = []
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name.startswith(".git/"):
            continue
        content = path.read_bytes() if path.is_file() else b""
        texts = [name, content.decode("utf-8", "replace"), content.decode("utf-16-le", "replace")]
        if any(form in text for form in forms for text in texts):
            found.append(name)
    return found + [f"index {row}" for row in rows_of_index(root) if any(form in row for form in forms)]


def rows_of_index(root: Path) -> list[str]:
    """Every stored row of every segment of every index below a folder."""
    rows = []
    for meta in root.rglob("meta.json"):
        index = tantivy.Index.open(str(meta.parent))
        index.reload()
        searcher = index.searcher()
        if searcher.num_docs:
            found = searcher.search(tantivy.Query.all_query(), searcher.num_docs).hits
            rows += [str(searcher.doc(address).to_dict()) for _, address in found]
    return rows


def flush(library: Library, *steps: Any) -> None:
    assert not library.flush(plan=Plan(steps)).skipped


def lived(library: Library, word: str) -> None:
    """A library in which one entry says a word, and what came of it: a revision, a topic by that name, a correction."""
    says = SAYS.format(word=word)
    library.write([says, "Hilde turns ninety in July."], source=f"Aunt {word}", key=f"{word}-1")
    flush(library, Create("boats", f"On {word}"), Extend("boats", f"Of {word}", (1, 2)))
    library.write("The ferry leaves at nine.", meta={"links": "1:about"})
    library.flush(planner="lexical")
    topic = library.root / "topics" / "boats.md"
    topic.write_text(topic.read_text("utf-8").replace(says, f"{word} keeps both keys of the boat house."), "utf-8")
    library.check(fix=True)
    library.search(word)
    library.ask(f"What does {word} keep?")
    library.feedback("bad")
    library.write(f"The key went from {word} to Ines.", supersedes=1)


State = Callable[[Library, str], None]


def put(name: str, text: str) -> State:
    """A file of some name and text."""

    def plant(library: Library, word: str) -> None:
        path = library.root / name.format(word=word)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.format(word=word, says=SAYS.format(word=word)).encode())

    return plant


def copy(source: str, name: str) -> State:
    """A copy of a file of the library under another name."""

    def plant(library: Library, word: str) -> None:
        shutil.copy(library.root / source, library.root / name.format(word=word))

    return plant


def export(name: str) -> State:
    """An export that was put into the library itself."""

    def plant(library: Library, _: str) -> None:
        library.export(name.partition(".")[2] or "html", library.root / name)

    return plant


def template(library: Library, _: str) -> None:
    """The buffer as it is given to an agent to plan."""
    (library.root / "todo.yaml").write_text(library.plan_template(), "utf-8")


def redirected(library: Library, word: str) -> None:
    """A topic merged into another one, whose redirect keeps its title."""
    library.write("Choir is on Wednesdays.")
    seq = library.write("The choir sings Brahms.")[0]
    flush(library, Create("choir", f"Choir of {word}"), Extend("choir", "", (seq - 1, seq)))
    flush(library, Merge(("choir", "boats"), "boats", f"On {word}"))


PLACES: dict[str, State] = {
    "CURRENT alone": lambda library, word: None,
    "flushed": lambda library, word: library.flush(planner="lexical") and None,
    "emacs backup": copy("CURRENT.md", "CURRENT.md~"),
    "emacs autosave": copy("topics/boats.md", "topics/#boats.md#"),
    "vim swap": put("topics/.boats.md.swp", "b0VIM 9.1\0\0{says}\0"),
    "vim undo": put("topics/.boats.md.un~", "Vim\x9fUnDo\0{says}\0"),
    "bak": copy("topics/boats.md", "topics/boats.md.bak"),
    "orig": copy("CURRENT.md", "CURRENT.md.orig"),
    "patch reject": put("topics/boats.md.rej", "-{says}\n"),
    "nano": copy("CURRENT.md", "CURRENT.md.save"),
    "kate": put("topics/.boats.md.kate-swp", "{says}"),
    "Dropbox": copy("CURRENT.md", "CURRENT (Maya's conflicted copy 2026-05-01).md"),
    "Dropbox topic": copy("topics/boats.md", "topics/boats (Maya's conflicted copy 2026-05-01).md"),
    "Syncthing": copy("CURRENT.md", "CURRENT.sync-conflict-20260501-120000-ABCDEFG.md"),
    "Syncthing evidence": copy("evidence/2026-05.md", "evidence/2026-05.sync-conflict-20260501-120000-ABCDEFG.md"),
    "Syncthing versions": put(".stversions/CURRENT~20260501-120000.md", "- <seq=1> {says}\n"),
    "iCloud": copy("topics/boats.md", "topics/boats 2.md"),
    "macOS copy": copy("CURRENT.md", "CURRENT copy.md"),
    "OneDrive": copy("CURRENT.md", "CURRENT-LAPTOP-7.md"),
    "export of lines": export("memory.jsonl"),
    "export as a book": export("memory.md"),
    "export as a site": export("site"),
    "kept plan": put("plan.yaml", "plan: 1\nsteps:\n- create: {{topic: keys, title: Keys of {word}}}\n"),
    "plan template": template,
    "proposals": put(".infinimem/proposals.yaml", "- at: x\n  step: {{join: {{seqs: 1-2, text: '{says}'}}}}\n"),
    "model cache": put(".infinimem/servers.json", '{{"http://localhost": {{"last": "{says}"}}}}'),
    "recordings": put(".infinimem/cache/calls/1.json", '{{"prompt": "{says}"}}'),
    "usage": put(".infinimem/usage.jsonl", '{{"asked": "{word}?"}}\n{{"asked": "Hilde?"}}\n'),
    "half a row": put(".infinimem/recalls.jsonl", '{{"asked": "{word}'),
    "kept version": copy("topics/boats.md", ".infinimem/kept-boats.md"),
    "redirect": redirected,
}  # fmt: skip


TOGETHER = [sorted(PLACES), *([place] for place in sorted(PLACES) if NIGHTLY)]


@pytest.mark.parametrize("places", TOGETHER, ids=lambda places: " and ".join(places[:2]))
def test_planted_there_it_is_found_nowhere_afterwards(library: Library, places: list[str]) -> None:
    word = "Zorblatt"
    lived(library, word)
    for place in places:
        PLACES[place](library, word)
        library.search(word)
    assert holding(library.root, word), "nothing was planted"
    report = library.forget(pattern=f"(?i){word}")
    assert [f"{one.path}:{one.line}" for one in report.remains] == []
    assert holding(library.root, word) == []
    library.search("ferry")
    assert holding(library.root, word) == []
    assert [hit.seqs for hit in library.search("ferry", 1)] == [(3,)]


WORDS = ("Zorblatt", "Ügelünd", "Οδυσσεύς", "Жарбутов", "鶴亀算", "ישראלוביץ", "Ångström", "한국어말", "ﬁnnegan")


def act(library: Library, action: str, number: int, clone: Path) -> None:
    """One thing that somebody does afterwards."""
    topics = [row.topic for row in library.catalog() if row.topic != "CURRENT" and not row.guest]
    match action:
        case "write":
            library.write([f"Note {number} of the ferry.", f"Hilde's note {number}."], meta={"links": "2:about"})
        case "flush":
            library.flush(planner="lexical")
        case "undo":
            library.undo()
        case "fix":
            library.check(fix=True)
        case "split" if topics:
            library.split(topics[number % len(topics)])
        case "merge" if len(topics) > 1:
            library.merge(topics[:2])
        case "reconsolidate":
            library.ask("When does the ferry leave?")
            library.feedback("good")
            library.reconsolidate()
        case "look":
            library.search("ferry")
            library.history()
        case "git":
            with (clone / "CURRENT.md").open("a") as file:
                file.write(f"- Typed in the clone {number}.\n")
            commit(clone)
            commit(library.root)
            git(library.root, "pull", "-q", "--no-rebase", "--no-edit", str(clone), "main", fails=True)
            if git(library.root, "diff", "--name-only", "--diff-filter=U"):
                git(library.root, "merge", "--abort")
            library.flush(planner="lexical")


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "what there is", "--allow-empty")


def pattern_of(word: str) -> str:
    """A word as a pattern, composed."""
    return "(?i)" + unicodedata.normalize("NFC", word)


@settings(max_examples=500 if NIGHTLY else 10, phases=(Phase.generate,))
@given(
    word=st.sampled_from(WORDS),
    form=st.sampled_from(["NFC", "NFD"]),
    places=st.lists(st.sampled_from(sorted(PLACES)), max_size=5, unique=True),
    way=st.sampled_from(["seqs", "pattern", "where"]),
    actions=st.lists(
        st.sampled_from(["write", "flush", "undo", "fix", "split", "merge", "reconsolidate", "look", "git"]),
        min_size=20 if NIGHTLY else 4,
        max_size=20 if NIGHTLY else 6,
    ),
)
def test_wherever_it_was_and_whatever_is_done_afterwards(
    tmp_path_factory: pytest.TempPathFactory, word: str, form: str, places: list[str], way: str, actions: list[str]
) -> None:
    base = tmp_path_factory.mktemp("law")
    ticks = itertools.count()
    library = Library.open(base / "memory", create=True, clock=lambda: START + timedelta(milliseconds=next(ticks)))
    word = unicodedata.normalize(form, word)  # type: ignore[arg-type]
    lived(library, word)
    infinimem_git(library.root)
    for place in places:
        PLACES[place](library, word)
    commit(library.root)
    clone = base / "clone"
    git(base, "clone", "-q", str(library.root), str(clone))
    infinimem_git(clone)
    seqs = library.forget(pattern=pattern_of(word), dry_run=True).seqs
    if way == "pattern":
        library.forget(pattern=pattern_of(word))
    elif way == "seqs":
        library.forget(seqs)
    else:
        library.forget(where={"source": unicodedata.normalize("NFC", f"Aunt {word}")})
        library.forget(seqs=[seq for seq in seqs if library.trace(seq).fate != "forgotten"])
    assert holding(library.root, word) == []
    for number, action in enumerate(actions):
        with contextlib.suppress(InfinimemError):  # what cannot be done now is not done
            act(library, action, number, clone)
        library.flush(planner="lexical")
        assert holding(library.root, word) == [], f"after {action}"
    assert not [finding for finding in library.check() if finding.problem.code == "forgotten"]


def infinimem_git(root: Path) -> None:
    """A repository that merges memory by entry."""
    git(root, "init", "-q", "-b", "main")
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "attributes").write_text(ATTRIBUTES + LOCAL)
    git(root, "config", "merge.infinimem.driver", DRIVER)
