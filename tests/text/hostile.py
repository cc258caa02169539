"""Documents as people, editors, exporters and git leave them, and worse: strategies that the laws share."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from infinimem.model import Document, Signature
from infinimem.text.document import parse

WORDS = (
    "Maya", "joined", "Nordlys", "2026-05-01", "12:30", "C#", "don't", "naïve", "ß", "İ", "买了自行车", "東京",
    "서울에서",
    "مرحبا", "שלום", "हिन्दी", "ไทย", "🙂", "👩‍👩‍👧", "🇳🇴", "\u200b",
    "\u200f", "\ufeff", "\u00a0", "\u3000", "\u2028",
    "\u2029", "\u0085", "\x0c", "\x0b", "\x1c", "\x1e", "\x00", "\x7f", "\r", "\t", "\\", "\\n", '"', "'", "`", "```",
    "~~~", "<", ">", "<seq=7>", "<seq=7, source=x> text", "- <seq=8> y", "<event=retire, seq=3>", "#",
    "# not a heading", "##", "-", "- ", "* ", "+", "---", "...", "===", "=", ",", ":", "key: value", "[ ]",
    "[x] done", "|", "| a | b |", "<b>", "</div>", "<!--", "-->", "&amp;", "[[link]]", "![i](u)", "{", "}", "%", "!",
    "@", "*", "**bold**", "<<<<<<< HEAD", "=======", ">>>>>>> branch", "  ", " ", "", "x" * 300, "\u0301", "\ud7ff",
    "\U0010ffff",
)  # fmt: skip
UNDECODABLE = ("\udce9", "\udcff\udcfe", "caf\udce9", "\udc80")

KEYS = (
    "time", "source", "observed", "supersedes", "links", "conf", "expires", "ns", "label", "event", "Seq", "a.b-c",
)  # fmt: skip
INDENTS = (
    "", "", "", " ", "  ", "   ", "    ", "\t", " \t", "      ", "  \t",
)  # fmt: skip
SIGNATURES = (
    "<seq=1>", "<seq=2, time=2026-01-03>", "<seq=3,time=empty,source=AI>", "<seq=4-6>", "<seq=7+9-11>",
    "<source=user, seq=12>", '<seq=13, label="a, b">', '<seq=14, label="q\\"uote\\\\ <>\\n">', "<seq=15, note=>",
    "<seq=16, a.b-c_d=x y z>", "<seq=17, ключ=1>", "<seq=0>", "<seq=>", "<seq=9-3>", "<seq=1-999999999>", "<seq=18",
    "seq=19>", "<seq=20,, a=b>", "<seq=21 >", "< seq=22>", "<seq=23, seq=24>", "<seq=25, a=1, a=2>", "<time=2026>",
    "<event=retire, seq=12, by=41>", "<seq=１２>", "<SEQ=26>", "<seq=00027>", "<seq=28, t=\ttab>", "<seq=29, e=🙂>",
    "<seq=30, supersedes=1+4-6>", "<seq=999999999999999999>", '<seq=31, open="unclosed>', "<seq=5+5>",
    "<seq=32, x=a=b>",
)  # fmt: skip

FIXED = (
    "---", "...", "***", "===", "<div>", "</div>", "<!-- - <seq=9> in a comment -->", "<!--", "-->", "| a | b |",
    "|---|---|", "<<<<<<< HEAD", "=======", ">>>>>>> topic", "||||||| base", "<<<<<<<", "[a]: http://x",
    "    indented code", "\tcode", "    - <seq=33> in indented code", "id: x", "summary: no front matter",
    "- {time: 2026-05-02, op: update}", "\ufeff- <seq=34> x",
)  # fmt: skip


BULLETS = ("- ", "- ", "* ", "+ ", "-   ", "-\t", "1. ", "12) ", "- [ ] ", "- [x] ", "> ", "> - ", "-")
ODD_VALUES = ("", " ", "2026-05", "empty", '"', "\\", '\\"', "a, b=c", "<x>", "\n")


class Dice(Random):
    """Choices that hang on one number: drawing that number draws a whole line, which keeps the laws fast."""

    def pick(self, *pool: str) -> str:
        """One of the pool."""
        return pool[int(self.random() * len(pool))]

    def any_char(self) -> str:
        """Any character that UTF-8 can carry, but no newline."""
        code = self.randrange(11, int(self.pick("128", "768", "12544", "65536", "1114112")))
        return chr(code) if not 0xD800 <= code < 0xE000 else "\ue000"

    def phrase(self) -> str:
        """One line of text; it may hold lone carriage returns and every other separator, but no newline."""
        if self.random() < 0.1:
            return "".join(self.any_char() for _ in range(self.randrange(12)))
        return self.pick(" ", " ", "").join(self.pick(*WORDS) for _ in range(self.randrange(5)))

    def line(self) -> str:
        """A line such as Markdown files hold."""
        match self.randrange(12):
            case 0 | 1 | 2:
                mark = self.pick("- ", "- ", "* ", "+ ")
                gap = self.pick(" ", " ", " ", "", "  ", "\t")
                return self.pick(*INDENTS) + mark + self.pick(*SIGNATURES) + gap + self.phrase()
            case 3:
                return self.pick("", "", "", " ", "  ", "    ", "\t", "  \r")
            case 4:
                marks = self.pick("# ", "## ", "## ", "### ", "###### ", "####### ", "#", "##")
                return self.pick(*INDENTS[:7]) + marks + self.phrase() + self.pick("", "", " #", " ##", "#", " ")
            case 5 | 6:
                lead = self.pick("", "", "", " ", "  ", "   ", "    ", "\t", "- ", "1. ", "  - ", "> ")
                about = self.pick("", "", "", "python", " yaml ", " `x`")
                return lead + self.pick("```", "```", "~~~", "````", "~~~~~") + about
            case 7 | 8:
                return self.pick(*INDENTS) + self.pick(*BULLETS) + self.phrase()
            case 9:
                return self.pick(*FIXED)
            case _:
                return self.pick(*INDENTS) + self.phrase()

    def text(self) -> str:
        """What a person or a program may hand to `write`: any text at all."""
        return "\n".join(self.pick(self.line(), self.phrase()) for _ in range(self.randrange(1, 6)))

    def key(self) -> str:
        """A field's name."""
        letters = "".join(self.pick(*"abcxyzABC_019.-") for _ in range(self.randrange(6)))
        return self.pick(self.pick(*KEYS), self.pick(*"aZ_q") + letters)

    def value(self) -> str:
        """A field's value: any text at all."""
        return self.pick(self.phrase(), self.text(), self.pick(*ODD_VALUES))

    def signature(self) -> Signature:
        """Seqs in any order, and fields whose names are each used once."""
        tops = [self.choice((60, 10**6, 10**18 - 10)) for _ in range(self.randrange(1, 5))]
        firsts = [self.randrange(1, top) for top in tops]
        seqs = dict.fromkeys(seq for first in firsts for seq in range(first, first + self.randrange(1, 6)))
        fields = {self.key(): self.value() for _ in range(self.randrange(5))}
        fields.pop("seq", None)
        return Signature(tuple(seqs), tuple(fields.items()))


dice = st.integers(0, 2**40).map(Dice)
phrases = dice.map(Dice.phrase)
lines = dice.map(Dice.line)
broken_lines = dice.map(lambda die: die.line() + die.pick(*UNDECODABLE))
texts = dice.map(Dice.text)
signatures = dice.map(Dice.signature)
indents = st.sampled_from(INDENTS)

# Front matter

VALUES = (
    "a", "''", "'it''s'", '"a\\nb"', "a # comment", "0123", "no", "yes", "~", "", "2026-05-01",
    "2026-01-03T10:12:44Z", "12:30:45", ".nan", "{}", "[]", "{a: 1, b: [2, 3]}", "[a, 'b: c', \"d\"]",
    "[a,\n  b,\n  c]", "|\n  one\n  two", ">-\n  folded\n  text", "|+\n  kept\n\n", '"two\n  lines"',
    "plain\n  on two lines", "\n  nested: 1\n  more:\n    - a\n    - b", "\n- a\n- b: 1\n  c: 2",
    "\n  - {x: 1}\n  # inside\n  - {x: 2}", "&anchor [1, 2]", "!!str 12", "买了", "'#'",
    "\n- {time: 2026-05-02T08:00:11Z, op: update, seq: 41-44}\n- {time: 2026-05-03, op: add, seq: 45}",
    "{pinned: true, links: [b]}", "\n  pinned: true # mine\n  former_ids:\n  - old", "1_000", "1e3", "0x1f", "'---'",
    "a: b".join("''"),
)  # fmt: skip
NAMES = (
    "id", "summary", "token_count", "created_time", "update_log", "aux", "tags", "aliases", "date", "Due date", "no",
    "0123", '"quoted"', "'single'", "kebab-case", "snake_case", "título", "标签", "with.dot", "x/y", "URL", "?odd",
    "cssclass", "2026-01-01",
)  # fmt: skip
BETWEEN = ("", "", "", "", "\n", "# a comment\n", "\n# c\n\n", "  # indented comment\n", "   \n")


def row(die: Dice, name: str) -> str:
    """A key and its value as somebody might write it; a value on lines of its own follows the colon at once."""
    colon = die.pick(": ", ": ", ": ", ":  ", " : ", ":\t")
    value = die.pick(*VALUES)
    if value.startswith("\n") or not value:
        colon = colon.rstrip()
    end = "" if "\n" in value else die.pick("", "", "", " ")
    return f"{die.pick(*BETWEEN)}{name}{colon}{value}{end}\n"


def careful_header(die: Dice) -> str:
    """The inner lines of a header that a careful person might have written: each key once, on lines of its own."""
    return "".join(row(die, name) for name in die.sample(NAMES, die.randrange(8)))


def messy_header(die: Dice) -> str:
    """Inner lines that may or may not be YAML."""
    parts = []
    for _ in range(die.randrange(8)):
        written = row(die, die.pick(*NAMES))
        parts.append(die.pick(written, written, die.line() + "\n", die.line() + die.pick(*UNDECODABLE) + "\n"))
    return "".join(parts)


careful_headers = dice.map(careful_header)
messy_headers = dice.map(messy_header)
openings = st.sampled_from(("---\n", "---\n", "--- \n", "---\x0c\n"))
closings = st.sampled_from(("---\n", "---\n", "...\n", "---  \n", "", "----\n"))
front_matter = st.one_of(
    st.just(""),
    st.tuples(st.just("---\n"), careful_headers, st.just("---\n")).map("".join),
    st.tuples(openings, messy_headers | careful_headers, closings).map("".join),
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
        st.sampled_from(("", "update_log: []\naux: {}\n", "update_log:\n- {op: add, seq: 1}\naux: {pinned: false}\n")),
        st.sampled_from(("# Title", "# Title", "", "Title\n=====", "## A")),
        st.lists(lines, max_size=14).map(lambda body: renumbered(body, first)),
        endings,
        rarely,
        st.integers(0, 2**16 - 1),
    ).filter(lambda document: not document.blocking and not document.is_guest)
