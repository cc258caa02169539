"""Text that looks like a key or a password: named by its kind and line, never repeated."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
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


WINDOW, OVERLAP = 1000, 200
"""A long line is looked at in pieces: some detectors take a time that grows with the square of its length."""


def secrets_in(text: str) -> list[tuple[str, int]]:
    """What looks like a key or password in a text: its kind and its 1-based line, in order."""
    found: dict[tuple[str, int], None] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if MEANT_LINE in line:
            continue
        for start in range(0, max(1, len(line)), WINDOW):
            for kind in kinds_in(line[start : start + WINDOW + OVERLAP]):
                found[kind, number] = None
    return list(found)


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
