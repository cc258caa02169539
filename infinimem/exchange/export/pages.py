"""The pages of the site, one function a kind: topics, months, changes, the first page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby

from infinimem.exchange.export.book import Chapter, Leaf
from infinimem.exchange.export.layout import (
    ON_A_PAGE,
    Piece,
    Site,
    View,
    address,
    changed,
    chunked,
    month_of,
    numbered,
    pages_for,
)
from infinimem.exchange.export.markup import escaped, words_html
from infinimem.exchange.export.parts import (
    DOT,
    leaf_html,
    meta_html,
    page,
    pager,
    pager_html,
    pointing_html,
    row_html,
    section_html,
    time_html,
)
from infinimem.exchange.export.words import MONTHS, WHY, day
from infinimem.text.lines import counted

LATEST = 3
BUSIEST = 4
BAR = 320
"""Width of the bar of the fullest month."""


def index_page(site: Site) -> str:
    """The first page: what there is, what came last, every topic."""
    view = View(site, "")
    book = site.book
    leaves = list(book.leaves)
    dates = sorted(leaf.date for leaf in leaves if leaf.date)
    old = len(changed(book))
    facts = [counted(len(leaves), "entry", "entries"), counted(len(book.chapters), "topic")]
    facts += [f"{day(dates[0])} – {day(dates[-1])}"] if dates else []
    facts += [f'<a href="changes.html">{old:,} replaced or gone</a>'] if old else []
    body = f'<h1>{escaped(book.name)}</h1>\n<p class="facts">{" · ".join(facts)}</p>\n'
    latest = sorted(leaves, key=lambda leaf: -leaf.seqs[-1])[:LATEST]
    if latest:
        rows = "".join(row_html(view, leaf, leaf.topic, 120) for leaf in latest)
        part = f'<ol role="list" class="rows">{rows}</ol>'
        if book.waiting.leaves:
            waiting = counted(len(book.waiting.leaves), "entry waits", "entries wait")
            part += f'<p class="aside"><a href="waiting.html">{waiting} to be sorted into topics</a></p>'
        body += section_html("latest", "Written last", part)
    topics = "".join(topic_html(site, chapter) for chapter in book.chapters)
    if topics:
        body += section_html("topics", "Topics", f'<ul role="list" class="topics">{topics}</ul>')
    return page(view, book.name, body, "Topics")


def topic_html(site: Site, chapter: Chapter) -> str:
    """A topic on the first page: title, summary, how much and when."""
    first, last = chapter.dates
    span = day(first) if first[:7] == last[:7] else f"{month_name(first[:7])} – {month_name(last[:7])}"
    facts = [counted(len(chapter.leaves), "entry", "entries")] if chapter.leaves else ["a page of notes"]
    facts += [span] if first else []
    return (
        f'<li><h3><a href="{address(site.pages[chapter.topic][0])}">{escaped(chapter.title)}</a></h3>'
        f'{summary_html(chapter.summary)}<p class="meta">{" · ".join(facts)}</p></li>\n'
    )


def summary_html(summary: str) -> str:
    """A summary; the subjects and dates that a keyless one begins with stand apart from its sentences."""
    head, dash, rest = summary.partition(" — ")
    if not summary:
        return ""
    if not dash or " · " not in head:
        return f'<p class="summary" dir="auto">{escaped(summary)}</p>'
    return f'<p class="summary" dir="auto">{escaped(rest)}</p><p class="subjects" dir="auto">{escaped(head)}</p>'


def chapter_pages(site: Site, chapter: Chapter) -> Iterator[tuple[str, str]]:
    """The pages of a topic."""
    paths = site.pages[chapter.topic]
    chunks = chunked(chapter)
    is_waiting = chapter is site.book.waiting
    for number, (path, chunk) in enumerate(zip(paths, chunks, strict=True)):
        view = View(site, "" if is_waiting else "../")
        first, last = chapter.dates
        facts = [counted(len(chapter.leaves), "entry", "entries")] if chapter.leaves else []
        facts += [f"{day(first)} – {day(last)}" if first != last else day(first)] if first else []
        facts += ["a page that somebody keeps by hand"] if chapter.is_guest else []
        title = chapter.title if len(paths) == 1 else f"{chapter.title}, page {number + 1}"
        body = f'<article><h1 dir="auto">{escaped(title)}</h1>\n<p class="facts">{" · ".join(facts)}</p>\n'
        body += summary_html(chapter.summary) if not number else ""
        body += contents_html(chunk)
        body += sections_html(view, chunk)
        body += pager(paths, number, view.up, chapter.title) + "</article>"
        if not chunk and is_waiting:
            body += "<p>Nothing waits: every entry is in a topic.</p>"
        yield path, page(view, title, body)


def contents_html(chunk: Sequence[Piece]) -> str:
    """The headings of a page, where there are enough to lose one's way."""
    names = [headings for headings, _ in groupby(chunk, key=lambda piece: piece[0]) if headings]
    if len(names) < 3:
        return ""
    items = "".join(
        f'<li class="deep-{min(len(headings), 3)}"><a href="#part-{at}">{escaped(headings[-1])}</a></li>'
        for at, headings in enumerate(names, 1)
    )
    heading = '<h2 id="contents">On this page</h2>'
    return f'<nav class="contents" aria-labelledby="contents">{heading}<ol role="list">{items}</ol></nav>\n'


def sections_html(view: View, chunk: Sequence[Piece]) -> str:
    """Headings in their order, never one level skipped, with what stands under each."""
    parts: list[str] = []
    level = 1
    number = 0
    for headings, group in groupby(chunk, key=lambda piece: piece[0]):
        if headings:
            number += 1
            level = min(len(headings) + 1, level + 1, 6)
            parts.append(f'<h{level} id="part-{number}" dir="auto">{escaped(headings[-1])}</h{level}>\n')
        for is_entry, pieces in groupby((piece for _, piece in group), key=lambda one: isinstance(one, Leaf)):
            if is_entry:
                rows = "".join(leaf_html(view, piece) for piece in pieces if isinstance(piece, Leaf))
                parts.append(f'<ol role="list" class="entries">{rows}</ol>\n')
            else:
                prose = "".join(words_html(piece) for piece in pieces if isinstance(piece, str))
                parts.append(f'<div class="prose" dir="auto">{prose}</div>\n')
    return "".join(parts)


def month_name(month: str) -> str:
    """`2026-05` as `May 2026`."""
    return "Undated" if month == "undated" else day(month)


def timeline_page(site: Site) -> str:
    """The months, how much each holds, and what it was mostly about."""
    view = View(site, "")
    by_month: dict[str, list[str]] = defaultdict(list)
    for leaf, topic in site.entries:
        by_month[month_of(leaf)].append(topic)
    most = max(map(len, by_month.values()), default=1)
    said = f"{counted(len(site.entries), 'entry', 'entries')}, those that were replaced among them"
    body = f'<h1>Timeline</h1>\n<p class="facts">{said}</p>\n'
    years = groupby((month for month in site.months if month != "undated"), key=lambda month: month[:4])
    for year, months in [*((year, list(months)) for year, months in years), *undated(site)]:
        rows = "".join(month_html(site, month, by_month[month], most) for month in months)
        body += section_html(f"y{year}", year, f'<ol role="list" class="months">{rows}</ol>')
    return page(view, "Timeline", body, "Timeline")


def undated(site: Site) -> list[tuple[str, list[str]]]:
    """The entries without a date, as a year of their own."""
    return [("Undated", ["undated"])] if "undated" in site.months else []


def month_html(site: Site, month: str, topics: Sequence[str], most: int) -> str:
    """A month: its name, a bar for its size, its busiest topics."""
    count = len(topics)
    counts: dict[str, int] = defaultdict(int)
    for topic in topics:
        counts[topic] += topic in site.pages and topic != site.book.waiting.topic
    busiest = sorted(counts, key=lambda topic: (-counts[topic], topic))[:BUSIEST]
    said = " · ".join(escaped(site.titles[topic]) for topic in busiest if counts[topic])
    wide = max(2, round(BAR * count / most))
    name = MONTHS[int(month[5:7]) - 1] if len(month) == 7 and "01" <= month[5:7] <= "12" else "Without a month"
    name = "Without a date" if month == "undated" else name
    box = f'viewBox="0 0 {BAR} 10" preserveAspectRatio="none" width="{BAR}" height="10"'
    bar = f'<svg {box} aria-hidden="true"><rect width="{wide}" height="10" rx="2"/></svg>'
    amount = f'<p class="amount"><span>{counted(count, "entry", "entries")}</span>{bar}</p>'
    when = f'<p class="when"><a href="{address(site.months[month][0])}">{name}</a></p>'
    return f'<li>{when}{amount}<p class="meta" dir="auto">{said}</p></li>\n'


def month_pages(site: Site, month: str) -> Iterator[tuple[str, str]]:
    """The pages of a month: its entries by day."""
    paths = site.months[month]
    entries = sorted(
        ((leaf, topic) for leaf, topic in site.entries if month_of(leaf) == month),
        key=lambda pair: (pair[0].date, pair[0].seq),
    )
    name = month_name(month)
    for number, path in enumerate(paths):
        view = View(site, "../")
        chunk = entries[number * ON_A_PAGE : (number + 1) * ON_A_PAGE]
        title = name if len(paths) == 1 else f"{name}, page {number + 1}"
        body = f'<div class="indented"><h1>{title}</h1>\n'
        body += f'<p class="facts">{counted(len(entries), "entry", "entries")}</p></div>\n'
        for date, group in groupby(chunk, key=lambda pair: pair[0].date):
            rows = "".join(row_html(view, leaf, topic) for leaf, topic in group)
            when = escaped(day(date)) if date != month else f"{name}, no day" if date else "Undated"
            body += f'<section class="days"><h2>{when}</h2><ol role="list" class="rows">{rows}</ol></section>\n'
        body += f'<div class="indented">{pager(paths, number, view.up, name)}{months_around(view, month)}</div>'
        yield path, page(view, title, body, "Timeline")


def months_around(view: View, month: str) -> str:
    """Links to the months before and after."""
    months = view.site.months
    order = list(months)
    at = order.index(month)

    def way(rel: str, to: str) -> str:
        return f'<a rel="{rel}" href="{view.up}{address(months[to][0])}">{month_name(to)}</a>'

    before = way("prev", order[at - 1]) if at else "<span></span>"
    after = way("next", order[at + 1]) if at + 1 < len(order) else "<span></span>"
    return pager_html("Months", before, f'<a href="{view.up}timeline.html">All months</a>', after)


def change_pages(site: Site) -> Iterator[tuple[str, str]]:
    """What replaced what, and what is simply gone, the latest first."""
    leaves = changed(site.book)
    standing = {seq: leaf for leaf in site.book.leaves for seq in leaf.seqs} | {leaf.seq: leaf for leaf in leaves}
    gone = {leaf.seq for top in site.book.gone for leaf in (top, *top.past())}
    paths = numbered("changes", pages_for(len(leaves)))
    said = f"{counted(len(leaves), 'entry is', 'entries are')} not held any more. The words are kept."
    for number, path in enumerate(paths):
        view = View(site, "")
        chunk = leaves[number * ON_A_PAGE : (number + 1) * ON_A_PAGE]
        title = "Changes" if len(paths) == 1 else f"Changes, page {number + 1}"
        body = f'<h1>{title}</h1>\n<p class="facts">{said if leaves else "Nothing was replaced so far."}</p>\n'
        for date, group in groupby(chunk, key=lambda leaf: leaf.at[:10]):
            rows = "".join(change_html(view, leaf, standing.get(leaf.by), leaf.seq in gone) for leaf in group)
            body += f'<h2 class="day">{escaped(day(date)) or "Undated"}</h2>\n'
            body += f'<ol role="list" class="changes">{rows}</ol>\n'
        yield path, page(view, title, body + pager(paths, number, "", "changes"), "Changes")


def change_html(view: View, leaf: Leaf, now: Leaf | None, is_here: bool) -> str:
    """One entry that went, and what came; `is_here` says that this is its place in the site."""
    anchor = f' id="seq-{leaf.seq}"' if is_here else ""
    words = f'<div class="words" dir="auto">{words_html(leaf.text)}</div>' if is_here else pointing_html(view, leaf)
    meta = f"{time_html(leaf)}{DOT}{meta_html(view, leaf)}"
    why = WHY.get(leaf.why, leaf.why)
    new = ""
    if now is not None:
        label = "by" if leaf.why != "duplicate" else "the same as"
        who = f"{DOT}{escaped(now.source)}" if now.source else ""
        new = side_html("after", label, pointing_html(view, now), f"{time_html(now)}{who}")
    return f'<li class="change"{anchor}>{side_html("before", why, words, meta)}{new}</li>\n'


def side_html(side: str, label: str, words: str, meta: str) -> str:
    """What went, or what came."""
    return f'<div class="{side}"><p class="label">{escaped(label)}</p>{words}<p class="meta">{meta}</p></div>'
