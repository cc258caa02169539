"""Do titled conversations go where their subjects are?

    python benchmarks/titled.py [--show] [--json FILE]
    python benchmarks/titled.py --export conversations.json

Made-up conversations (titled-chosen.md, on which the planner's constants were chosen, and titled-reported.md, on which
they were not), each with the title that a chat program gave it and the subject that a person gave it. They are imported
as a ChatGPT export and flushed without a model, all at once and `--portions` of the time line one after the other.
Printed: topics, B-cubed precision, recall and F of the topics against the subjects, conversations that are cut apart.
With `--export` the export is written to a file and nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from report import table, write_json

from infinimem import Library
from infinimem.text.document import title_of

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.topics import documents_of, overlap

HERE = Path(__file__).parent
SEED = 6
FIRST_DAY = 1_735_718_400
"""2025-01-01; a conversation every four days or so."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What was said in a conversation, by role; its title, and the subject that a person gave it."""

    subject: str
    title: str
    said: tuple[tuple[str, str], ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print each catalogue")
    parser.add_argument("--portions", type=int, default=6, help="flushes of the second way")
    parser.add_argument("--export", type=Path, help="write the chosen conversations as a ChatGPT export")
    parser.add_argument("--json", type=Path, help="write the figures to a file")
    asked = parser.parse_args()
    if asked.export:
        asked.export.write_text(json.dumps(export_of(read_conversations("chosen")), indent=1), encoding="utf-8")
        return
    rows = []
    for part in ("chosen", "reported"):
        said = read_conversations(part)
        for flushes in (1, asked.portions):
            rows.append({"part": part, "flushes": flushes, **measured(said, flushes, asked.show)})
    cells = [[f"{value:.2f}" if isinstance(value, float) else value for value in row.values()] for row in rows]
    print(table(list(rows[0]), cells))
    limits = ("made-up English conversations of two to four short messages; the parts were written by one hand",)
    write_json(asked.json, "titled", rows, limits=limits, packages=("tantivy",), seed=SEED, portions=asked.portions)


def read_conversations(part: str) -> list[Conversation]:
    """The conversations of a part, in a fixed order that has nothing to do with their subjects."""
    found = []
    for block in re.split(r"^# ", (HERE / f"titled-{part}.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        subject, _, rest = block.partition("\n")
        for one in re.split(r"^## ", rest, flags=re.MULTILINE)[1:]:
            title, _, words = one.partition("\n")
            said = re.findall(r"^(user|AI): (.*)$", words, flags=re.MULTILINE)
            found.append(Conversation(subject.strip(), title.strip(), tuple(said)))
    random.Random(SEED).shuffle(found)
    return found


def export_of(said: Sequence[Conversation]) -> list[dict[str, Any]]:
    """Conversations as ChatGPT exports them, the newest first."""
    chance = random.Random(SEED)
    moment = float(FIRST_DAY)
    rows = []
    for number, one in enumerate(said):
        moment += chance.uniform(0.5, 7) * 86_400
        mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
        parent = "root"
        for at, (role, words) in enumerate(one.said):
            ident = f"{number}-{at}"
            author = {"role": "user" if role == "user" else "assistant"}
            content = {"content_type": "text", "parts": [words]}
            mapping[ident] = {"id": ident, "parent": parent, "children": [], "message": {
                "id": ident, "author": author, "create_time": moment + 60 * at, "content": content}}  # fmt: skip
            mapping[parent]["children"] = [ident]
            parent = ident
        rows.append({"title": one.title, "create_time": moment, "update_time": moment + 600, "mapping": mapping,
                     "current_node": parent, "conversation_id": f"made-up-{number}"})  # fmt: skip
    return rows[::-1]


def measured(said: Sequence[Conversation], flushes: int, show: bool) -> dict[str, float]:
    """The figures of one library, flushed so often."""
    subject = {(one.title, words): one.subject for one in said for _, words in one.said}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "library"
        with Library.open(root, create=True) as library:
            rows = export_of(said)[::-1]
            size = -(-len(rows) // flushes)
            for start in range(0, len(rows), size):
                path = Path(folder) / "conversations.json"
                path.write_text(json.dumps(rows[start : start + size][::-1]), encoding="utf-8")
                library.import_([path])
                library.flush(planner="lexical")
        documents = list(documents_of(root))
    homes = {seq: each.id for each in documents for entry in each.entries for seq in entry.seqs}
    told = {seq: entry for each in documents for entry in each.entries for seq in entry.seqs}
    subjects = {seq: subject[entry.signature.get("title"), entry.text] for seq, entry in told.items()}
    places: dict[str, set[str]] = {}
    for seq, entry in told.items():
        if entry.signature.get("title") not in ("New chat", "Untitled"):
            places.setdefault(entry.signature.get("title"), set()).add(homes[seq])
    if show:
        for each in sorted(documents, key=lambda each: -len(each.entries)):
            held = Counter(subjects[seq] for entry in each.entries for seq in entry.seqs)
            print(
                f"{each.id} · # {title_of(each)} · {', '.join(f'{one} {often}' for one, often in held.most_common())}"
            )
            headings = [block.headings[-1] for block in each.blocks if block.level == 2]
            print(f"    {each.header.fields.get('summary', '')}\n    ## " + " ## ".join(headings))
    precision, recall = overlap(homes, subjects), overlap(subjects, homes)
    return {
        "conversations": len(said),
        "entries": len(homes),
        "subjects": len(set(subjects.values())),
        "topics": len(documents),
        "precision": precision,
        "recall": recall,
        "F": 2 * precision * recall / (precision + recall),
        "cut_apart": sum(len(where) > 1 for where in places.values()),
    }


if __name__ == "__main__":
    main()
