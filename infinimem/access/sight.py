"""What a model may see while a library is planned or asked: the audience `model` of the access rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from infinimem.access.mask import Rules, shown_of
from infinimem.access.view import rules_in, view
from infinimem.ask import Answer, Evidence
from infinimem.config import Access
from infinimem.forgetting.words import Words
from infinimem.model import Document, Entry, path_of, topic_of

MODEL = "model"


@dataclass(frozen=True, slots=True)
class Sight:
    """Tells what of a library a model may be shown; without rules that is everything."""

    rules: Rules
    secret: str = ""

    def __bool__(self) -> bool:
        """Whether anything is kept from the model."""
        return bool(self.rules.access)

    def shows(self, entry: Entry) -> bool:
        """Whether an entry may be shown, wherever it stands."""
        return not self or not self.rules.withholds(entry)

    def of(self, document: Document) -> Document | None:
        """A topic as it may be shown; None where nothing of it may be, or its own name would tell."""
        if not self:
            return document
        shown = shown_of(document, self.rules, self.secret)
        return shown if shown is not None and shown.path == document.path else None

    def is_whole(self, document: Document) -> bool:
        """Whether all of a topic may be shown: if not, it is split, merged and summarised without the model."""
        shown = self.of(document)
        return shown is not None and shown.lines == document.lines


def sight(root: Path, access: Access) -> Sight:
    """What a model may see of a library as it is now. Raises `StorageFailed` where that cannot be made out."""
    if not access:
        return Sight(Rules(access, frozenset(), Words()))
    return Sight(*rules_in(view(root, MODEL, access), access))


def under_real_names(answer: Answer, names: Mapping[str, str]) -> Answer:
    """An answer from a view, its topics called as in the library: by `names`, from what a view calls them."""
    if not names:
        return answer

    def real(pieces: Iterable[Evidence]) -> tuple[Evidence, ...]:
        return tuple(
            replace(piece, topic=names[piece.topic], path=path_of(names[piece.topic]))
            if topic_of(piece.path) in names
            else piece
            for piece in pieces
        )

    def place(cited: str) -> str:
        topic, _, line = cited.rpartition(":")
        return f"{names.get(topic, topic)}:{line}"

    text = answer.text
    for shown, topic in names.items():
        text = text.replace(f"[{shown}:", f"[{topic}:")
    return replace(
        answer,
        text=text,
        evidence=real(answer.evidence),
        nearest=real(answer.nearest),
        citations=tuple(map(place, answer.citations)),
    )
