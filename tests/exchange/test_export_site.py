"""The site and the one document: all of a library is there, nothing of it runs, every link leads somewhere."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given

from infinimem import Library
from infinimem.errors import BadInput
from infinimem.exchange.export.book import book_of
from infinimem.exchange.export.markup import UNSEEN, escaped, words_html
from infinimem.exchange.export.source import choose, read_source
from infinimem.exchange.export.words import day, slug
from infinimem.model import Filter
from infinimem.store.evidence import all_records, retirement
from tests.exchange.pages import NASTY, Read, nasty, opened, place_of, read_site, sample
from tests.faults.library_state import visible_files
from tests.text.hostile import texts

TAGS = set(
    "p br ul ol li a code pre em strong s blockquote hr table thead tbody tr th td".split()
)  # fmt: skip
ATTRIBUTES = {"href", "rel", "title", "value", "start", "class"}


# Text as HTML


def holds_nothing_active(made: str) -> None:
    for tag, attributes in Read(made).tags:
        assert tag in TAGS, made
        assert set(attributes) <= ATTRIBUTES, made
        assert re.match(r"(?i)https?://|mailto:", attributes.get("href") or "https://"), made


@given(texts)
def test_any_text_at_all_is_shown_whole_and_does_nothing(text: str) -> None:
    made = words_html(text)
    holds_nothing_active(made)
    read = Read(made)
    there = Counter(
        [char for char in read.text if char.isalnum()]
        + [char for _, given in read.tags for value in given.values() for char in value or ""]
    )
    assert not Counter(char for char in text.translate(UNSEEN) if char.isalnum()) - there


@pytest.mark.parametrize("text", NASTY)
def test_what_would_run_is_text(text: str) -> None:
    made = words_html(text)
    holds_nothing_active(made)
    assert "<script" not in made
    assert "\x00" not in made


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("a < b & c", "<p>a &lt; b &amp; c</p>\n"),
        ("two\nlines", "<p>two<br>\nlines</p>\n"),
        ("see https://a.example/x?y=(1).", '<p>see <a href="https://a.example/x?y=(1" rel="noreferrer noopener '
         'nofollow">https://a.example/x?y=(1</a>).</p>\n'),
        ("[name](https://a.example)", '<p><a href="https://a.example" rel="noreferrer noopener nofollow">name</a></p>'
         "\n"),
        ("[name](notes.md)", "<p>[name](notes.md)</p>\n"),
        ("3. three\n9. nine", '<ol start="3">\n<li value="3">three</li>\n<li value="9">nine</li>\n</ol>\n'),
        (r"C:\new\_x and &lt;", r"<p>C:\new\_x and &amp;lt;</p>" + "\n"),
        ("[a]: https://x.example\n", '<p>[a]: <a href="https://x.example" rel="noreferrer noopener nofollow">'
         "https://x.example</a></p>\n"),
        ("> " * 200 + "deep", '<p class="as-written">' + "&gt; " * 200 + "deep</p>"),
        ("| |b|\n|-|-:|\n|1|2|", '<table>\n<thead>\n<tr>\n<td></td>\n<th class="right">b</th>\n</tr>\n</thead>\n<tbody>'
         '\n<tr>\n<td>1</td>\n<td class="right">2</td>\n</tr>\n</tbody>\n</table>\n'),
        ("|a|b|\n|-|-:|\n|1|2|3 more|", '<p class="as-written">|a|b|\n|-|-:|\n|1|2|3 more|</p>'),
    ],
)  # fmt: skip
def test_a_little_markdown(text: str, made: str) -> None:
    assert words_html(text) == made


def test_dates_and_names() -> None:
    assert [day(one) for one in ("2026-05-01", "2026-05", "2026", "2026-13", "soon", "")] == [
        "1 May 2026", "May 2026", "2026", "2026", "soon", "",
    ]  # fmt: skip
    assert slug("maya-work") == "maya-work"
    assert slug("work/maya") == "work--maya"
    assert slug("東京") == "東京"
    assert slug("../..").startswith("--") is False
    assert len(slug("x" * 300)) < 80
    assert slug("a b") != slug("a?b")


# The book


def test_every_entry_is_in_the_book_once_and_what_was_replaced_is_behind_what_holds(tmp_path: Path) -> None:
    library = sample(tmp_path)
    book = book_of(choose(read_source(library.root), Filter()), "sample")
    shown = [seq for leaf in book.leaves for seq in leaf.seqs]
    past = [old.seq for leaf in book.leaves for old in leaf.past()]
    gone = [old.seq for top in book.gone for old in (top, *top.past())]
    assert sorted([*shown, *past, *gone]) == list(range(1, 404))
    assert len(past) >= 20
    for leaf in book.leaves:
        for old in leaf.replaced:
            assert library.trace(old.seq).by in leaf.seqs
    retired = {seq for seq, record in all_records(library.root).items() if retirement(record) is not None}
    assert {*past, *gone} == retired


def test_a_joined_line_shows_the_words_that_it_was_joined_from(tmp_path: Path) -> None:
    library = opened(tmp_path / "m")
    library.write(["Ines reports to Bo.", "Bo works on Tuesdays."])
    (tmp_path / "plan.yaml").write_text(
        "plan: 1\nsteps:\n- join: {seqs: 1-2, text: Ines reports to Bo. Bo works on Tuesdays.}\n"
        "- create: {topic: bo, title: Bo}\n- extend: {topic: bo, seqs: 1-2}\n"
    )
    library.flush(plan=tmp_path / "plan.yaml")
    [leaf] = book_of(choose(read_source(library.root), Filter()), "m").leaves
    assert leaf.seqs == (1, 2)
    assert [text for _, text in leaf.earlier] == ["Ines reports to Bo.", "Bo works on Tuesdays."]
    library.export("html", tmp_path / "site")
    read = read_site(tmp_path / "site")["topics/bo.html"]
    assert {"seq-1", "seq-2"} <= set(read.anchors)


def test_two_that_claim_to_have_replaced_each_other_are_both_told_of(tmp_path: Path) -> None:
    library = opened(tmp_path / "m")
    (library.root / "evidence" / "2026-05.md").write_text(
        "- <seq=1> one\n- <seq=2> two\n- <event=retire, seq=1, by=2, why=superseded, at=2026-05-01>\n"
        "- <event=retire, seq=2, by=1, why=superseded, at=2026-05-01>\n"
    )
    book = book_of(choose(read_source(library.root), Filter()), "m")
    assert {old.seq for top in book.gone for old in (top, *top.past())} == {1, 2}
    library.export("html", tmp_path / "site")


# The site


@pytest.fixture(scope="module", params=[sample, nasty])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    library = request.param(folder)
    library.export("html", folder / "out")
    (folder / "seqs").write_text(json.dumps(library.status().newest_seq))
    return folder / "out"


def test_every_link_leads_to_a_page_and_an_anchor_of_it(site: Path) -> None:
    pages = read_site(site)
    for name, page in pages.items():
        assert len(page.anchors) == len(set(page.anchors)), name
        for link in page.links:
            if re.match("https?://(ok|spy).example", link):
                continue
            target, anchor = place_of(link, name, site)
            assert (site / target).is_file(), f"{name}: {link}"
            assert not anchor or anchor in pages[target].anchors, f"{name}: {link}"


def test_every_entry_has_its_anchor_and_is_found_by_the_search(site: Path) -> None:
    pages = read_site(site)
    seqs = set(range(1, json.loads((site.parent / "seqs").read_text()) + 1))
    anchored = [one for page in pages.values() for one in page.anchors if re.fullmatch(r"seq-\d+", one)]
    assert {int(one[4:]) for one in anchored} == seqs
    assert len(anchored) == len(set(anchored))
    data = (site / "entries.js").read_text("utf-8")
    listed, rows = json.loads(data.removeprefix("infinimemEntries(").removesuffix(");\n"))
    assert {row[0] for row in rows} == seqs
    for seq, number, *_ in rows:
        target, _ = place_of(listed[number][0], "index.html", site)
        assert f"seq-{seq}" in pages[target].anchors


def test_headings_are_in_order_and_landmarks_are_there(site: Path) -> None:
    for name, page in read_site(site).items():
        levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1, name
        assert levels.count(1) == 1, name
        assert all(after <= before + 1 for before, after in pairwise(levels)), name
        assert {"header", "nav", "main", "footer"} <= {tag for tag, _ in page.tags}


def test_nothing_in_a_page_is_a_script_or_a_style_of_a_note(site: Path) -> None:
    for page in read_site(site).values():
        scripts = [given.get("src") or "" for tag, given in page.tags if tag == "script"]
        assert [Path(one).name for one in scripts] == ["theme.js", "site.js"]
        assert not any(tag in ("img", "iframe", "style", "object") for tag, _ in page.tags)
        assert not any(name.startswith("on") or name == "style" for _, given in page.tags for name in given)
        policy = next(given["content"] for tag, given in page.tags if given.get("http-equiv"))
        assert policy is not None
        assert policy.startswith("default-src 'none'; script-src 'self';")


def test_the_same_library_gives_the_same_site_and_only_private_files(tmp_path: Path) -> None:
    library = nasty(tmp_path)
    old = os.umask(0)
    try:
        library.export("html", tmp_path / "one")
        library.export("html", tmp_path / "two")
    finally:
        os.umask(old)
    one, two = visible_files(tmp_path / "one"), visible_files(tmp_path / "two")
    assert one == two
    for path in [tmp_path / "one", *(tmp_path / "one").rglob("*")]:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600)


def test_a_page_that_is_no_more_goes_and_what_others_put_there_stays(tmp_path: Path) -> None:
    library = nasty(tmp_path)
    library.export("html", tmp_path / "out")
    (tmp_path / "out" / "mine.txt").write_text("mine")
    (library.root / "topics" / "a #1?.md").unlink()
    pages = set(visible_files(tmp_path / "out"))
    library.export("html", tmp_path / "out")
    after = set(visible_files(tmp_path / "out"))
    assert {Path(one).parent.name for one in pages - after} == {"topics"}
    assert len(pages - after) == 1
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"


def test_a_mark_that_names_files_elsewhere_removes_nothing(tmp_path: Path) -> None:
    library = opened(tmp_path / "m")
    library.write("one")
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "mine.txt").write_text("mine")
    (out / "link").symlink_to(tmp_path)
    names = ["../mine.txt", str(tmp_path / "mine.txt"), "link/mine.txt", "link"]
    (out / "infinimem-export.json").write_text(json.dumps({"format": "infinimem-site", "files": names}))
    library.export("html", out)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert (out / "link").is_symlink()


def test_a_link_in_the_place_of_a_page_is_not_written_through(tmp_path: Path) -> None:
    library = opened(tmp_path / "m")
    library.write("one")
    out = tmp_path / "out"
    library.export("html", out)
    (tmp_path / "mine.txt").write_text("mine")
    (out / "index.html").unlink()
    (out / "index.html").symlink_to(tmp_path / "mine.txt")
    library.export("html", out)
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert not (out / "index.html").is_symlink()


def test_a_folder_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    library = opened(tmp_path / "m")
    library.write("one")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    for out in (tmp_path / "out", library.root, tmp_path, library.root / "topics", library.root / "topics" / "new"):
        with pytest.raises(BadInput):
            library.export("html", out)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["thesis.txt"]
    with pytest.raises(BadInput, match="folder"):
        library.export("html")


def test_a_long_page_continues_on_the_next(tmp_path: Path) -> None:
    library = opened(tmp_path / "m")
    lines = "".join(f"- <seq={seq}, time=2026-05-01> Note {seq}.\n" for seq in range(1, 451))
    (library.root / "topics" / "long.md").write_text(f"---\nid: long\ntoken_count: 9\n---\n# Long\n\n{lines}")
    library.export("html", tmp_path / "out")
    pages = read_site(tmp_path / "out")
    assert {"topics/long.html", "topics/long-2.html", "topics/long-3.html"} <= set(pages)
    assert "seq-450" in pages["topics/long-3.html"].anchors
    assert len([one for one in pages if one.startswith("timeline/2026-05")]) == 3


def test_what_is_private_is_in_no_file_of_the_site(tmp_path: Path) -> None:
    library = opened(tmp_path / "m")
    library.write([
        {"text": "The PIN is 4711.", "sensitivity": "private"},
        {"text": "The PIN is 1174 now.", "sensitivity": "private", "supersedes": 1},
        {"text": "Oma likes herring.", "sensitivity": "open"},
    ])  # fmt: skip
    library.flush()
    wanted = Filter((("sensitivity", "open"),))
    done = library.export("html", tmp_path / "out", filter=wanted)
    library.export("md", tmp_path / "out.md", filter=wanted, history=True)
    assert (done.entries, done.withheld) == (1, 2)
    everything = {**visible_files(tmp_path / "out"), "md": (tmp_path / "out.md").read_bytes()}
    for name, content in everything.items():
        for secret in (b"4711", b"1174", b"PIN"):
            assert secret not in content, name
    assert b"herring" in everything["entries.js"]


def test_an_empty_library_is_a_site_too(tmp_path: Path) -> None:
    library = opened(tmp_path / "m")
    library.export("html", tmp_path / "out")
    library.export("md", tmp_path / "out.md")
    assert "0 entries" in (tmp_path / "out" / "index.html").read_text()
    assert "0 entries in 0 topics." in (tmp_path / "out.md").read_text()


# One document


@pytest.mark.parametrize("format", ["md", "html"])
def test_an_undated_entry_is_shown_as_noted_on_its_day(tmp_path: Path, format: str) -> None:
    """Nobody said that it happened on that day."""
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: datetime(2026, 5, 3, tzinfo=UTC))
    library.write(["Maya cycles.", {"text": "Maya moved.", "time": "2026-05-02"}])
    library.flush()
    library.export(format, tmp_path / "out")
    if format == "md":
        text = (tmp_path / "out").read_text()
        assert "*noted 3 May 2026, #1*" in text
        assert "*2 May 2026, #2*" in text
        return
    pages = {
        path.relative_to(tmp_path / "out").as_posix(): path.read_text() for path in (tmp_path / "out").rglob("*.html")
    }
    [topic] = [text for name, text in pages.items() if name.startswith("topics/")]
    assert topic.count('<p class="when">noted <time datetime="2026-05-03">3 May 2026</time></p>') == 1
    assert topic.count('<p class="when"><time datetime="2026-05-02">2 May 2026</time></p>') == 1
    rows = json.loads((tmp_path / "out" / "entries.js").read_text().split("(", 1)[1].rstrip(");\n"))[1]
    assert {row[0]: row[6:] for row in rows} == {1: [1], 2: []}


def test_one_document_says_all_of_it_with_dates_and_sources(tmp_path: Path) -> None:
    library = sample(tmp_path)
    library.export("", tmp_path / "out.md")
    text = (tmp_path / "out.md").read_text("utf-8")
    flat = " ".join(text.split())
    book = book_of(choose(read_source(library.root), Filter()), "sample")
    for leaf in book.leaves:
        assert " ".join(leaf.text.split()) in flat
        assert f"#{leaf.seq}*" in text
    assert not any(" ".join(old.text.split()) in flat for old in book.gone[2:])
    assert "*2 July 2026, user, #192*" in text
    assert next(line for line in text.split("\n") if line.startswith("## ")) == "## Contents"
    library.export("md", tmp_path / "out.md", history=True)
    flat = " ".join((tmp_path / "out.md").read_text("utf-8").split())
    for leaf in (*book.leaves, *book.gone):
        assert all(" ".join(old.text.split()) in flat for old in leaf.past())
    assert "*noted 7 May 2026, Gro Sletten, #111, replaced by #192, 11 July 2026*" in flat


def test_escaped_text_is_text_in_an_attribute_too() -> None:
    assert escaped("\"'<>&\x00\ud800") == "&quot;&#x27;&lt;&gt;&amp;\u2400\ufffd"


# What held at a date


def test_what_held_at_a_date_goes_out_in_the_words_of_then(tmp_path: Path) -> None:
    now = [datetime(2026, 3, 1, 9, tzinfo=UTC)]
    library = Library.open(tmp_path / "memory", create=True, clock=lambda: now[0])
    library.write({"text": "The boat Terna has berth 12.", "time": "2026-03-01"})
    library.write({"text": "The boat Terna is red.", "time": "2026-03-01"})
    library.write({"text": "Ines told a secret of the boat.", "time": "2026-03-01", "sensitivity": "private"})
    library.flush()
    now[0] = datetime(2026, 6, 1, 9, tzinfo=UTC)
    library.write({"text": "The boat Terna has berth 14.", "time": "2026-06-01", "supersedes": 1})
    library.flush()
    then = Filter(as_of="2026-04-01")
    done = library.export("md", tmp_path / "then.md", filter=then)
    words = (tmp_path / "then.md").read_text("utf-8")
    assert "as of 2026-04-01" in words
    assert "berth 12" in words
    assert "is red" in words
    assert "berth 14" not in words
    assert done.entries == 3
    library.export("html", tmp_path / "site", filter=then)
    pages = "".join(page.read_text("utf-8") for page in (tmp_path / "site").rglob("*.html"))
    assert "berth 12" in pages
    assert "berth 14" not in pages
    with pytest.raises(BadInput, match="whole history"):
        library.export("jsonl", tmp_path / "then.jsonl", filter=then)
    settings = library.root / "infinimem.yaml"
    settings.write_text(settings.read_text() + "access: {export: {deny: {sensitivity: private}}}\n")
    library = Library.open(library.root)
    library.export("md", tmp_path / "then.md", filter=then)
    assert "secret" not in (tmp_path / "then.md").read_text("utf-8")
    assert "berth 12" in (tmp_path / "then.md").read_text("utf-8")
