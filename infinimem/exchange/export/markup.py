"""Stored text as HTML that can do nothing: escaped, with the little of Markdown that notes use, and no word lost."""

from __future__ import annotations

import html
import re
from collections import Counter
from functools import cache
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MARKED = re.compile(r"[`*_\[\]<>~|\n]|https?://|^[ \t]|^\s*(?:[-+]|[0-9]{1,9}[.)])[ \t]")
"""What a text has in it that may be more than plain words."""
SAFE_LINK = re.compile(r"(?:https?://|mailto:)[^\s]", re.IGNORECASE)
BARE_LINK = re.compile(r"https?://[^\s<>\"'`]*[^\s<>\"'`.,;:!?)\]}]")
UNSEEN = {
    **{code: 0x2400 + code for code in range(32) if code not in (9, 10)},
    **dict.fromkeys(range(127, 160), 0xFFFD),
    **dict.fromkeys(range(0xD800, 0xE000), 0xFFFD),
}
"""Control characters and halves of characters, which HTML may not hold."""
DEEPEST = 60


def escaped(text: str) -> str:
    """A text as HTML shows it, in an attribute too."""
    return html.escape(text.translate(UNSEEN))


def words_html(text: str) -> str:
    """An entry or prose as HTML: lists, code, tables, emphasis and safe links; anything else as it is written.

    Headings, images, HTML and references are left as text. Where a part of the text would not be shown, all of it
    is shown as written.
    """
    text = text.replace("\r\n", "\n")
    if not MARKED.search(text):
        return f"<p>{escaped(text)}</p>"
    made = reader().render(text.translate(UNSEEN))
    return made if says_all(made, text) else f'<p class="as-written">{escaped(text)}</p>'


@cache
def reader() -> MarkdownIt:
    """The Markdown that notes may use."""
    from markdown_it import MarkdownIt

    made = MarkdownIt("commonmark", {"html": False, "breaks": True, "xhtmlOut": False, "maxNesting": DEEPEST})
    made.enable(["table", "strikethrough"])
    made.disable(["image", "heading", "lheading", "html_block", "html_inline", "reference", "escape", "entity"])
    made.validateLink = is_safe  # type: ignore[method-assign]
    made.normalizeLink = str  # type: ignore[method-assign,assignment]
    made.core.ruler.push("bare_links", link_bare)
    made.core.ruler.push("empty_headers", plain_headers)
    made.add_render_rule("link_open", open_link)
    made.add_render_rule("list_item_open", open_item)
    for name in ("th_open", "td_open"):
        made.add_render_rule(name, open_cell)
    return made


def is_safe(url: str) -> bool:
    """Whether a link may be followed: it leads to the web or to a mailbox, never to a script or a file."""
    return SAFE_LINK.match(url) is not None


def link_bare(state: Any) -> None:
    """Turn web addresses that stand in the text into links."""
    for block in state.tokens:
        if block.type != "inline":
            continue
        depth = 0
        children: list[Token] = []
        for token in block.children:
            depth += token.nesting if token.type in ("link_open", "link_close") else 0
            children += split_at_links(token) if token.type == "text" and not depth else [token]
        block.children = children


def plain_headers(state: Any) -> None:
    """A cell of a table's head that says nothing heads nothing: a reader of the screen is told so."""
    for at, token in enumerate(state.tokens):
        if token.type == "th_open" and not state.tokens[at + 1].content.strip():
            token.tag = state.tokens[at + 2].tag = "td"


def split_at_links(token: Token) -> list[Token]:
    """A piece of text with its web addresses as links."""
    from markdown_it.token import Token

    found: list[Token] = []
    at = 0
    for match in BARE_LINK.finditer(token.content):
        opening = Token("link_open", "a", 1, attrs={"href": match[0]})
        texts = [Token("text", "", 0, content=one) for one in (token.content[at : match.start()], match[0])]
        found += [texts[0], opening, texts[1], Token("link_close", "a", -1)]
        at = match.end()
    return [*found, Token("text", "", 0, content=token.content[at:])]


def open_link(self: Any, tokens: Any, at: int, options: Any, env: Any) -> str:
    """A link that tells the other side nothing."""
    tokens[at].attrSet("rel", "noreferrer noopener nofollow")
    return str(self.renderToken(tokens, at, options, env))


def open_item(self: Any, tokens: Any, at: int, options: Any, env: Any) -> str:
    """An item of a numbered list has the number that was written."""
    if tokens[at].info.isdigit():
        tokens[at].attrSet("value", tokens[at].info)
    return str(self.renderToken(tokens, at, options, env))


def open_cell(self: Any, tokens: Any, at: int, options: Any, env: Any) -> str:
    """A cell of a table, aligned by a class: the pages allow no styles of their own."""
    style = str(tokens[at].attrs.pop("style", ""))
    if style.endswith(("right", "center")):
        tokens[at].attrSet("class", style.rpartition(":")[2])
    return str(self.renderToken(tokens, at, options, env))


class _Shown(HTMLParser):
    """Collects what a reader of some HTML can see or follow."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts += [value or "" for name, value in attrs if name in ("href", "title", "value", "class")]


def says_all(made: str, text: str) -> bool:
    """Whether every letter and digit of a text is in its HTML."""
    shown = _Shown()
    shown.feed(made)
    shown.close()
    there = Counter(char for part in shown.parts for char in part if char.isalnum())
    return not Counter(char for char in text.translate(UNSEEN) if char.isalnum()) - there
