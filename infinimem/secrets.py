"""Text that looks like a key or a password: named by its kind and line, never repeated."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from infinimem.model import Document

if TYPE_CHECKING:
    from detect_secrets.plugins.base import BasePlugin

MEANT = ("secret", "ok")
"""The field of an entry whose secret is meant: `write --secret-ok`."""
MEANT_LINE = "pragma: allowlist secret"
"""The same for a line of prose, in a comment, as detect-secrets and others read it."""
TOO_BROAD = ("Base64 High Entropy String", "Hex High Entropy String", "Public IP (ipv4)")
"""Detectors for code: in prose every file name and commit id looks random, and an address is no key."""

PASSWORD = (
    r"pass ?(?:word|code|phrase|wd)|passwor[dt]|passord|pwd|kennwort|l[öo]senord|mot de passe|contrase[ñn]a|senha"
    r"|wachtwoord|(?:secret|api|access|private)[ _-]?(?:key|token)|token"
)
FOR = r"(?: (?:for|of|to|on|at|für|von|vom|zum|zur|til|på) [^.:=\n]{1,40}?)?"
JOINT = FOR + r"(?: (?:is|ist|lautet|er|är|est|es|é)|\s?[:=])"
PROSE = re.compile(rf"(?i:(?<![A-Za-z])(?:{PASSWORD}))(?i:{JOINT})\s*[\"'`«“]?(?P<value>[^\s\"'`»”]{{6,}})")
PIN = re.compile(r"\b(?:PIN|Pin|pin|PUK)(?:[- ]?(?:code|Code|number))?(?: (?:is|ist|er|est)|\s?[:=])\s*[0-9]{4,8}\b")
NEWER = {  # services that detect-secrets does not know yet
    "Anthropic key": re.compile(r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    "OpenAI key": re.compile(r"\bsk-(?!ant-)(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{40,})"),
    "GitHub token": re.compile(r"\bgithub_pat_[A-Za-z0-9_]{22,}"),
    "Google key": re.compile(r"\bAIza[A-Za-z0-9_-]{35}"),
    "Hugging Face token": re.compile(r"\bhf_[A-Za-z]{34}\b"),
}
SUSPECT = re.compile(
    rf"(?i:{PASSWORD}|secret|hooks\.slack|_key|auth)|\bAK[CI]|-----BEGIN|://[^\s/:@]+:[^\s/@]+@"
    r"|(?<![A-Za-z0-9_+=-])(?=[a-z_=-]*[A-Z0-9+])[A-Za-z0-9_+=-]{20,}"
)
"""What some detector could find something in. The detectors cost 0.1 s to load: most writes never do."""

TELLTALES = (
    "pass pwd kennwort senord contrase senha wachtwoord token key secret hooks.slack auth akc aki ://"
    " -----begin pin puk"
).split()
"""In lower case, one of these stands in every ASCII line that `SUSPECT` or `PIN` finds something in, or a long run."""
RUN_OR_NOT = {code: "x" if chr(code).isalnum() or chr(code) in "_+=-" else " " for code in range(128)}
LONG_RUN = "x" * 20
OBSERVED = re.compile(r"observed=[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}(?![A-Za-z0-9_+=-])")
"""A long run that every entry has."""

WINDOW, OVERLAP = 1000, 200
"""A long line is looked at in pieces: some detectors take a time that grows with the square of its length."""


def secrets_in(text: str) -> list[tuple[str, int]]:
    """What looks like a key or password in a text: its kind and its 1-based line, in order."""
    found: dict[tuple[str, int], None] = {}
    lines = text.split("\n")
    for number in suspect_lines(lines):
        line = lines[number - 1]
        if MEANT_LINE in line:
            continue
        for start in range(0, max(1, len(line)), WINDOW):
            for kind in kinds_in(line[start : start + WINDOW + OVERLAP]):
                found[kind, number] = None
    return list(found)


def suspect_lines(lines: Sequence[str]) -> list[int]:
    """The 1-based numbers of the lines that `kinds_in` may find something in, and of few others.

    A search for each of some words in all lines at once costs a tenth of a search in each line for any of them.
    """
    odd = [number for number, line in enumerate(lines, 1) if not line.isascii()]
    found = {number for number in odd if SUSPECT.search(lines[number - 1]) or PIN.search(lines[number - 1])}
    text = "\n".join(lines if not odd else [line if line.isascii() else "" for line in lines])
    lower = text.lower()
    places: list[int] = []
    for word in TELLTALES:
        at = lower.find(word)
        while at >= 0:
            places.append(at)
            at = lower.find("\n", at)
            at = lower.find(word, at) if at >= 0 else -1
    runs = text.translate(RUN_OR_NOT)
    at = runs.find(LONG_RUN)
    while at >= 0:
        dated = OBSERVED.match(text, at)
        if dated is None:
            places.append(at)
        at = runs.find(LONG_RUN, dated.end() if dated is not None else at + len(LONG_RUN))
    starts = list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0)) if places else []
    found.update(bisect_right(starts, place) for place in places)
    return sorted(found)


def secrets_of(document: Document, quiet: Collection[int] = ()) -> list[tuple[str, int]]:
    """What looks like a secret in a file of a library, but in entries that say it is meant or whose seq is `quiet`.

    A summary says what an entry says, so it is named only there.
    """
    meant = {
        at
        for entry in document.entries
        if MEANT in entry.signature.fields or not set(entry.seqs).isdisjoint(quiet)
        for at in range(entry.span.start, entry.span.stop)
    }
    lines = document.lines
    if not document.is_guest:
        meant.update(at for at in range(document.header.span.stop) if lines[at].startswith("summary:"))
    return [(kind, line) for kind, line in secrets_in("".join(lines)) if line - 1 not in meant]


def kinds_in(line: str) -> Iterator[str]:
    """The kinds of secrets that a line seems to hold."""
    if PIN.search(line):
        yield "PIN"
    if SUSPECT.search(line) is None:
        return
    yield from (kind for kind, pattern in NEWER.items() if pattern.search(line))
    yield from (kind for kind, detector in detectors() if any(detector.analyze_string(line)))
    match = PROSE.search(line)
    if match is not None and is_password(match["value"]):
        yield "password"


def is_password(value: str) -> bool:
    """Whether a word after "password is" is one, and not the sentence going on, a date or a place holder."""
    if value[0] in "$<{%*" or re.fullmatch(r"[0-9/.:-]+[.,;]?", value):
        return False
    return any(char.isdigit() for char in value) and any(char.isalpha() for char in value)


@cache
def detectors() -> tuple[tuple[str, BasePlugin], ...]:
    """The patterns of detect-secrets that hold in prose, by the name of what they find."""
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    known: dict[str, Any] = get_mapping_from_secret_type_to_class()
    return tuple((kind, detector()) for kind, detector in sorted(known.items()) if kind not in TOO_BROAD)
