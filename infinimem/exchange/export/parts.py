"""What the pages of the site are put together from: the skeleton, entries, lists that point at them."""

from __future__ import annotations

from collections.abc import Sequence

from infinimem.exchange.export.book import Book, Leaf
from infinimem.exchange.export.layout import View, address
from infinimem.exchange.export.markup import escaped, words_html
from infinimem.exchange.export.words import day, reason
from infinimem.text.lines import counted

SECURITY = "default-src 'none'; script-src 'self'; style-src 'self'; base-uri 'none'; form-action 'none'"
GLIMPSE = 220
"""Characters of an entry where it is only pointed at."""
DOT = '<span class="dot" aria-hidden="true"> · </span>'


def page(view: View, title: str, body: str, here: str = "") -> str:
    """A whole page."""
    up = view.up
    book = view.site.book
    links = (("index.html", "Topics"), ("timeline.html", "Timeline"), ("changes.html", "Changes"))
    current = ' aria-current="page"'
    items = "".join(
        f'<li><a href="{up}{path}"{current if name == here else ""}>{name}</a></li>' for path, name in links
    )
    whole = escaped(title) if title == book.name else f"{escaped(title)} · {escaped(book.name)}"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{SECURITY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
<title>{whole}</title>
<script src="{up}theme.js"></script>
<link rel="stylesheet" href="{up}site.css">
<script src="{up}site.js" defer></script>
</head>
<body data-up="{up}">
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
<div class="bar">
<a class="name" href="{up}index.html">{escaped(book.name)}</a>
<nav aria-label="Site"><ul role="list">{items}</ul></nav>
<form class="search" role="search" hidden>
<label for="query" class="unseen">Search all entries</label>
<input id="query" type="search" placeholder="Search" autocomplete="off" autocapitalize="off" spellcheck="false"
 aria-describedby="keys" aria-controls="found">
<kbd aria-hidden="true">/</kbd>
<span id="keys" class="unseen">Press slash to come here, arrow down to go to the results, escape to close them.</span>
<div id="found" class="found" hidden><p id="told" role="status" class="told"></p><ol role="list"></ol>
<button type="button" class="more" hidden>Show more</button></div>
</form>
<button type="button" id="theme" class="theme" hidden><span aria-hidden="true">◐</span><span></span></button>
</div>
</header>
<main id="main" tabindex="-1">
{body}
</main>
<footer class="foot"><p>A copy of an infinimem library for reading{newest(book)}.</p></footer>
</body>
</html>
"""


def newest(book: Book) -> str:
    """What the copy reaches up to."""
    leaves = list(book.leaves)
    if not leaves:
        return ""
    last = max(leaves, key=lambda leaf: leaf.seqs[-1])
    written = day(last.fields.get("observed", "")[:10])
    return f", up to entry {last.seqs[-1]}" + (f" of {escaped(written)}" if written else "")


def time_html(leaf: Leaf) -> str:
    """An entry's date as people read it and as programs do; of an undated one it says that it was noted then."""
    if not leaf.date:
        return '<span class="undated">undated</span>'
    return f'{"noted " if leaf.is_noted else ""}<time datetime="{escaped(leaf.date)}">{escaped(day(leaf.date))}</time>'


def glimpse(text: str, longest: int = GLIMPSE) -> str:
    """The beginning of a text, on one line."""
    flat = " ".join(text.split())
    if len(flat) <= longest:
        return escaped(flat)
    cut = flat[:longest]
    return escaped(cut.rsplit(" ", 1)[0] if " " in cut[longest // 2 :] else cut) + " …"


def pager(paths: Sequence[str], at: int, up: str, of: str) -> str:
    """Links to the page before and the one after."""
    if len(paths) < 2:
        return ""
    before = f'<a rel="prev" href="{up}{address(paths[at - 1])}">Previous page</a>' if at else "<span></span>"
    after = (
        f'<a rel="next" href="{up}{address(paths[at + 1])}">Next page</a>' if at + 1 < len(paths) else "<span></span>"
    )
    return pager_html(f"Pages of {of}", before, f"<span>{at + 1} of {len(paths)}</span>", after)


def pager_html(label: str, *parts: str) -> str:
    """Links to what comes before and after."""
    return f'<nav class="pager" aria-label="{escaped(label)}">{"".join(parts)}</nav>'


def section_html(name: str, title: str, body: str) -> str:
    """A part of a page under a heading that names it."""
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>\n{body}</section>\n'


# An entry


def leaf_html(view: View, leaf: Leaf) -> str:
    """An entry that holds, with its date, its words, where they come from, and what they replaced."""
    return (
        f'<li class="entry" id="seq-{leaf.seq}">{more_anchors(leaf)}'
        f'<p class="when">{time_html(leaf)}</p>'
        f'<div class="words" dir="auto">{words_html(leaf.text)}</div>'
        f'<p class="meta">{meta_html(view, leaf)}</p>{past_html(view, leaf)}</li>\n'
    )


def more_anchors(leaf: Leaf) -> str:
    """A joined entry is found by each of its seqs."""
    return "".join(f'<span id="seq-{seq}"></span>' for seq in leaf.seqs[1:])


def meta_html(view: View, leaf: Leaf) -> str:
    """Who said it, its number, and what it is linked with."""
    name = f"{leaf.seq}" if len(leaf.seqs) == 1 else f"{leaf.seqs[0]}–{leaf.seqs[-1]}"
    parts = [f'<span class="who">{escaped(leaf.source)}</span>'] if leaf.source else []
    parts.append(f'<a class="number" href="{view.link(leaf.seq)}"><span class="unseen">Entry </span>{name}</a>')
    if leaf.fields.get("expires") and not leaf.why:
        parts.append(f"until {escaped(day(leaf.fields['expires']))}")
    kind = leaf.fields.get("type", "")
    parts += [f'<span class="kind">{escaped(kind)}</span>'] if kind else []
    links = [link_html(view, piece) for piece in leaf.fields.get("links", "").split("+") if piece.strip()]
    parts += [f"see {', '.join(links)}"] if links else []
    if leaf.later:
        parts.append(f'replaced soon by <a href="{view.link(leaf.later)}">entry {leaf.later}</a>')
    return DOT.join(parts)


def link_html(view: View, piece: str) -> str:
    """One target of an entry's `links`: a seq or a topic, and how they belong together."""
    target, _, relation = piece.partition(":")
    name = target.strip()
    said = f" ({escaped(relation)})" if relation else ""
    if name.isdigit() and view.link(int(name)):
        return f'<a href="{view.link(int(name))}">entry {int(name)}</a>{said}'
    if name in view.site.pages:
        return f'<a href="{view.up}{address(view.site.pages[name][0])}">{escaped(name)}</a>{said}'
    return escaped(name) + said


def past_html(view: View, leaf: Leaf) -> str:
    """What an entry has replaced, folded away."""
    old = list(leaf.past())
    if not old and not leaf.earlier:
        return ""
    rows = "".join(old_html(view, one) for one in old)
    rows += "".join(
        f'<li class="old"><div class="words" dir="auto">{words_html(text)}</div>'
        f'<p class="meta">as written in {seq}</p></li>'
        for seq, text in leaf.earlier
    )
    words = []
    replaced = [one for one in old if one.why != "duplicate"]
    if replaced:
        words.append(f"replaces {counted(len(replaced), 'earlier entry', 'earlier entries')}")
    if len(old) > len(replaced):
        words.append(f"said {counted(len(old) - len(replaced), 'time', 'times')} more")
    if leaf.earlier:
        words.append(counted(len(leaf.earlier), "other wording"))
    said = ", ".join(words)
    return f'<details class="past"><summary>{said[:1].upper()}{said[1:]}</summary><ol role="list">{rows}</ol></details>'


def old_html(view: View, leaf: Leaf) -> str:
    """An entry that is not held any more."""
    return (
        f'<li class="old" id="seq-{leaf.seq}"><div class="words" dir="auto">{words_html(leaf.text)}</div>'
        f'<p class="meta">{time_html(leaf)}{DOT}{meta_html(view, leaf)}'
        f"{DOT}{reason_html(view, leaf)}</p></li>"
    )


def reason_html(view: View, leaf: Leaf) -> str:
    """Why an entry is not held any more, with the way to what took its place."""
    said = escaped(reason(leaf))
    link = view.link(leaf.by) if leaf.by else ""
    return said.replace(f"#{leaf.by}", f'<a href="{link}">entry {leaf.by}</a>', 1) if link else said


# Lists that point at entries


def row_html(view: View, leaf: Leaf, topic: str, longest: int = GLIMPSE) -> str:
    """An entry that is pointed at: its date, its beginning, where it stands, and whether it still holds."""
    title = view.site.titles.get(topic, "")
    place = f'<span class="where">{escaped(title)}</span>' if title else ""
    who = f'<span class="who">{escaped(leaf.source)}</span>' if leaf.source else ""
    fate = f'<span class="fate">{reason_html(view, leaf)}</span>' if leaf.why else ""
    meta = DOT.join(part for part in (who, place, fate) if part)
    kind = "row old" if leaf.why else "row"
    return (
        f'<li class="{kind}"><p class="when">{time_html(leaf)}</p>'
        f"{pointing_html(view, leaf, longest)}"
        f'<p class="meta">{meta}</p></li>\n'
    )


def pointing_html(view: View, leaf: Leaf, longest: int = GLIMPSE) -> str:
    """The beginning of an entry, leading to all of it."""
    return f'<p class="words" dir="auto"><a href="{view.link(leaf.seq)}">{glimpse(leaf.text, longest)}</a></p>'
