"""Chat logs as text: `Name: text` a line, with or without a time before it, as WhatsApp and many others write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import PurePosixPath

from infinimem.exchange.inputs import Input, lines_of
from infinimem.exchange.message import Found, Message, Reading, Skipped, Unread

MARKS = "\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069\ufeff"
"""Invisible marks of direction that WhatsApp puts before times, names and attachments."""
STAMP = re.compile(
    r"(?P<open>\[)?(?P<a>[0-9]{1,4})[./-](?P<b>[0-9]{1,2})[./-](?P<c>[0-9]{1,4})(?:,|\s+at|\s+klo|\s+um|T)?\s*"
    r"(?P<hour>[0-9]{1,2})[:.](?P<minute>[0-9]{2})(?:[:.](?P<second>[0-9]{2})(?:[.,][0-9]+)?)?Z?\s*"
    r"(?P<half>[AaPp]\.?\s?[Mm]\.?)?(?(open)\]|)\s*(?P<dash>[-–—|:]\s+)?"
)
NAME = re.compile(
    r"(?P<name>[^\s:<>\[\]{}\"|/\\*#`=;()][^:<>\[\]{}\"|\\#`=;\n]{0,39}?):(?:\s+|$)(?P<text>.*)", re.DOTALL
)
NO_NAMES = frozenset({"http", "https", "note", "todo", "ps", "re", "fwd", "edit", "update", "warning", "error"})
ROLES = {
    "user": "user", "human": "user", "you": "user", "me": "user", "assistant": "AI", "ai": "AI", "chatgpt": "AI",
    "claude": "AI", "bot": "AI",
}  # fmt: skip
MEDIA = (
    "media image video audio sticker gif document file photo bild medien média médias multimedia mídia imagen imagem "
    "immagine"
)
GONE = "omitted weggelassen ausgeschlossen omis omitido oculto oculta omitida esclusi omessa omesso"
OMITTED = re.compile(
    rf"<?\s*(?:{'|'.join(MEDIA.split())}|contact card|video note)\s+(?:{'|'.join(GONE.split())})\s*>?", re.IGNORECASE
)
ATTACHED = re.compile(
    r"<\s*(?:attached|anhang|angehängt|adjunto|pièce jointe|allegato|anexado)\s*:\s*([^<>\n]+?)\s*>"
    r"|([^\s<>:/][^<>:/\n]{0,80}\.[A-Za-z0-9]{2,5}) "
    r"\((?:file attached|datei angehängt|archivo adjunto|fichier joint|file allegato|arquivo anexado)\)",
    re.IGNORECASE,
)
"""A file that came with a message, as an iPhone names it and as Android does."""
DELETED = re.compile(
    r"(?:this message was deleted|you deleted this message"
    r"|diese nachricht wurde gelöscht|du hast diese nachricht gelöscht"
    r"|ce message a été supprimé|vous avez supprimé ce message|se eliminó este mensaje|eliminaste este mensaje"
    r"|mensagem apagada|questo messaggio è stato eliminato)\.?",
    re.IGNORECASE,
)
ENCRYPTED = re.compile(
    r"(?:messages and calls are end-to-end encrypted|nachrichten und anrufe sind ende-zu-ende-verschlüsselt"
    r"|les messages et (?:les )?appels sont chiffrés de bout en bout"
    r"|los mensajes y las llamadas están cifrados de extremo a extremo"
    r"|as mensagens e as (?:ligações|chamadas) são protegidas|i messaggi e le chiamate sono crittografati end-to-end)"
    r"(?:[.,; ].*)?",
    re.IGNORECASE | re.DOTALL,
)
"""What WhatsApp says of itself; on an iPhone it puts the chat's name before it, as if that had spoken."""
EDITED = re.compile(
    r"\s*\u200e<(?:this message was edited|diese nachricht wurde bearbeitet|ce message a été modifié"
    r"|se editó este mensaje|esta mensagem foi editada|questo messaggio è stato modificato)\.?>$",
    re.IGNORECASE,
)
ENOUGH = 3
"""Lines that have to look like a chat before a text without times is taken for one."""
COPY = re.compile(r"(?: ?\([0-9]+\)| copy| \(copy\))+$")
ORDERS = ("dmy", "mdy", "ymd")


@dataclass(frozen=True, slots=True)
class Line:
    """The first line of a message: its stamp (as matched), who and what; `name` is "" where nobody is named."""

    stamp: re.Match[str] | None
    name: str
    text: str


def recognises(name: str, head: str) -> bool:
    """Whether most of what begins a file are lines with a speaker."""
    if not name.lower().endswith((".txt", ".log", ".text", ".chat")) and "." in PurePosixPath(name).name:
        return False
    lines = [line for line in head.split("\n")[:400] if line.strip()]
    read = [read_line(line) for line in lines]
    stamped = sum(line.stamp is not None and bool(line.name) for line in read)
    if stamped >= 2 or (stamped == 1 and len(lines) <= 2):
        return True
    named = [line.name for line in read if line.name]
    again = len(named) - len(set(named))
    return len(named) >= ENOUGH and len(named) * 2 >= len(lines) and again >= 1


def read_line(line: str) -> Line:
    """What a line says of a message that it may begin."""
    line = line.strip("\r\n").lstrip(MARKS + " \t")
    stamp = STAMP.match(line)
    rest = line[stamp.end() :] if stamp else line
    match = NAME.match(rest.lstrip(MARKS))
    if match is None or match["name"].strip().lower() in NO_NAMES or (stamp is None and is_sentence(match["name"])):
        return Line(stamp, "", rest)
    return Line(stamp, match["name"].strip(MARKS + " ~\u202f\xa0"), match["text"])


def is_sentence(name: str) -> bool:
    """Whether what stands before a colon is rather the beginning of a sentence than a name."""
    return len(name.split()) > 4 or name.endswith((".", "!", "?", ","))


def read(source: Input, *, branches: bool = False) -> Reading:
    """Each message with its speaker; a line without one goes on with the message before it."""
    order, stamped = survey(source)
    name = COPY.sub("", PurePosixPath(source.within).stem)
    title = chat_of(source) or name
    counts: dict[tuple[str, str, str], int] = {}
    for place, line in joined(source, stamped):
        if isinstance(line, Unread):
            yield line
            continue
        yield read_message(line, place, order, name, title, counts)


def chat_of(source: Input) -> str:
    """What an iPhone's `_chat.txt` is about: its archive's name, or its folder's; "" where neither tells."""
    path = PurePosixPath(source.within)
    if path.name != "_chat.txt":
        return ""
    archive = source.name.removesuffix(f": {source.within}")
    if archive != source.name:
        return COPY.sub("", PurePosixPath(archive).stem)
    folder = source.path.absolute().parent.name if source.path is not None else path.parent.name
    return COPY.sub("", folder) if "whatsapp" in folder.lower() else ""


def survey(source: Input) -> tuple[str, bool]:
    """In which order dates are written, and whether messages begin with one."""
    stamps, named = [], 0
    with source.open() as file:
        for _, raw in lines_of(file):
            line = read_line((raw or b"").decode("utf-8", "replace"))
            if line.stamp is not None:
                stamps.append(line.stamp)
            named += bool(line.name)
            if len(stamps) >= 20_000:
                break
    return order_of(stamps), bool(stamps) and len(stamps) * 2 >= named


def order_of(stamps: list[re.Match[str]]) -> str:
    """`dmy`, `mdy` or `ymd`: the first that all dates allow and in which time goes forward most often."""
    likely = ["mdy", "dmy"] if any(stamp["half"] for stamp in stamps) else ["dmy", "mdy"]
    best, fewest = likely[0], None
    for order in (*likely, "ymd"):
        moments = [moment_of(stamp, order) for stamp in stamps]
        wrong = moments.count("") * 1000 + sum(later < earlier for earlier, later in pairwise(moments))
        if fewest is None or wrong < fewest:
            best, fewest = order, wrong
    return best


def moment_of(stamp: re.Match[str], order: str) -> str:
    """A stamp as ISO 8601, in the order of day, month and year given; "" where no calendar has it."""
    parts = dict(zip(order, (stamp["a"], stamp["b"], stamp["c"]), strict=True))
    if len(parts["d"]) > 2 or len(parts["m"]) > 2 or len(parts["y"]) not in (2, 4):
        return ""
    year = int(parts["y"]) + (2000 if len(parts["y"]) == 2 else 0)
    hour = int(stamp["hour"])
    half = (stamp["half"] or "").lower()[:1]
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    try:
        moment = datetime(year, int(parts["m"]), int(parts["d"]), hour, int(stamp["minute"]), int(stamp["second"] or 0))
    except ValueError:
        return ""
    return moment.isoformat(timespec="seconds" if stamp["second"] else "minutes")


def joined(source: Input, stamped: bool) -> Iterator[tuple[str, Line | Unread]]:
    """Each message's first line with the lines that go on with it, and its place."""
    began: tuple[str, Line] | None = None
    more: list[str] = []
    with source.open() as file:
        for number, raw in lines_of(file):
            place = f"{source.name}:{number}"
            if raw is None:
                yield place, Unread(place, "a line that is too long")
                continue
            text = raw.decode("utf-8", "surrogateescape")
            line = read_line(text)
            if line.stamp is not None if stamped else bool(line.name):
                if began is not None:
                    yield began[0], with_lines(began[1], more)
                began, more = (place, line), []
            elif began is not None:
                more.append(text)
            elif text.strip():
                yield place, Unread(place, "words before the first message")
    if began is not None:
        yield began[0], with_lines(began[1], more)


def with_lines(line: Line, more: list[str]) -> Line:
    """A message with the lines that go on with it."""
    return Line(line.stamp, line.name, "\n".join([line.text, *more]).rstrip()) if more else line


def read_message(
    line: Line, place: str, order: str, conversation: str, title: str, counts: dict[tuple[str, str, str], int]
) -> Found:
    """One message; the n-th with the same time, speaker and words is its identity."""
    text = line.text.strip(MARKS + " \n")
    if not line.name:
        return Skipped("system") if text else Skipped("empty")
    if not text:
        return Skipped("empty")
    if OMITTED.fullmatch(text):
        return Skipped("media left out")
    if DELETED.fullmatch(text):
        return Skipped("deleted")
    if ENCRYPTED.fullmatch(text) and line.text.lstrip().startswith("\u200e"):
        return Skipped("system")
    time = moment_of(line.stamp, order) if line.stamp is not None else ""
    if line.stamp is not None and not time:
        return Unread(place, f"a date that no calendar has: {line.stamp[0].strip()}")
    said = (time, line.name, text)
    counts[said] = counts.get(said, 0) + 1
    key = "\n".join(("chat", conversation, *said, str(counts[said])))
    words = EDITED.sub("", text)
    if not words:
        return Skipped("empty")
    attached = attached_to(words)
    return Message(
        key, words, place, ROLES.get(line.name.lower(), line.name), time, conversation, title, attached=attached
    )


def attached_to(text: str) -> tuple[str, ...]:
    """The files that a message says came with it; of one that was left out, with a caption, what WhatsApp says."""
    named = tuple(one or other for one, other in ATTACHED.findall(text))
    first = text.partition("\n")[0].strip(MARKS + " ")
    return named or ((first.strip("<>"),) if OMITTED.fullmatch(first) else ())
