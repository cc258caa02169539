"""Libraries that the tests of the site share, and what can be read off its files."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from infinimem import Library

NOW = datetime(2026, 7, 1, 9, tzinfo=UTC)
SAMPLE = Path(__file__).resolve().parents[2] / "sample_library"
NASTY = (
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    "[press here](javascript:window.hacked=3) and [here](data:text/html;base64,PHNjcmlwdD4=)",
    '"><svg onload=window.hacked=4> <a href="javascript:window.hacked=5" onclick="window.hacked=6">x</a>',
    "![picture](https://spy.example/pixel.gif) <style>*{display:none}</style>",
    "[a]: javascript:window.hacked=7\n[a]\n\n<https://ok.example/?a=1&b=2> and bare https://ok.example/b.",
    "# a heading\n\n</li></ol></main><h1>Another page</h1>\n\n===\n\n<!-- comment -->",
    "```html\n</code></pre><script>window.hacked=8</script>\n```\nunclosed: `<b>` &lt;b&gt; &#60;",
    "</script><script>window.hacked=9</script>\u2028\u2029 \x00\x07\x1b[2J",
)


def opened(root: Path) -> Library:
    return Library.open(root, create=True, clock=lambda: NOW)


def sample(folder: Path) -> Library:
    """A copy of the sample library."""
    shutil.copytree(SAMPLE, folder / "sample")
    return opened(folder / "sample")


def nasty(folder: Path) -> Library:
    """A library whose every part tries to be more than text, in several scripts."""
    library = opened(folder / "<b>nasty</b> & co")
    library.write([
        *({"text": text, "source": "<i>Mallory</i>", "label": "\"'><script>"} for text in NASTY),
        {"text": "東京タワーの高さは三百三十三メートルです。", "source": "ゆき", "time": "1958-12"},
        {"text": "مرحبا بالعالم، هذا نص من اليمين.", "time": "2026-05-01"},
        {"text": "Größe 38 in Ocker, für Mathilda.", "links": "1:see+<b>+3"},
        {"text": "| item | price |\n|:--|--:|\n| tiles | 1,200 |\n\n3. third\n7. seventh\n\n- [ ] open\n  - nested"},
        {"text": "The café closes at five.", "time": "2026-04"},
        {"text": "The café closes at six.", "time": "2026-06-01", "supersedes": 14},
        {"text": "A coupon of the paint shop.", "expires": "2026-06-30"},
    ])  # fmt: skip
    plan = folder / "plan.yaml"
    plan.write_text(
        "plan: 1\nsteps:\n"
        "- create: {topic: nasty, title: '<script>window.hacked=10</script> nasty'}\n"
        "- extend: {topic: nasty, heading: '<img src=x onerror=window.hacked=11>', seqs: 1-9}\n"
        "- create: {topic: 東京/塔, title: 東京タワー}\n- extend: {topic: 東京/塔, seqs: 10-11}\n"
        "- create: {topic: plain, title: Plain}\n- extend: {topic: plain, heading: One, seqs: 12}\n"
        "- extend: {topic: plain, heading: Two, seqs: 13}\n- extend: {topic: plain, heading: Three, seqs: 15}\n"
        "- retire: {seq: 14, by: 15, why: superseded}\n- retire: {seq: 16, by: 0, why: expired}\n"
    )
    library.flush(plan=plan)
    page = library.root / "topics" / "plain.md"
    page.write_text(page.read_text() + "\n#### Deep\n\nProse of mine with <script>window.hacked=12</script>.\n")
    (library.root / "topics" / "a #1?.md").write_text("---\nsummary: <b>guest</b>\n---\n# A guest\n\nHello, *guest*.\n")
    library.write("The last one <em>waits</em>.")
    return library


class Read(HTMLParser):
    """What a page links to, which anchors it has, its tags with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append((tag, given))
        self.links += [value for name, value in attrs if name in ("href", "src") and value]
        self.anchors += [value for name, value in attrs if name == "id" and value]

    def handle_data(self, data: str) -> None:
        self.text += data


def read_site(site: Path) -> dict[str, Read]:
    """Every page of a site by its path."""
    return {path.relative_to(site).as_posix(): Read(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}


def place_of(link: str, page: str, site: Path) -> tuple[str, str]:
    """The page and anchor that a link on a page leads to."""
    parts = urlsplit(link)
    target = (site / page).parent / unquote(parts.path) if parts.path else site / page
    return target.resolve().relative_to(site.resolve()).as_posix(), unquote(parts.fragment)
