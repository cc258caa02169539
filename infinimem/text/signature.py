"""The signature that makes a list item an entry: `<seq=12, time=2026-01-03, source=user>`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from infinimem.model import Signature, Tie

KEY = r"[A-Za-z_][A-Za-z0-9_.-]*"
VALUE = r'(?:"(?:[^"\\\n]|\\[^\n])*"|[^,<>"\n]*)'
FIELD = f"{KEY}={VALUE}"
SIGNATURE = re.compile(f"<({FIELD}(?:, *{FIELD})*)>")  # more spaces after a comma: hand edits, formatters
FIELDS = re.compile(f"({KEY})=({VALUE})")
KEY_ALONE = re.compile(KEY)
SEQS = re.compile(r"[0-9]{1,18}(?:-[0-9]{1,18})?(?:\+[0-9]{1,18}(?:-[0-9]{1,18})?)*")
ESCAPE = re.compile(r"\\(.)", re.DOTALL)
BACKSLASHED = re.compile(r"\\([!-/:-@\[-`{-~])")
MOST_CLOSINGS = 8
NEEDS_QUOTES = re.compile(r'[,<>"\\\x00-\x1f\x7f]|^\s|\s$|^$')
ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
UNESCAPED = {"n": "\n", "r": "\r"}

LINK_END = re.compile(r"[+,]")

WIDEST_RANGE = 10_000


def parse_seqs(text: str) -> tuple[int, ...]:
    """The seqs of `12`, `12-15` or `12-15+18`, in order; () when the text is no such thing.

    A range wider than 10,000, a seq of 0, a falling range or a repeated seq is no such thing.
    """
    if text.isascii() and text.isdigit():
        return (int(text),) if len(text) <= 18 and int(text) else ()
    if not SEQS.fullmatch(text):
        return ()
    seqs: list[int] = []
    for piece in text.split("+"):
        first, _, last = piece.partition("-")
        low, high = int(first), int(last or first)
        if low < 1 or high < low or high - low >= WIDEST_RANGE or len(seqs) > WIDEST_RANGE:
            return ()
        seqs.extend(range(low, high + 1))
    return tuple(seqs) if len(set(seqs)) == len(seqs) else ()


def render_seqs(seqs: Iterable[int]) -> str:
    """The shortest spelling of seqs in their order: (12, 13, 14, 18) is `12-14+18`."""
    runs: list[list[int]] = []
    for seq in seqs:
        if runs and seq == runs[-1][1] + 1 and seq - runs[-1][0] < WIDEST_RANGE:
            runs[-1][1] = seq
        else:
            runs.append([seq, seq])
    return "+".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def renumber_seqs(value: str, mapping: Mapping[int, int]) -> str:
    """A field of seqs (`seq`, `supersedes`, `by`) with some of them renumbered; as it is where none is among them."""
    seqs = parse_seqs(value)
    if not any(seq in mapping for seq in seqs):
        return value
    return render_seqs(dict.fromkeys(mapping.get(seq, seq) for seq in seqs))


def parse_links(value: str) -> tuple[Tie, ...]:
    """The links of `31:contradicts+maya-home+12-13:from`, in order. What is all digits is a seq, not a topic."""
    return tuple(tie for piece in LINK_END.split(value) if (tie := tie_of(piece)) is not None)


def tie_of(piece: str) -> Tie | None:
    """One link; None where nothing is named."""
    target, _, relation = piece.strip().partition(":")
    seqs = parse_seqs(target.strip())
    return Tie(seqs, "" if seqs else target.strip(), relation.strip()) if target.strip() else None


def render_links(ties: Iterable[Tie]) -> str:
    """Links as the signature's field has them; one said twice is written once."""
    return "+".join(dict.fromkeys(map(render_tie, ties)))


def render_tie(tie: Tie) -> str:
    """`31:contradicts`, `maya-home`."""
    return (render_seqs(tie.seqs) if tie.seqs else tie.topic) + (f":{tie.relation}" if tie.relation else "")


def renumber_links(value: str, mapping: Mapping[int, int]) -> str:
    """A `links` field with some seqs renumbered; links to other seqs, topics and relations stay as they are written."""
    if not any(seq in mapping for tie in parse_links(value) for seq in tie.seqs):
        return value
    ties: list[Tie] = []
    for tie in parse_links(value):
        if any(seq in mapping for seq in tie.seqs):
            # a range that is torn apart becomes a link to each: `+` would end the link
            seqs = dict.fromkeys(mapping.get(seq, seq) for seq in tie.seqs)
            whole = render_seqs(seqs)
            ties += (
                [Tie(tuple(seqs), "", tie.relation)]
                if "+" not in whole
                else [Tie((seq,), "", tie.relation) for seq in seqs]
            )
        else:
            ties.append(tie)
    return render_links(ties)


def parse_fields(text: str) -> tuple[tuple[tuple[str, str], ...], int]:
    """The fields of the signature that `text` begins with, and where it ends; ((), 0) if there is none."""
    if text.startswith("\\<"):
        return parse_escaped(text)
    match = SIGNATURE.match(text)
    if match is None:
        return (), 0
    fields = []
    for key, value in FIELDS.findall(match.group(1)):
        if value[:1] == '"':
            value = ESCAPE.sub(lambda m: UNESCAPED.get(m[1], m[1]), value[1:-1]) if "\\" in value else value[1:-1]
        elif value and (value[0].isspace() or value[-1].isspace()):
            return (), 0
        fields.append((key, value))
    if sum(key == "seq" for key, _ in fields) > 1:
        return (), 0
    return tuple(fields), match.end()


def plain_fields(text: str) -> tuple[tuple[str, str], ...] | None:
    """The fields of `, time=2026-01-03, source=user`, as they follow a seq; None where more care is due."""
    if not text.isprintable() or " ," in text or "= " in text or text[-1:] == " " or ", seq=" in text:
        return None
    pairs = [field.split("=", 1) for field in text.split(", ")[1:]]
    return tuple([(key, value) for key, value in pairs])


def parse_escaped(text: str) -> tuple[tuple[tuple[str, str], ...], int]:
    """The fields of a signature that a Markdown formatter escaped: `\\<seq=1, label=a\\_b>`; and where it ends."""
    end = 0
    for _ in range(MOST_CLOSINGS):
        end = text.find(">", end) + 1
        if not end:
            break
        plain = BACKSLASHED.sub(r"\1", text[:end])
        fields, length = parse_fields(plain) if plain.startswith("<") else ((), 0)
        if length and length == len(plain):
            return fields, end
    return (), 0


def parse_signature(text: str) -> tuple[Signature, int] | None:
    """The signature that `text` begins with and where it ends; None when it has no valid `seq`."""
    if not text.startswith(("<", "\\<")):
        return None
    fields, end = parse_fields(text)
    if fields and fields[0][0] == "event":  # evidence's own lines
        return None
    for at, (key, value) in enumerate(fields):
        if key == "seq":
            seqs = parse_seqs(value)
            return (Signature(seqs, fields[:at] + fields[at + 1 :]), end) if seqs else None
    return None


def render_value(value: str) -> str:
    """A field's value as it is written: bare where that reads back the same, else quoted."""
    if not NEEDS_QUOTES.search(value):
        return value
    return '"' + "".join(ESCAPED.get(char, char) for char in value) + '"'


def render_fields(fields: Iterable[tuple[str, str]]) -> str:
    """`<key=value, …>` for the fields in their order."""
    return "<" + ", ".join(f"{key}={render_value(value)}" for key, value in fields) + ">"


def render_signature(signature: Signature) -> str:
    """The signature as text, seq first."""
    seqs = signature.seqs
    return f"<seq={seqs[0] if len(seqs) == 1 else render_seqs(seqs)}{render_rest(signature.fields)}>"


@lru_cache(256)
def render_rest(fields: tuple[tuple[str, str], ...]) -> str:
    """The fields as they follow a seq; many entries of one write share them."""
    return "".join([f", {key}={render_value(value)}" for key, value in fields])


def with_field(signature: Signature, key: str, value: str) -> Signature:
    """The signature with `key` set; an existing field keeps its place."""
    if any(name == key for name, _ in signature.fields):
        return Signature(
            signature.seqs,
            tuple((name, value if name == key else old) for name, old in signature.fields),
        )
    return Signature(signature.seqs, (*signature.fields, (key, value)))


def without_field(signature: Signature, key: str) -> Signature:
    """The signature without `key`."""
    return Signature(signature.seqs, tuple(pair for pair in signature.fields if pair[0] != key))
