"""A law: whatever was written, flushed, joined, corrected and edited, no way of reading shows what a rule withholds."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from infinimem import Library
from infinimem.cli import main
from infinimem.errors import InfinimemError
from infinimem.llm.port import Call
from infinimem.model import Create, Extend, Filter, Join
from infinimem.plan.paper import Plan
from infinimem.readers.memory import open_memory
from infinimem.readers.tools import Shown, run_tool
from infinimem.text.document import parse
from tests.conftest import NIGHTLY

START = datetime(2026, 5, 1, 9, tzinfo=UTC)
MARK = "zorblatt"
WORDS = "Maya Bergen boat ferry berth key tea choir oak case ninety July engineer Ines cycles".split()
PRIVATE = (
    "Zorblatt keeps the {a} near {b}.",
    "{a} {b} Zorblatt",
    "Zorblatt",
    "The {a} of ZORBLATT is in the {b}.\n\n- Zorblatt\n  and {a}\n",
    "```zorblatt\n{a}\n```",
)
PUBLIC = ("{a} is with {b}.", "The {a} of {b}", "{a} and {b}.\nA second line of {a}.", "# {a}\n\n    {b}")
COMMANDS = (
    ["catalog"],
    ["search", "Maya", "himself", "--all"],
    ["ask", "Where is Maya?", "--all"],
    ["grep", "(?i)maya|blatt", "--all"],
    ["read", "CURRENT"],
    ["read", "evidence/2026-05"],
    ["trace", "1", "2", "3"],
    ["status"],
    ["stats"],
    ["flush", "--plan-template"],
    ["flush", "--dry-run"],
    ["check"],
    ["undo"],
)
RULES = (
    ("deny: {sensitivity: private}", {"sensitivity": "private"}, {}),
    ("deny: {ns: [secret*, hidden]}", {"ns": "secret-work"}, {"ns": "work"}),
    ("allow: {ns: shared}", {"ns": "own"}, {"ns": "shared"}),
    ("deny: {source: 'Dr. *'}", {"source": "Dr. Zorblatt"}, {"source": "Ines"}),
)


@st.composite
def words(draw: st.DrawFn, frames: tuple[str, ...]) -> str:
    a, b = draw(st.sampled_from(WORDS)), draw(st.sampled_from(WORDS))
    return draw(st.sampled_from(frames)).format(a=a, b=b)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    step = st.one_of(
        st.tuples(st.just("private"), st.lists(words(PRIVATE), min_size=1, max_size=3), st.booleans()),
        st.tuples(st.just("public"), st.lists(words(PUBLIC), min_size=1, max_size=4), st.booleans()),
        st.tuples(st.just("flush")),
        st.tuples(st.just("named")),
        st.tuples(st.just("join")),
        st.tuples(st.just("edit")),
        st.tuples(st.just("quote")),
        st.tuples(st.just("look")),
    )
    first = [("private", [draw(words(PRIVATE))], False), ("public", [draw(words(PUBLIC))], False)]
    return first + draw(st.lists(step, min_size=1, max_size=8))


def live(library: Library, history: list[tuple[Any, ...]], private: dict[str, str], public: dict[str, str]) -> set[int]:
    """Live through a history; the seqs that are private."""
    written: list[int] = []
    secret: set[int] = set()
    for step in history:
        waiting = [entry.seq for entry in parse("CURRENT.md", (library.root / "CURRENT.md").read_bytes()).entries] \
            if (library.root / "CURRENT.md").exists() else []  # fmt: skip
        match step:
            case ("private" | "public" as kind, texts, corrects):
                fields = private if kind == "private" else public
                # the rule about ns forbids superseding across it, so the words stay where they are
                new = library.write(
                    [{**fields, "text": text} for text in texts], supersedes=written[-1:] if corrects else []
                )
                written += new
                secret.update(new if kind == "private" else ())
            case ("flush",):
                library.flush(planner="lexical")
            case ("named",) if waiting:
                name = f"x/zorblatt-{waiting[0]}"
                steps = (Create(name, "Zorblatt and others"), Extend(name, "Of Zorblatt", tuple(waiting)))
                library.flush(plan=Plan(steps))
            case ("join",) if len(waiting) > 1:
                texts = " ".join(
                    entry.text for entry in parse("CURRENT.md", (library.root / "CURRENT.md").read_bytes()).entries
                )
                steps_ = (Create(f"joined-{waiting[0]}", "Joined"), Join(tuple(waiting), texts),
                          Extend(f"joined-{waiting[0]}", "", tuple(waiting)))  # fmt: skip
                library.flush(plan=Plan(steps_))
            case ("edit",):
                for path in sorted((library.root / "topics").rglob("*.md"))[:1]:
                    path.write_text(path.read_text("utf-8").replace("Zorblatt", "Zorblatt himself"), "utf-8")
                    library.check(fix=True)
            case ("quote",):
                (library.root / "topics" / "guest.md").write_text(
                    "# Of others\n\nSomeone spoke of Zorblatt.\n\nMaya too.\n"
                )
                for path in sorted((library.root / "topics").rglob("*.md"))[-1:]:
                    path.write_text(path.read_text("utf-8") + "\nMy remark on Zorblatt.\nAnd one on Maya.\n", "utf-8")
            case ("look",):
                library.search("Zorblatt")
                Library.open(library.root, audience="mcp").search("Maya")
    return secret


def everything(root: Path, audience: str, clock: Any) -> Iterator[tuple[str, str]]:
    """Everything that any way of reading gives, with what was asked."""

    def asked(name: str, call: Any) -> tuple[str, str]:
        try:
            return name, told(call())
        except InfinimemError as error:
            return name, str(error)

    library = Library.open(root, audience=audience, clock=clock)
    newest = library.status().newest_seq
    filters = [Filter(), Filter(retired=True), Filter(as_of="2026-05"), Filter(known_at="2026-06")]
    for filter in filters:
        for query in ("Zorblatt", "Maya boat", "private", "himself"):
            yield asked(f"search {query}", lambda q=query, f=filter: library.search(q, 20, filter=f))
            yield asked(f"ask {query}", lambda q=query, f=filter: library.ask(f"Where is {q}?", filter=f).evidence)
    yield asked("catalog", library.catalog)
    yield asked("catalog of then", lambda: library.catalog(filter=Filter(as_of="2026-05")))
    yield asked("topics like", lambda: library.topics_like("Maya boat himself", 9))
    for about in ("Maya boat", 1, 2, "CURRENT"):
        yield asked(f"timeline {about}", lambda about=about: library.timeline(about))
    for name in ("history", "diff", "review", "check", "undo", "check_preview", "export"):
        yield asked(name, getattr(library, name))
    yield asked("status", library.status)
    yield asked("stats", library.stats)
    yield asked("template", library.plan_template)
    for pattern in ("(?i)z.rblatt", ".*", "(?i)himself"):
        yield asked(f"grep {pattern}", lambda p=pattern: library.grep(p, retired=True, context=3))
    for seq in range(1, newest + 2):
        yield asked(f"trace {seq}", lambda s=seq: library.trace(s))
    names = [row.topic for row in library.catalog()]
    names += [
        path.relative_to(root).as_posix().removesuffix(".md")
        for path in root.rglob("*.md")
        if ".infinimem" not in path.parts
    ]
    for name in dict.fromkeys(["CURRENT", *names]):
        yield asked(f"read {name if MARK not in name else '…'}", lambda name=name: lines_of(library, name))
    index = library.index()
    for filter in filters:
        memory = open_memory(index.root, index, filter, "english")
        for name, arguments in (("search", '{"query": "Maya boat himself"}'), ("search", '{"query": "", "all": true}'),
                                ("grep", '{"pattern": "orbl|Maya"}'), ("catalog", "{}"), ("trace", '{"seq": 1}'),
                                ("read", '{"topic": "CURRENT"}'), ("trace", '{"seq": 3}')):  # fmt: skip
            yield asked(
                f"tool {name} {arguments}",
                lambda n=name, a=arguments, m=memory: run_tool(m, Call("1", n, a), Shown(), 5000).text.replace(a, ""),
            )
    yield asked("flush dry", lambda: library.flush(planner="lexical", dry_run=True))
    for command in COMMANDS:
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            for more in ([], ["--json"]):
                with contextlib.suppress(SystemExit):
                    main([*command, *more, "-L", str(root)])
        yield " ".join(command), output.getvalue()
    for path in library.place().rglob("*"):
        if path.is_file() and ".infinimem" not in path.relative_to(library.place()).parts:
            name = path.relative_to(library.place()).as_posix()
            yield f"file {name if MARK not in name else '…'}", name + path.read_bytes().decode("utf-8", "replace")


def lines_of(library: Library, name: str) -> Any:
    """A page's lines, and its title; what was asked for itself tells nothing."""
    try:
        page = library.read(name)
    except InfinimemError as error:
        return str(error).replace(name, "")
    return page.title, page.lines, page.topic.replace(name, "")


def told(value: Any) -> str:
    """A value with all that is in it, as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return told([getattr(value, one.name) for one in dataclasses.fields(value)])
    if isinstance(value, dict):
        return told([list(value), list(value.values())])
    if isinstance(value, list | tuple | set | frozenset):
        return "\n".join(told(one) for one in value)
    return str(value)


@settings(max_examples=1_000 if NIGHTLY else 12, phases=(Phase.generate,))
@given(history=histories(), rule=st.sampled_from(RULES))
def test_nothing_that_is_withheld_is_shown_in_any_way(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[tuple[Any, ...]],
    rule: tuple[str, dict[str, str], dict[str, str]],
) -> None:
    text, private, public = rule
    root = tmp_path_factory.mktemp("law") / "memory"
    ticks = itertools.count()
    clock = lambda: START + timedelta(seconds=next(ticks))  # noqa: E731 - a clock of one line
    library = Library.open(root, create=True, clock=clock)
    (root / "infinimem.yaml").write_text(f"format: 1\naccess:\n  mcp:\n    {text}\n")
    secret = live(library, history, private, public)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INFINIMEM_AUDIENCE", "mcp")
        for asked, answer in everything(root, "mcp", clock):
            assert MARK not in answer.casefold(), f"{asked}: {answer}"
    place = Library.open(root, audience="mcp", clock=clock).place()
    assert_shown(root, place, secret, prose=not text.startswith("allow"))


def assert_shown(root: Path, place: Path, secret: set[int], *, prose: bool) -> None:
    """All else is there, on the same lines of the same files."""
    for path in [root / "CURRENT.md", *sorted((root / "evidence").glob("*.md"))]:
        name = path.relative_to(root).as_posix()
        whole, seen = parse(name, path.read_bytes()), parse(name, (place / name).read_bytes())
        assert len(whole.lines) == len(seen.lines)
        kept = [entry for entry in whole.entries if secret.isdisjoint(entry.seqs)]
        assert [(e.span, e.text, e.signature) for e in seen.entries] == [(e.span, e.text, e.signature) for e in kept]
    shown = {
        seq
        for path in (place / "topics").rglob("*.md")
        for entry in parse(path.relative_to(place).as_posix(), path.read_bytes()).entries
        for seq in entry.seqs
    }
    for path in (root / "topics").rglob("*.md"):
        for entry in parse(path.relative_to(root).as_posix(), path.read_bytes()).entries:
            if secret.isdisjoint(entry.seqs):
                assert set(entry.seqs) <= shown, entry
