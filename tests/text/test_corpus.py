"""Messy files as people, editors and other tools leave them: what is read from each, and that each survives."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from infinimem.errors import Unreadable
from infinimem.model import Document, Entry, Signature
from infinimem.plan.desk import insert_entries, refresh
from infinimem.text.document import parse, render, units, unsigned_entries

CORPUS = Path(__file__).parent.parent / "corpus"
NAMES = sorted(path.name for path in CORPUS.iterdir())
NOW = "2026-05-02T08:00:11Z"

# Per file: whose it is, its problems (line, code), its entries (line, seqs, text).
Expected = tuple[str, list[tuple[int, str]], list[tuple[int, tuple[int, ...], str]]]

FILES: dict[str, Expected] = {
    "0123.md": ("ours", [], [(6, (1,), "an entry")]),
    "2025-01-15_14-30-00_abc123.md": (
        "ours",
        [],
        [
            (16, (1785398400,), "Melanie paints at the lake."),
            (17, (1785398401,), "Melanie ran a charity race."),
            (20, (1785398402,), "Caroline went to a support group."),
        ],
    ),
    "bom.md": ("ours", [], [(12, (1,), "first")]),
    "bom-entry.md": ("guest", [], [(1, (1,), "the mark stands right before the dash"), (2, (2,), "second")]),
    "broken-front-matter.md": ("read-only", [(3, "front-matter")], [(8, (1,), "an entry")]),
    "cjk.md": (
        "ours",
        [],
        [
            (14, (1,), "王芳加入了北极光公司，担任首席工程师。"),
            (15, (2,), "来週の月曜日に東京へ出張します。\nホテルは「新宿」です。"),
            (17, (3,), "전자책을 샀어요。"),
        ],
    ),
    "conflict.md": (
        "read-only",
        [(13, "conflict"), (17, "conflict")],
        [(12, (1,), "both have this"), (14, (2,), "ours"), (16, (2,), "theirs"), (18, (3,), "after")],
    ),
    "conflict-in-front-matter.md": ("read-only", [(3, "conflict")], [(12, (1,), "an entry")]),
    "crlf.md": (
        "ours",
        [],
        [
            (14, (1,), "The winter tyres are in the cellar."),
            (15, (2,), "Service is due:\noil, filter\n\nand the brakes."),
            (22, (3,), "The key is with Ines."),
        ],
    ),
    "duplicate-keys.md": ("read-only", [(5, "front-matter")], [(9, (1,), "an entry")]),
    "emoji.md": (
        "ours",
        [],
        [
            (12, (1,), "🇳🇴 flag, 👍🏽 skin tone, zero\u200bwidth, soft\u00adhyphen, e\u0301 and é"),
            (13, (2,), "\u200b"),
            (14, (3,), "\ufeff mark inside"),
        ],
    ),
    "empty.md": ("guest", [], []),
    "fences.md": (
        "ours",
        [],
        [
            (17, (1,), "An entry with code:\n```sh\nmake\n# still code\n```"),
            (22, (2,), "after it"),
            (47, (3,), "opens ``` and never closes\n```"),
            (49, (4,), "is an entry again"),
            (52, (5,), "nobody closes the fence above, so this is an entry"),
        ],
    ),
    "front-matter-list.md": ("read-only", [(2, "front-matter")], [(7, (1,), "an entry")]),
    "headings.md": (
        "ours",
        [],
        [
            (12, (1,), "before the title"),
            (16, (2,), "under the title"),
            (20, (3,), "two"),
            (24, (4,), "skips a level"),
            (28, (5,), "a mark that belongs to the name\n# not a heading, indented into the entry"),
            (32, (6,), "under the indented one"),
            (37, (7,), "under an empty heading"),
        ],
    ),
    "html-and-tables.md": (
        "ours",
        [],
        [
            (15, (1,), "inside details <b>bold</b> &amp; more"),
            (24, (2,), "in a comment that spans lines"),
            (32, (3,), "under an underlined title | with | bars"),
            (34, (4,), "after a rule"),
            (38, (5,), "indented by four"),
        ],
    ),
    "hugo.md": ("guest", [], [(5, (1,), "an entry")]),
    "impossible-date.md": ("read-only", [(3, "front-matter")], [(5, (1,), "an entry")]),
    "jekyll.md": ("guest", [], [(7, (1,), "an entry")]),
    "latin-1.md": (
        "read-only",
        [(4, "encoding")],
        [(3, (1,), "ascii first"), (4, (2,), "Gr\udcfc\udcdfe aus K\udcf6ln"), (5, (3,), "na\udcefve")],
    ),
    "mixed-endings.md": (
        "guest",
        [],
        [(3, (1,), "unix line"), (4, (2,), "dos line\r\nand more\r"), (7, (3,), "unix again")],
    ),
    "nested-lists.md": (
        "ours",
        [],
        [
            (13, (1,), "under a numbered item\nits second line"),
            (17, (2,), "star, deep\n- <seq=90> nested text"),
            (21, (3,), "signed child"),
            (23, (4,), "another child"),
            (
                27,
                (5,),
                "plus at the margin\n\na second paragraph of five\n\n    and code in it\n- <seq=6> one space in",
            ),
            (33, (7,), "seven\n- <seq=91> one space deeper than seven, so its text"),
        ],
    ),
    "no-final-newline.md": ("ours", [], [(12, (1,), "first"), (13, (2,), "last line,\nnot ended")]),
    "obsidian.md": ("guest", [], [(30, (1,), "==highlighted== in an entry ^def456")]),
    "only-blank-lines.md": ("guest", [], []),
    "renamed.md": ("ours", [], [(12, (1,), "an entry")]),
    "rtl.md": (
        "ours",
        [],
        [
            (12, (1,), "انتقلت ليلى إلى القاهرة في ٣ مايو ٢٠٢٦."),
            (13, (2,), "שירה קנתה אופניים (\u202aTrek 520\u202c) בתל אביב.\n\u200fהמחיר: 4,200 ₪"),
        ],
    ),
    "rule-first.md": ("guest", [], [(5, (1,), "an entry")]),
    "separators.md": (
        "ours",
        [],
        [
            (12, (1,), "form\x0cfeed"),
            (14, (2,), "line\u2028separator and paragraph\u2029separator"),
            (15, (3,), "next\x85line, file\x1cseparator, vertical\x0btab"),
            (16, (4,), "overwritten\rby a lone carriage return\nsecond\rline"),
            (18, (5,), "no\xa0break\u3000and wide spaces\xa0"),
        ],
    ),
    "signatures.md": (
        "ours",
        [],
        [
            (12, (1,), "the paper's own"),
            (13, (2,), "seq need not come first"),
            (14, (3,), "quoted values"),
            (15, (4, 5, 6), "a range"),
            (16, (7, 8, 11), "ranges joined"),
            (17, (12,), "reserved keys"),
            (18, (13,), "no space after"),
            (19, (14,), ""),
            (20, (15,), "<seq=90> text that begins like a signature"),
            (21, (16,), "unknown keys"),
            (22, (17,), "a key twice"),
        ],
    ),
    "tabs.md": (
        "ours",
        [],
        [
            (13, (1,), "nested by a tab\nits continuation by two"),
            (15, (2,), "and another"),
            (16, (3,), "at the margin\ncontinued by a tab\n- <seq=99> nested under an entry, so its text"),
            (19, (4,), "a tab after the signature"),
            (20, (98,), "a tab after the dash"),
        ],
    ),
    "typed.md": ("guest", [], [(3, (1,), "written by the tool"), (18, (2,), "the child")]),
    "unclosed-front-matter.md": ("read-only", [(1, "front-matter")], [(7, (1,), "an entry")]),
    "utf-16.md": ("read-only", [(1, "encoding")], []),
}


def read(name: str) -> Document:
    """A file of the corpus, as if it lay under topics/."""
    return parse(f"topics/{name}", (CORPUS / name).read_bytes())


def test_every_file_of_the_corpus_is_described() -> None:
    assert sorted(FILES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_file_survives_byte_for_byte_and_says_what_a_reader_sees(name: str) -> None:
    document = read(name)
    whose, problems, entries = FILES[name]
    assert render(document) == (CORPUS / name).read_bytes()
    assert [(problem.line, problem.code) for problem in document.problems] == problems
    assert [(entry.span.start + 1, entry.seqs, entry.text) for entry in document.entries] == entries
    assert ("read-only" if document.blocking else "guest" if document.is_guest else "ours") == whose
    assert len(units(document)) >= len(entries)


@pytest.mark.parametrize("name", [name for name in NAMES if FILES[name][0] == "ours"])
def test_our_own_files_take_new_entries_and_lose_nothing(name: str) -> None:
    before = read(name)
    new = [Entry("CURRENT", Signature((5001,), (("source", "user"),)), "new\n\nand more\n```\n- <seq=1> no entry\n")]
    for heading in ("", "Work", "Two"):
        after = insert_entries(before, heading, new)
        assert [(entry.seqs, entry.text) for entry in after.entries if entry.seq != 5001] == [
            (entry.seqs, entry.text) for entry in before.entries
        ]
        assert [entry.text for entry in after.entries if entry.seq == 5001] == [new[0].text]
        rest = iter(after.lines)
        ends = tuple(line for line in before.lines if line.endswith("\n"))
        assert all(any(line == other for other in rest) for line in ends), "only additions"
        done = refresh(after, "What it is about.", [("add", (5001,))], NOW)
        assert done.header.fields["id"] == name.removesuffix(".md") and not done.problems
        assert done.lines[done.header.span.stop :] == after.lines[after.header.span.stop :]


@pytest.mark.parametrize("name", [name for name in NAMES if FILES[name][0] == "read-only"])
def test_what_cannot_be_understood_says_where_and_what_to_do(name: str) -> None:
    document = read(name)
    for problem in document.problems:
        assert str(problem).startswith(f"topics/{name}:{problem.line}: ")
        assert any(remedy in problem.message for remedy in ("correct it", "resolve it", "save it", "end it")), (
            problem.message
        )
    if {"front-matter"} & {problem.code for problem in document.problems}:
        with pytest.raises(Unreadable):
            refresh(document, "x", [("add", (1,))], NOW)


def test_the_headings_above_each_entry() -> None:
    assert [(entry.seq, entry.headings) for entry in read("headings.md").entries] == [
        (1, ()),
        (2, ("Title",)),
        (3, ("Title", "Spaced out")),
        (4, ("Title", "Spaced out", "Four deep")),
        (5, ("Title", "C#")),
        (6, ("Title", "One space in")),
        (7, ("",)),
    ]


def test_the_fields_of_each_signature() -> None:
    fields = {entry.seq: dict(entry.signature.fields) for entry in read("signatures.md").entries}
    assert fields[1] == {"time": "empty", "source": "AI"} and read("signatures.md").entries[0].time == ""
    assert fields[2] == {"source": "user"}
    assert fields[3] == {"label": "a, b > c", "note": 'say "hi"\nthere'}
    assert fields[12] == {"supersedes": "4-6+8", "links": "31:contradicts+maya-home", "conf": "0.95"}
    assert fields[16] == {"x-custom.key": "any thing at all"}
    cjk = {entry.seq: entry.source for entry in read("cjk.md").entries}
    assert cjk == {1: "王芳", 2: "田中、花子", 3: ""}


def test_front_matter_of_another_tool_is_read_for_what_it_says() -> None:
    fields = read("obsidian.md").header.fields
    assert fields["aliases"] == ["Maya", "Lindqvist, Maya"]
    assert fields["tags"] == ["people/friend", False]
    assert (fields["phone"], fields["time"], fields["publish"]) == (83, 750, False)
    assert (fields["due date"], fields["empty"]) == ("next week", None)
    assert fields["date"] == datetime.date(2026, 5, 1)


def test_the_papers_own_files_keep_their_log_and_gain_ours() -> None:
    done = refresh(read("2025-01-15_14-30-00_abc123.md"), "", [("add", (1785398403,))], NOW)
    log = done.header.fields["update_log"]
    assert [row.get("operation", row.get("op")) for row in log] == ["create", "update", "add"]
    assert done.header.fields["summary"] == "" and not done.is_guest


def test_only_plain_bullets_at_the_margin_of_the_buffer_are_ours_to_sign() -> None:
    typed = parse("CURRENT.md", (CORPUS / "typed.md").read_bytes())
    assert [(entry.span.start + 1, entry.text) for entry in unsigned_entries(typed)] == [
        (4, "typed by hand\nwith a second line"),
        (7, "a star"),
        (14, "- a dash in a bullet"),
        (15, "three spaces"),
    ]


def test_what_stands_in_unreadable_front_matter_can_still_be_found() -> None:
    texts = [unit.text for unit in units(read("broken-front-matter.md"))]
    assert any("Maya: staff engineer: at Nordlys" in text for text in texts)
    assert any(
        "Grüße aus Köln".encode("latin-1").decode("utf-8", "surrogateescape") in unit.text
        for unit in units(read("latin-1.md"))
    )
