"""Documents as people, editors, exporters and git leave them, and worse: strategies that the laws share."""

from __future__ import annotations

from hypothesis import strategies as st

from infinimem.model import Document, Signature
from infinimem.text.document import parse

WORDS = (
    "Maya", "joined", "Nordlys", "2026-05-01", "12:30", "C#", "don't", "naïve", "ß", "İ",
    "买了自行车", "東京", "서울에서", "مرحبا", "שלום", "हिन्दी", "ไทย", "🙂", "👩‍👩‍👧", "🇳🇴", "\u200b", "\u200f", "\ufeff",
    "\u00a0", "\u3000", "\u2028", "\u2029", "\u0085", "\x0c", "\x0b", "\x1c", "\x1e", "\x00", "\x7f", "\r", "\t", "\\", "\\n",
    '"', "'", "`", "```", "~~~", "<", ">", "<seq=7>", "<seq=7, source=x> text", "- <seq=8> y", "<event=retire, seq=3>",
    "#", "# not a heading", "##", "-", "- ", "* ", "+", "---", "...", "===", "=", ",", ":", "key: value", "[ ]", "[x] done",
    "|", "| a | b |", "<b>", "</div>", "<!--", "-->", "&amp;", "[[link]]", "![i](u)", "{", "}", "%", "!", "@", "*", "**bold**",
    "<<<<<<< HEAD", "=======", ">>>>>>> branch", "  ", " ", "", "x" * 300, "\u0301", "\ud7ff", "\U0010ffff",
)  # fmt: skip
UNDECODABLE = ("\udce9", "\udcff\udcfe", "caf\udce9", "\udc80")

words = st.sampled_from(WORDS)
phrases = st.lists(words, max_size=4).map(" ".join) | st.lists(words, max_size=3).map("".join)
"""One line of text; it may hold lone carriage returns and every other separator, but no newline."""

free_lines = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\n"), max_size=12)
indents = st.sampled_from(("", "", "", " ", "  ", "   ", "    ", "\t", " \t", "      ", "  \t"))
markers = st.sampled_from(("- ", "- ", "* ", "+ "))

SIGNATURES = (
    "<seq=1>", "<seq=2, time=2026-01-03>", "<seq=3,time=empty,source=AI>", "<seq=4-6>", "<seq=7+9-11>", "<source=user, seq=12>",
    '<seq=13, label="a, b">', '<seq=14, label="q\\"uote\\\\ <>\\n">', "<seq=15, note=>", "<seq=16, a.b-c_d=x y z>",
    "<seq=17, ключ=1>", "<seq=0>", "<seq=>", "<seq=9-3>", "<seq=1-999999999>", "<seq=18", "seq=19>", "<seq=20,, a=b>", "<seq=21 >",
    "< seq=22>", "<seq=23, seq=24>", "<seq=25, a=1, a=2>", "<time=2026>", "<event=retire, seq=12, by=41>", "<seq=１２>", "<SEQ=26>",
    "<seq=00027>", "<seq=28, t=\ttab>", "<seq=29, e=🙂>", "<seq=30, supersedes=1+4-6>", "<seq=999999999999999999>",
    '<seq=31, open="unclosed>', "<seq=5+5>", "<seq=32, x=a=b>",
)  # fmt: skip

signed_lines = st.tuples(
    indents, markers, st.sampled_from(SIGNATURES), st.sampled_from((" ", " ", " ", "", "  ", "\t")), phrases
).map("".join)
blanks = st.sampled_from(("", "", "", " ", "  ", "    ", "\t", "  \r"))
headings = st.tuples(
    st.sampled_from(("", "", "", " ", "  ", "   ", "    ")),
    st.sampled_from(("# ", "## ", "## ", "### ", "###### ", "####### ", "#", "##")),
    phrases,
    st.sampled_from(("", "", " #", " ##", "#", " ")),
).map("".join)
fences = st.tuples(
    st.sampled_from(("", "", "", " ", "  ", "   ", "    ", "\t", "- ", "1. ", "> ")),
    st.sampled_from(("```", "```", "~~~", "````", "~~~~~")),
    st.sampled_from(("", "", "", "python", " yaml ", " `x`")),
).map("".join)
bullets = st.tuples(
    indents, st.sampled_from(("- ", "* ", "+ ", "-   ", "-\t", "1. ", "12) ", "- [ ] ", "- [x] ", "> ", "> - ", "-")), phrases
).map("".join)
fixed_lines = st.sampled_from(
    (
        "---", "...", "***", "===", "<div>", "</div>", "<!-- - <seq=9> in a comment -->", "<!--", "-->", "| a | b |", "|---|---|",
        "<<<<<<< HEAD", "=======", ">>>>>>> topic", "||||||| base", "<<<<<<<", "[a]: http://x", "    indented code", "\tcode",
        "    - <seq=33> in indented code", "id: x", "summary: no front matter", "- {time: 2026-05-02, op: update}", "\ufeff- <seq=34> x",
    )
)  # fmt: skip
lines = st.one_of(
    signed_lines, signed_lines, blanks, bullets, headings, fences, fences, fixed_lines, phrases, st.tuples(indents, phrases).map("".join)
)
broken_lines = st.tuples(lines, st.sampled_from(UNDECODABLE)).map("".join)

texts = st.lists(st.one_of(lines, lines, phrases, free_lines), min_size=1, max_size=5).map("\n".join)
"""What a person or a program may hand to `write`: any text at all."""

keys = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,8}", fullmatch=True, alphabet=st.characters(max_codepoint=127)) | st.sampled_from(
    ("time", "source", "observed", "supersedes", "links", "conf", "expires", "ns", "label", "event", "Seq", "a.b-c")
)
values = st.one_of(phrases, free_lines, texts, st.sampled_from(("", " ", "2026-05", "empty", '"', "\\", '\\"', "a, b=c", "<x>")))


def runs_of(starts: list[tuple[int, int]]) -> tuple[int, ...]:
    """Some seqs, with runs, each once."""
    return tuple(dict.fromkeys(seq for first, more in starts for seq in range(first, first + more + 1)))


seqs = st.lists(
    st.tuples(st.integers(1, 60) | st.integers(1, 10**18 - 10), st.integers(0, 4)), min_size=1, max_size=4
).map(runs_of)
signatures = st.builds(
    Signature,
    seqs,
    st.lists(st.tuples(keys.filter(lambda key: key != "seq"), values), max_size=4, unique_by=lambda pair: pair[0]).map(tuple),
)

# Front matter

VALUES = (
    "a", "''", "'it''s'", '"a\\nb"', "a # comment", "0123", "no", "yes", "~", "", "2026-05-01", "2026-01-03T10:12:44Z", "12:30:45", ".nan",
    "{}", "[]", "{a: 1, b: [2, 3]}", "[a, 'b: c', \"d\"]", "[a,\n  b,\n  c]", "|\n  one\n  two", ">-\n  folded\n  text", "|+\n  kept\n\n",
    '"two\n  lines"', "plain\n  on two lines", "\n  nested: 1\n  more:\n    - a\n    - b", "\n- a\n- b: 1\n  c: 2", "\n  - {x: 1}\n  # inside\n  - {x: 2}",
    "&anchor [1, 2]", "!!str 12", "买了", "'#'", "\n- {time: 2026-05-02T08:00:11Z, op: update, seq: 41-44}\n- {time: 2026-05-03, op: add, seq: 45}",
    "{pinned: true, links: [b]}", "\n  pinned: true # mine\n  former_ids:\n  - old", "1_000", "1e3", "0x1f", "'---'", "a: b".join("''"),
)  # fmt: skip
NAMES = (
    "id", "summary", "token_count", "created_time", "update_log", "aux", "tags", "aliases", "date", "Due date", "no", "0123", '"quoted"',
    "'single'", "kebab-case", "snake_case", "título", "标签", "with.dot", "x/y", "URL", "?odd", "cssclass", "2026-01-01",
)  # fmt: skip
BETWEEN = ("", "", "", "", "\n", "# a comment\n", "\n# c\n\n", "  # indented comment\n", "   \n")

rows = st.tuples(
    st.sampled_from(BETWEEN),
    st.sampled_from(NAMES),
    st.sampled_from((": ", ": ", ": ", ":  ", " : ", ":\t")),
    st.sampled_from(VALUES),
    st.sampled_from(("", "", "", " ", "\t")),
)


def written_out(parts: list[tuple[str, str, str, str, str]]) -> str:
    """Front matter's inner lines; a value on lines of its own follows the colon at once."""
    return "".join(
        between + name + (colon.rstrip() if value.startswith("\n") or not value else colon) + value + ("" if "\n" in value else end) + "\n"
        for between, name, colon, value, end in parts
    )


inner_headers = st.lists(rows, max_size=7, unique_by=lambda row: row[1]).map(written_out)
"""Headers that a careful person might have written: each key once, on lines of its own."""
messy_headers = st.lists(
    st.one_of(rows.map(lambda row: written_out([row])), lines.map(lambda line: line + "\n"), broken_lines.map(lambda line: line + "\n")),
    max_size=7,
).map("".join)
openings = st.sampled_from(("---\n", "---\n", "--- \n", "---\x0c\n"))
closings = st.sampled_from(("---\n", "---\n", "...\n", "---  \n", "", "----\n"))
front_matter = st.one_of(
    st.just(""),
    st.tuples(st.just("---\n"), inner_headers, st.just("---\n")).map("".join),
    st.tuples(openings, messy_headers | inner_headers, closings).map("".join),
)


def as_bytes(bom: bool, header: str, body: list[str], endings: str, cut: bool, odd: int) -> bytes:
    """The parts as one file; in a mixed file some endings are of the other kind."""
    text = header + "".join(line + "\n" for line in body)
    pieces = text.split("\n")
    joined = []
    for at, piece in enumerate(pieces[:-1]):
        crlf = endings == "crlf" or (endings == "mixed" and (odd >> (at % 16)) & 1)
        joined.append(piece + ("\r\n" if crlf else "\n"))
    whole = ("\ufeff" if bom else "") + "".join(joined) + pieces[-1]
    if cut:
        whole = whole.removesuffix("\n").removesuffix("\r") if odd & 1 else whole.removesuffix("\n")
    return whole.encode("utf-8", "surrogateescape")


endings = st.sampled_from(("lf", "lf", "crlf", "mixed"))
rarely = st.sampled_from((False, False, False, True))
files = st.builds(
    as_bytes,
    rarely,
    front_matter,
    st.lists(st.one_of(lines, lines, lines, lines, lines, broken_lines), max_size=14),
    endings,
    rarely,
    st.integers(0, 2**16 - 1),
)
"""Any file at all, as bytes."""


def our_document(topic: str, extra: str, title: str, body: list[str], kind: str, cut: bool, odd: int) -> Document:
    """A topic document of ours with whatever a person left in it."""
    header = f"---\nid: {topic}\nsummary: ''\ntoken_count: 0\ncreated_time: 2026-01-03T10:12:44Z\n{extra}---\n"
    return parse(f"topics/{topic}.md", as_bytes(False, header, [title, *body], kind, cut, odd))


def renumbered(body: list[str], first: int) -> list[str]:
    """Lines whose signatures, where they are plain ones, have seqs of their own."""
    numbered = []
    for at, line in enumerate(body):
        for given in SIGNATURES:
            if given in line and given.startswith("<seq=") and given[5:-1].isdigit():
                line = line.replace(given, f"<seq={first + at}>", 1)
                break
        numbered.append(line)
    return numbered


def ours(topic: str = "a", first: int = 1000) -> st.SearchStrategy[Document]:
    """Our own documents that may be changed: the front matter is sound, nothing blocks them."""
    return st.builds(
        our_document,
        st.just(topic),
        st.sampled_from(("", "update_log: []\naux: {}\n", "update_log:\n- {time: 2026-05-02, op: add, seq: 1}\naux: {pinned: false}\n")),
        st.sampled_from(("# Title", "# Title", "", "Title\n=====", "## A")),
        st.lists(lines, max_size=14).map(lambda body: renumbered(body, first)),
        endings,
        rarely,
        st.integers(0, 2**16 - 1),
    ).filter(lambda document: not document.blocking and not document.is_guest)
