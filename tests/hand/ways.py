"""The ways in which people and editors change a library: what each does to the files, and what must be true then.

The library before is tests/hand/library, with two entries (11 and 12) waiting in CURRENT. A way is a change of files and
what follows: `found`, the codes that `check` then names; `left`, those that wait for a person even after `check --fix`;
`says`, the words that a seq has afterwards; `gone`, the seqs that are noted as deleted; `signed`, the bullets that become
entries. Whatever is not listed must not happen: see the laws in test_ways.py.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

RECORDED = Path(__file__).parent / "recorded"
BOAT, CHOIR, BATH, OMA = "topics/boat.md", "topics/choir.md", "topics/house/bathroom.md", "topics/oma-hilde.md"
RECIPES, CURRENT, EVIDENCE = "topics/recipes.md", "CURRENT.md", "evidence/2026-03.md"
BRAHMS = "The choir sings Brahms <Requiem> on 14 November."
REHEARSAL = "Rehearsals are on Wednesdays at 19:00 in Sandviken church."
ENGINE = "The boat's engine is a Yanmar 2GM20; its oil filter is a 119305-35151."
PLUMBER = "Plumber: Arne Vik, 55 12 34 56."
HEAD5 = "<seq=5, source=user, observed=2026-03-01T09:00:00Z>"
HEAD6 = "<seq=6, source=user, label=D1:3, observed=2026-03-01T09:00:00Z>"
LINE5 = f"- {HEAD5} {BRAHMS}\n"
LINE6 = f"- {HEAD6} {REHEARSAL}\n"

Edit = Callable[[Path], None]


@dataclass(frozen=True)
class Way:
    """One way: who does it, what, and what must be true then."""

    who: str
    what: str
    edit: Edit
    found: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()
    says: Mapping[int, str] = field(default_factory=dict)
    gone: frozenset[int] = frozenset()
    signed: tuple[str, ...] = ()
    stuck: str = ""
    words_changed: bool = False

    @property
    def name(self) -> str:
        return f"{self.who}: {self.what}"


WAYS: list[Way] = []


def way(
    who: str,
    what: str,
    edit: Edit,
    *,
    found: str = "",
    left: str = "",
    says: Mapping[int, str] | None = None,
    gone: tuple[int, ...] = (),
    signed: tuple[str, ...] = (),
    stuck: str = "",
    words_changed: bool = False,
) -> None:
    """Record a way."""
    codes = frozenset(found.split())
    waiting = frozenset(left.split())
    WAYS.append(
        Way(who, what, edit, codes | waiting, waiting, says or {}, frozenset(gone), signed, stuck, words_changed)
    )


# What a change is made of


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8"))


def change(name: str, *pairs: tuple[str, str]) -> Edit:
    """Words replaced in a file, each where it stands first."""

    def edit(root: Path) -> None:
        head, fence, body = text_of(root / name).rpartition("\n---\n")
        for old, new in pairs:
            if old in body:
                body = body.replace(old, new, 1)
                continue
            assert old in head + fence, f"{old!r} is not in {name}"
            head, fence, body = (head + fence + body).replace(old, new, 1).rpartition("\n---\n")
        put(root / name, head + fence + body)

    return edit


def rewrite(name: str, how: Callable[[str], str]) -> Edit:
    """A whole file put through a function."""
    return lambda root: put(root / name, how(text_of(root / name)))


def append(name: str, text: str) -> Edit:
    return rewrite(name, lambda old: old + text)


def create(name: str, text: str = "") -> Edit:
    return lambda root: put(root / name, text)


def rename(old: str, new: str) -> Edit:
    def edit(root: Path) -> None:
        (root / new).parent.mkdir(parents=True, exist_ok=True)
        (root / old).rename(root / new)

    return edit


def copy(old: str, new: str) -> Edit:
    return lambda root: put(root / new, text_of(root / old))


def remove(name: str) -> Edit:
    return lambda root: (root / name).unlink()


def both(*edits: Edit) -> Edit:
    def edit(root: Path) -> None:
        for one in edits:
            one(root)

    return edit


def everywhere(how: Callable[[str], str], *, evidence: bool = True) -> Edit:
    """Every Markdown file put through a function, as a formatter does that is run over the folder."""

    def edit(root: Path) -> None:
        for path in sorted(root.rglob("*.md")):
            if evidence or "evidence" not in path.parts:
                put(path, how(text_of(path)))

    return edit


def recorded(folder: str) -> Edit:
    """The files as another program left them once, when it was run over this library."""

    def edit(root: Path) -> None:
        for path in sorted((RECORDED / folder).rglob("*.md")):
            put(root / path.relative_to(RECORDED / folder), text_of(path))

    return edit


def git(*commands: str) -> Edit:
    """Commands of a real git, in the library."""

    def edit(root: Path) -> None:
        names = {f"GIT_{who}_{what}": "maya@home" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        environment = {**os.environ, **names, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        for command in commands:
            subprocess.run(command, shell=True, cwd=root, env=environment, capture_output=True, check=False)

    return edit


def mdformat(extensions: tuple[str, ...] = ("frontmatter", "gfm"), **options: object) -> Edit:
    """mdformat itself."""

    def run(text: str) -> str:
        import mdformat as program

        return program.text(text, extensions=extensions, options=options)

    return everywhere(run)


def crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


def wrap(text: str, width: int, indent: str) -> str:
    """Every long line of a body broken at a width, what follows indented or not, as `gq` and fold do."""
    import textwrap

    head, fence, body = text.rpartition("\n---\n")
    lines = []
    for line in body.split("\n"):
        if line.startswith("- "):
            line = "\n".join(
                textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
            )
        lines.append(line)
    return head + fence + "\n".join(lines)


def sort_lists(text: str) -> str:
    """Runs of one-line bullets in alphabetical order."""
    return re.sub(r"(?:^- .*\n(?! ))+", lambda run: "".join(sorted(run[0].splitlines(True))), text, flags=re.MULTILINE)


def in_header(how: Callable[[str], str]) -> Callable[[str], str]:
    """What stands between the fences put through a function."""

    def run(text: str) -> str:
        head, rest = text.removeprefix("---\n").split("---\n", 1)
        return f"---\n{how(head)}---\n{rest}"

    return run


def block_lists(head: str) -> str:
    """Front matter as Obsidian's properties panel writes it back."""
    head = re.sub(
        r"^- \{time: (.*?), op: (.*?), seq: (.*?)\}$",
        r"  - time: \1\n    op: \2\n    seq: \3",
        head,
        flags=re.MULTILINE,
    )
    quoted = re.compile("^summary: '(.*)'$", re.MULTILINE)
    return quoted.sub(lambda m: "summary: " + json.dumps(m[1].replace("''", "'"), ensure_ascii=False), head)


def smart(text: str) -> str:
    """Typographic quotes, as a word processor or macOS puts them."""
    text = re.sub(r'"([^"\n]*)"', r"“\1”", text)
    return re.sub(r"(\w)'(\w)", r"\1’\2", text)


# vim, and anything that edits lines

way("vim", "cw: one word", change(CHOIR, ("Brahms", "Bach")), found="edited",
    says={5: "The choir sings Bach <Requiem> on 14 November."})  # fmt: skip
way("vim", "dd: an entry", change(CHOIR, (LINE6, "")), found="deleted", gone=(6,))
way("vim", "dd: the last entry of a topic", change(OMA, (text := "- <seq=9, source=user, observed=2026-03-01T09:00:00Z> "
    "Oma Hilde turns ninety in July 🎂 and moves to Lübeck; 祝い金 is in the blue envelope.\n", "")),
    found="deleted", gone=(9,))  # fmt: skip
way("vim", "dap: an entry of many lines", rewrite(BOAT, lambda text: re.sub(r"- <seq=3.*?alarm\n", "", text, flags=re.S)),
    found="deleted", gone=(3,))  # fmt: skip
way("vim", "yyp: an entry twice", change(CHOIR, (LINE5, LINE5 * 2)), found="doubled")
way(
    "vim",
    "yyp and another word: one seq twice",
    change(CHOIR, (LINE5, LINE5 + LINE5.replace("14", "21"))),
    found="clash",
)
way("vim", "ddp: two entries change places", change(CHOIR, (LINE5 + LINE6, LINE6 + LINE5)))
way("vim", ":sort the lists", everywhere(sort_lists, evidence=False))
way("vim", "J: two entries on one line", change(CHOIR, (LINE5 + LINE6, LINE5.rstrip("\n") + " " + LINE6)),
    found="edited deleted", gone=(6,), says={5: f"{BRAHMS} - {HEAD6} {REHEARSAL}"})  # fmt: skip
way("vim", ":%s/Terna/Tern/g", rewrite(BOAT, lambda text: text.replace("Terna", "Tern")), found="edited",
    says={10: "Tern moved to berth 12."})  # fmt: skip
way(
    "vim",
    "gqip: wrapped, continuations indented",
    rewrite(BOAT, lambda text: wrap(text, 80, "  ")),
    found="edited",
)
way("vim", "gqip: wrapped without indent", rewrite(CHOIR, lambda text: wrap(text, 80, "")), found="wrapped",
    says={6: "Rehearsals are\non Wednesdays at 19:00 in Sandviken church."})  # fmt: skip
way(
    "vim", "gqip in CURRENT: wrapped without indent", rewrite(CURRENT, lambda text: wrap(text, 60, "")), found="wrapped"
)
way("vim", ">>: the first entry indented", change(CHOIR, (LINE5, "  " + LINE5)))
way("vim", ">>: an entry indented below another", change(CHOIR, (LINE6, "  " + LINE6)), left="nested")
way("vim", ">G: a whole list indented", change(CHOIR, (LINE5 + LINE6, f"  {LINE5}  {LINE6}")))
way("vim", ":%retab!: tabs", rewrite(BOAT, lambda text: text.replace("\n  ", "\n\t")))
way("vim", "a tab after the bullet", rewrite(CHOIR, lambda text: text.replace("- <", "-\t<")))
way("vim", "noeol: no final newline", everywhere(lambda text: text.rstrip("\n"), evidence=False))
way("vim", "a final newline more", everywhere(lambda text: text + "\n"))
way("vim", "a swap file lies about", create("topics/.boat.md.swp", "b0VIM 9.0"))
way("vim", "a backup lies about", copy(BOAT, "topics/boat.md~"))
way("vim", "4913: the file that tests whether a folder is writable", create("topics/4913"))
way("vim", "an entry moved into another topic", both(change(CHOIR, (LINE6, "")), append(OMA, LINE6)))
way("vim", "an entry copied into another topic", append(OMA, LINE6), found="doubled")
way("vim", "an entry moved into CURRENT", both(change(CHOIR, (LINE6, "")), append(CURRENT, LINE6)))
way("vim", "an entry copied into CURRENT", append(CURRENT, LINE6), found="doubled")
way("vim", "an entry of CURRENT moved into a topic", lambda root: move_line(root, CURRENT, OMA, "<seq=11,"),
    found="no-evidence")  # fmt: skip
way("vim", "an entry of CURRENT copied into a topic", lambda root: copy_line(root, CURRENT, OMA, "<seq=11,"),
    found="doubled no-evidence")  # fmt: skip
way("vim", "a heading renamed", change(BOAT, ("## Upkeep", "## Maintenance")))
way("vim", "a heading taken away", change(BOAT, ("## Upkeep\n", "")))
way("vim", "a heading put between entries", change(CHOIR, (LINE6, "\n## When\n\n" + LINE6)))
way("vim", "the title changed", change(BOAT, ("# Boat Terna", "# Terna, our boat")))
way("vim", "a rule between entries", change(CHOIR, (LINE6, "\n---\n\n" + LINE6)))
way("vim", "blank lines doubled", rewrite(BOAT, lambda text: text.replace("\n\n", "\n\n\n")))
way("vim", "blank lines between entries", change(CHOIR, (LINE6, "\n" + LINE6)))
way("vim", "an HTML comment around entries", change(CHOIR, (LINE5, f"<!--\n{LINE5}-->\n")))
way("vim", "a code fence around an entry", change(CHOIR, (LINE5, f"```\n{LINE5}```\n")), left="near-miss")
way("vim", "a code fence that is not closed", change(CHOIR, ("# Choir\n", "# Choir\n\n```\n")))
way("vim", "prose below the entries", append(BOAT, "\nShe sails well.\n"))


def move_line(root: Path, source: str, target: str, mark: str) -> None:
    """The line that holds a mark, from one file to the end of another."""
    lines = text_of(root / source).splitlines(True)
    [line] = [line for line in lines if mark in line]
    put(root / source, "".join(one for one in lines if one != line))
    put(root / target, text_of(root / target) + line)


def copy_line(root: Path, source: str, target: str, mark: str) -> None:
    """The line that holds a mark, at the end of another file too."""
    [line] = [line for line in text_of(root / source).splitlines(True) if mark in line]
    put(root / target, text_of(root / target) + line)


# typing

way("hand", "a bullet", append(CHOIR, "- Bring the red folder.\n"), found="unsigned", signed=("Bring the red folder.",))
way("hand", "a bullet without a final newline", append(CHOIR, "- Bring the folder."), found="unsigned",
    signed=("Bring the folder.",))  # fmt: skip
way("hand", "bullets of all three kinds", append(CHOIR, "\n* one\n+ two\n- three\n"), found="unsigned",
    signed=("one", "two", "three"))  # fmt: skip
way("hand", "a bullet of several lines", append(CHOIR, "- Bring\n  the red folder\n\n  and a pencil\n"), found="unsigned",
    signed=("Bring\nthe red folder\n\nand a pencil",))  # fmt: skip
way("hand", "a bullet with bullets below it", append(CHOIR, "- Bring\n  - the folder\n  - a pencil\n"), found="unsigned",
    signed=("Bring\n- the folder\n- a pencil",))  # fmt: skip
way("hand", "a bullet under a heading of its own", append(OMA, "\n## Gifts\n\n-   a clock\n"), found="unsigned",
    signed=("a clock",))  # fmt: skip
way("hand", "a bullet between two entries", change(CHOIR, (LINE6, "- Alto sits left.\n" + LINE6)), found="unsigned",
    signed=("Alto sits left.",))  # fmt: skip
way("hand", "a bullet in CURRENT", append(CURRENT, "- Petter pays in oil.\n"), found="unsigned",
    signed=("Petter pays in oil.",))  # fmt: skip
way("hand", "a bullet in emoji and kanji", append(CHOIR, "- 🎵 合唱は水曜日です。\n"), found="unsigned",
    signed=("🎵 合唱は水曜日です。",))  # fmt: skip
way("hand", "bullets below an entry belong to it", change(CHOIR, (LINE6, LINE6 + "  - bring tea\n")), found="edited",
    says={6: f"{REHEARSAL}\n- bring tea"})  # fmt: skip
way("hand", "a line more of an entry", change(BOAT, ("  - knows the alarm\n", "  - knows the alarm\n  - has oil\n")),
    found="edited")  # fmt: skip
way("hand", "a line less of an entry", change(BOAT, ("  - has the second key\n", "")), found="edited")
way("hand", "task items", append(CHOIR, "\n- [ ] buy scores\n- [x] pay the fee\n* [ ] call Liv\n"))
way("hand", "a numbered list", append(CHOIR, "\n1. warm up\n2. sing\n"))
way("hand", "a quote", append(CHOIR, "\n> - not ours\n"))
way("hand", "bullets in a code fence", append(CHOIR, "\n```\n- not ours\n```\n"))
way("hand", "an empty bullet", append(CHOIR, "- \n-\n"))
way("hand", "prose in CURRENT", append(CURRENT, "\nTo sort out on Sunday.\n"))
way("hand", "another title in CURRENT", change(CURRENT, ("# CURRENT", "# Inbox")))
way("hand", "an entry with a seq of its own choice", append(CHOIR, "- <seq=30> The piano is tuned.\n"),
    found="no-evidence", says={30: "The piano is tuned."})  # fmt: skip
way("hand", "an entry without the space", append(CHOIR, "- <seq=30>The piano is tuned.\n"), found="no-evidence",
    says={30: "The piano is tuned."})  # fmt: skip
way("hand", "an entry split in two", change(CHOIR, (" in Sandviken church.", "\n- They are in Sandviken church.")),
    found="edited unsigned", says={6: "Rehearsals are on Wednesdays at 19:00"},
    signed=("They are in Sandviken church.",))  # fmt: skip
way("hand", "two entries joined into one line", change(CHOIR, (LINE5 + LINE6, "- <seq=5-6> Brahms, Wednesdays at 19:00.\n")),
    found="edited", says={5: "Brahms, Wednesdays at 19:00.", 6: "Brahms, Wednesdays at 19:00."})  # fmt: skip
way("hand", "a signature taken away", change(CHOIR, (HEAD6 + " ", "")), found="deleted unsigned", gone=(6,),
    signed=(REHEARSAL,))  # fmt: skip
way("hand", "a field of a signature changed", change(CHOIR, ("source=user, label", "source=Liv, label")))
way("hand", "a field added to a signature", change(CHOIR, ("label=D1:3", "label=D1:3, type=event")))
way("hand", "a seq changed to a new one", change(CHOIR, ("<seq=6,", "<seq=77,")), found="deleted no-evidence", gone=(6,),
    says={77: REHEARSAL})  # fmt: skip
way("hand", "a seq changed to another's", change(CHOIR, ("<seq=6,", "<seq=5,")), found="clash deleted", gone=(6,))
way("hand", "a date that is none", change(CHOIR, ("label=D1:3", "time=next Wednesday")), left="date")
way("hand", "an old entry pasted back", append(BOAT, "- <seq=1, source=user, observed=2026-03-01T09:00:00Z> Terna has berth "
    "31 in Skuteviken.\n"), found="returned", left="unsettled")  # fmt: skip
way("spell checker", "one letter", change(BOAT, ("Antifouling", "Anti-fouling")), found="edited")
way("spell checker", "an accent", change(OMA, ("Lübeck", "Luebeck")), found="edited")
way("hand", "a summary pinned", change(OMA, ("aux: {}", "aux: {pinned: true}")))
way("hand", "a summary pinned and rewritten", rewrite(OMA, in_header(lambda head: re.sub(
    "summary: .*", "summary: My grandmother", head).replace("aux: {}", "aux: {pinned: true}"))))  # fmt: skip

# files and folders

way("files", "a topic renamed", rename(CHOIR, "topics/singing.md"), found="renamed")
way("files", "a topic moved into a folder", rename(CHOIR, "topics/music/choir.md"), found="renamed")
way("files", "a folder renamed", rename("topics/house", "topics/home"), found="renamed")
way("files", "a topic renamed in kanji", rename(CHOIR, "topics/合唱.md"), found="renamed")
way("files", "a topic with spaces and an emoji", rename(CHOIR, "topics/Our choir 🎵.md"), found="renamed")
way("files", "a topic deleted", remove(CHOIR), found="deleted", gone=(5, 6))
way("files", "an empty folder", lambda root: (root / "topics" / "new").mkdir())
way("files", "a copy beside it", copy(CHOIR, "topics/choir copy.md"), found="doubled renamed")
way("files", "a copy that sorts first", copy(CHOIR, "topics/choir (1).md"), found="doubled renamed")
way("Syncthing", "a conflict copy", copy(CHOIR, "topics/choir.sync-conflict-20260501-090000-ABC.md"),
    found="doubled renamed")  # fmt: skip
way("Dropbox", "a conflicted copy with other words", both(
    copy(CHOIR, "topics/choir (Maya's conflicted copy).md"),
    change("topics/choir (Maya's conflicted copy).md", ("Brahms", "Bach"))), found="clash doubled renamed")  # fmt: skip
way("files", "a foreign Markdown file", create("topics/poem.md", "# Poem\n\n- a rose\n- a rose\n"))
way("files", "a foreign file with an id of its own", create("topics/zk.md", "---\nid: 20260501\n---\n- a thought\n"))
way("files", "a README in a folder", create("topics/house/README.md", "# House\n\n* what is where\n"))
way("files", "pictures and a PDF", lambda root: (root / "topics" / "terna.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00"))
way("macOS", ".DS_Store", lambda root: (root / "topics" / ".DS_Store").write_bytes(b"\0\0\0\1Bud1"))
way("Emacs", "an autosave file and a lock link", both(
    create("topics/#choir.md#", "half"),
    lambda root: (root / "topics" / ".#choir.md").symlink_to("maya@laptop.4711")))  # fmt: skip
way("Emacs", "a backup", copy(CHOIR, "topics/choir.md.~1~"))
way("Kate", "a swap file", create("topics/.choir.md.kate-swp", "x"))
way("git mergetool", ".orig left behind", copy(CHOIR, "topics/choir.md.orig"))
way("any editor", "a half-written temporary file", create("topics/choir.md.tmp", text_of(Path(__file__))[:400]))
way("any editor", "saved without a change, as another inode", both(
    copy(CHOIR, "topics/x"), rename("topics/x", CHOIR)))  # fmt: skip
way("any editor", "a file emptied before it is written anew", create(CHOIR), left="empty deleted")
way("any editor", "only the first half of a file is there", rewrite(BOAT, lambda text: text[: text.index("- [ ] buy")]),
    found="deleted", gone=(2, 4))  # fmt: skip
way("any editor", "cut off in the front matter", rewrite(CHOIR, lambda text: text[:60]), left="front-matter deleted")
way("any editor", "CURRENT deleted", remove(CURRENT), found="lost", gone=(11, 12))
way("any editor", "saved an older CURRENT over a newer", rewrite(CURRENT, lambda text: text[: text.index("- <seq=12")]),
    found="lost", gone=(12,))  # fmt: skip
way("files", "everything thrown away but evidence", lambda root: shutil.rmtree(root / "topics"), found="",
    left="deleted")  # fmt: skip

# Obsidian, Logseq, Typora

way("Obsidian", "its settings folder", create("topics/.obsidian/notes.md", "- a plugin's\n"))
way("Obsidian", "a vault of the whole library", create(".obsidian/app.json", "{}"))
way("Obsidian", "properties panel: block lists and quotes", everywhere(
    lambda text: in_header(block_lists)(text) if "update_log" in text else text, evidence=False))  # fmt: skip
way("Obsidian", "properties panel: another order", rewrite(CHOIR, in_header(
    lambda head: "aux: {}\n" + head.replace("aux: {}\n", ""))))  # fmt: skip
way("Obsidian", "properties panel: tags and aliases", change(CHOIR, (
    "aux: {}\n", "aux: {}\ntags:\n  - music\naliases:\n  - singing\ncssclasses: []\n")))  # fmt: skip
way("Obsidian", "properties panel: id quoted", change(CHOIR, ("id: choir", 'id: "choir"')))
way("Obsidian", "properties panel: another id", change(CHOIR, ("id: choir", "id: singing")), found="renamed")
way("Obsidian", "properties panel: log and aux deleted", rewrite(CHOIR, in_header(
    lambda head: re.sub(r"update_log:\n- .*\naux: \{\}\n", "", head))))  # fmt: skip
way("Obsidian", "properties panel: all of it deleted", rewrite(CHOIR, lambda text: text[text.index("# Choir") :]),
    left="adrift")  # fmt: skip
way("Obsidian", "a block reference", change(CHOIR, ("church.", "church. ^r7d3f1")), found="edited")
way("Obsidian", "a word made a link", change(CHOIR, ("Sandviken", "[[Sandviken]]")), found="edited")
way("Obsidian", "an entry made a task", change(CHOIR, (LINE6, LINE6.replace("- <", "- [ ] <"))), left="near-miss")
way("Obsidian", "an entry made a quote", change(CHOIR, (LINE6, "\n> " + LINE6)), left="near-miss")
way(
    "Obsidian", "a list numbered", change(CHOIR, ("- <seq=5", "1. <seq=5"), ("- <seq=6", "2. <seq=6")), left="near-miss"
)
way("Obsidian", "an entry made a heading", change(CHOIR, ("- <seq=5", "## <seq=5")), left="near-miss")
way("Obsidian", "the bullet taken off", change(CHOIR, ("- <seq=5", "<seq=5")), left="near-miss")
way("Obsidian", "an entry in bold", change(CHOIR, (LINE5, f"- **{HEAD5} {BRAHMS}**\n")), left="near-miss")
way("Obsidian", "an entry struck through", change(CHOIR, (LINE5, f"- ~~{HEAD5} {BRAHMS}~~\n")), left="near-miss")
way("Obsidian", "words in bold", change(CHOIR, ("Wednesdays", "**Wednesdays**")), found="edited")
way("Obsidian", "a callout", append(CHOIR, "\n> [!note] Folder\n> - red\n"))
way("Logseq", "headings as bullets, entries below them", rewrite(CHOIR, lambda text: text.replace("# Choir\n\n", "- # Choir\n")
    .replace("- <", "\t- <")))  # fmt: skip
way("Logseq", "properties below an entry", change(CHOIR, (LINE6, LINE6 + "  collapsed:: true\n  id:: 64f-9\n")),
    found="edited")  # fmt: skip
way("Typora", "bullets as stars, four spaces", everywhere(
    lambda text: re.sub(r"^- <", "*   <", text, flags=re.M), evidence=False))  # fmt: skip
way("Typora", "a table of contents", change(BOAT, ("# Boat Terna\n", "# Boat Terna\n\n[TOC]\n")))

# VS Code and formatters

way("VS Code", "trailing whitespace trimmed", everywhere(lambda text: re.sub(r"[ \t]+$", "", text, flags=re.M)))
way("VS Code", "final newlines trimmed to one", everywhere(lambda text: text.rstrip("\n") + "\n"))
way("VS Code", "CRLF in one file", rewrite(BOAT, crlf))
way("VS Code", "CRLF in every file", everywhere(crlf))
way("VS Code", "CRLF in the body only", rewrite(CHOIR, lambda text: text.replace("# Choir\n", "# Choir\r\n").replace(
    ".\n", ".\r\n")), found="edited")  # fmt: skip
way("VS Code", "UTF-8 with BOM", everywhere(lambda text: "\ufeff" + text))
way("VS Code", "a numbered list renumbered", change(BOAT, ("2. are", "1. are")))
way("prettier", "over the folder", recorded("prettier-plain"))
way("prettier", "--prose-wrap always", recorded("prettier-wrapped"))
way("prettier", "--use-tabs --tab-width 4", recorded("prettier-tabs"), words_changed=True)
way("mdformat", "over the folder", mdformat())
way("mdformat", "--wrap 80", mdformat(wrap=80))
way("mdformat", "--wrap 40: signatures wrapped, too", mdformat(wrap=40))
way("mdformat", "--number", mdformat(number=True))
way("mdformat", "without its front-matter plugin", mdformat(()), left="adrift")
way("markdownlint", "--fix: blank lines around headings and lists", everywhere(
    lambda text: re.sub(r"(?<!\n)\n(#+ .*\n)", r"\n\n\1", text)))  # fmt: skip
way("pandoc", "-t gfm: escaped and indented by four", everywhere(
    lambda text: re.sub(r"^- <", r"-   \\<", text, flags=re.M), evidence=False))  # fmt: skip
way(
    "a wiki",
    "HTML escapes",
    rewrite(CHOIR, lambda text: re.sub(r"<(seq.*?)>", r"&lt;\1&gt;", text)),
    found="near-miss",
)
way("a word processor", "typographic quotes", everywhere(smart, evidence=False), found="edited")
way("a word processor", "typographic quotes in a signature", both(
    change(CHOIR, ("label=D1:3", 'note="a, b"')), rewrite(CHOIR, smart)), found="near-miss")  # fmt: skip
way("a word processor", "bullets • and –", change(CHOIR, ("- <seq=5", "• <seq=5"), ("- <seq=6", "– <seq=6")),
    found="near-miss")  # fmt: skip
way("macOS", "a hard space after the bullet", change(CHOIR, ("- <seq=5", "-\u00a0<seq=5")), found="near-miss")
way("a chat window", "a zero-width space before the signature", change(CHOIR, ("- <seq=5", "- \u200b<seq=5")),
    found="near-miss")  # fmt: skip
way("hand", "spaces around the equals sign", change(CHOIR, ("<seq=5, source=user", "<seq = 5, source = user")),
    found="near-miss")  # fmt: skip
way(
    "hand",
    "no space after the commas",
    rewrite(CHOIR, lambda text: text.replace(", observed", ",observed")),
)
way("a grammar checker", "one seq with letters", change(CHOIR, ("<seq=5,", "<seq=5x,")), left="near-miss")
way("macOS", "decomposed accents", rewrite(OMA, lambda text: unicodedata.normalize("NFD", text)), found="edited")

# sed, iconv and the like

way("sed", "s/^- /* /", everywhere(lambda text: re.sub(r"^- <", "* <", text, flags=re.M)))
way("sed", "s/^- /+ /", everywhere(lambda text: re.sub(r"^- <", "+ <", text, flags=re.M), evidence=False))
way("sed", "/Terna/d", rewrite(BOAT, lambda text: re.sub(r"^- <.*Terna moved.*\n", "", text, flags=re.M)),
    found="deleted", gone=(10,))  # fmt: skip
way("unix2dos", "in CURRENT only", rewrite(CURRENT, crlf))
way(
    "unix2mac", "carriage returns alone", rewrite(CHOIR, lambda text: text.replace("\n", "\r")), left="encoding deleted"
)
way("iconv", "-t latin1", lambda root: (root / BATH).write_bytes(
    text_of(root / BATH).replace("Arne Vik", "Årne Vik").encode("cp1252")), left="encoding")  # fmt: skip
way("iconv", "-t utf-16", lambda root: (root / CHOIR).write_bytes(text_of(root / CHOIR).encode("utf-16")),
    left="encoding deleted")  # fmt: skip
way("iconv", "-t latin1 in CURRENT", lambda root: (root / CURRENT).write_bytes(
    text_of(root / CURRENT).replace("Petter", "Pétter").encode("latin-1")), left="encoding", stuck=CURRENT)  # fmt: skip
way("a disk", "a NUL byte in the words", change(CHOIR, ("Brahms", "Brah\0ms")), found="edited")

# front matter by hand

way("YAML", "a comment", change(CHOIR, ("aux: {}", "aux: {} # nothing yet")))
way("YAML", "a blank line", change(CHOIR, ("aux: {}", "\naux: {}")))
way("YAML", "closed by ...", change(CHOIR, ("aux: {}\n---", "aux: {}\n...")))
way("YAML", "spaces after the fence", rewrite(CHOIR, lambda text: text.replace("---\n", "---  \n")))
way("YAML", "the summary taken out", rewrite(CHOIR, in_header(lambda head: re.sub("summary: .*\n", "", head))))
way("YAML", "the token count taken out", rewrite(CHOIR, in_header(lambda head: re.sub("token_count: .*\n", "", head))))
way("YAML", "a wrong token count", rewrite(CHOIR, in_header(lambda head: re.sub("token_count: .*", "token_count: 1", head))),
    found="count")  # fmt: skip
way("YAML", "an empty line above it", rewrite(CHOIR, lambda text: "\n" + text), left="adrift")
way("YAML", "a key twice", change(CHOIR, ("aux: {}", "aux: {}\naux: {}")), left="front-matter")
way("YAML", "a tab", change(CHOIR, ("aux: {}", "aux:\n\tpinned: true")), left="front-matter")
way("YAML", "an open quote", change(CHOIR, ("id: choir", 'id: "choir')), left="front-matter")
way("YAML", "the closing fence lost", change(CHOIR, ("aux: {}\n---\n", "aux: {}\n")), left="front-matter")
way("YAML", "an update log of words", rewrite(CHOIR, in_header(lambda head: head.replace(
    "update_log:\n- {time", "update_log: none\nold:\n- {time"))))  # fmt: skip

# git

CONFLICT = "<<<<<<< HEAD\n- <seq=13> ours\n=======\n- <seq=13> theirs\n>>>>>>> branch\n"
way("git", "conflict markers in a topic", append(CHOIR, CONFLICT), left="conflict clash")
way("git", "conflict markers in CURRENT", append(CURRENT, CONFLICT), left="conflict clash", stuck=CURRENT)
way("git", "conflict markers in evidence", append(EVIDENCE, CONFLICT), left="conflict deleted", stuck=EVIDENCE)
way("git", "conflict markers in front matter", change(CHOIR, (
    "aux: {}\n", "<<<<<<< HEAD\naux: {}\n=======\naux: {a: 1}\n>>>>>>> b\n")), left="conflict")  # fmt: skip
way("git", "a real merge that conflicts", git(
    "git init -qb main", "git add .", "git commit -qm one", "git switch -qc other",
    "printf 'theirs\\n' >> topics/choir.md", "git commit -qam theirs", "git switch -q main",
    "printf 'ours\\n' >> topics/choir.md", "git commit -qam ours", "git merge other"), left="conflict", stuck="middle of a merge")  # fmt: skip
way("git", "a repository in the library", git("git init -q", "git add .", "git commit -qm one"))
way("git", "autocrlf on checkout", git("git init -q", "git add .", "git commit -qm one", "git config core.autocrlf true",
    "rm -r topics CURRENT.md evidence", "git checkout -q ."))  # fmt: skip
way("git", "an older state of a topic", rewrite(BOAT, lambda text: re.sub(r"- <seq=10.*\n", "- <seq=1, source=user, "
    "observed=2026-03-01T09:00:00Z> Terna has berth 31 in Skuteviken.\n", text)), found="returned deleted", gone=(10,))  # fmt: skip
way("git", "merge=union: an entry of evidence back in CURRENT", append(CURRENT, LINE5), found="doubled")
way(
    "git",
    "two machines gave one seq",
    append(CURRENT, "- <seq=11, source=Liv> Liv waters the plants.\n"),
    found="clash",
)
way("git", "a line of evidence lost", change(EVIDENCE, (LINE5, "")), found="no-evidence")
way("git", "an event of evidence lost", rewrite("evidence/2026-04.md", lambda text: re.sub("- <event=retire.*\n", "", text)),
    found="deleted", gone=(1,))  # fmt: skip
way("git clean -fdx", "everything derived deleted", lambda root: shutil.rmtree(root / ".infinimem"))
