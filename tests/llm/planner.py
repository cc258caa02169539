"""A planning model as a script: it reads the prompts that the product sends and answers them sensibly, or badly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tests.llm.server import Payload

LINE = re.compile(r"^(?:gone: )?\[(\d+)[-+\d]*\](?: (.*?))?: (.*)$", re.MULTILINE)
Judge = Callable[[int, str, int, str], str]
"""(new seq, its words, old seq, its words) → replaces, repeats or ""."""


def step_of(payload: Payload) -> str:
    """Which prompt a request carries: its heading says so."""
    return str(payload["messages"][0]["content"]).split("# ", 1)[1].split(":", 1)[0].split("\n", 1)[0].strip().lower()


def given(payload: Payload) -> str:
    """What is to be worked on: the first user message."""
    return str(payload["messages"][1]["content"])


def entries_in(text: str) -> dict[int, str]:
    """The entries of a prompt: words by seq."""
    return {int(seq): words for seq, _, words in LINE.findall(text)}


def first_word(words: str) -> str:
    """What an entry is about, where its first word says so."""
    return words.split(" ", 1)[0]


def sensible(
    judge: Judge = lambda new, words, old, others: "", subject: Callable[[str], str] = first_word
) -> Callable[[Payload], str]:
    """A model that groups entries by their subject and leaves the rest alone, save what `judge` says of pairs."""

    def answer(payload: Payload) -> str:
        text = given(payload)
        match step_of(payload):
            case "rewrite":
                return json.dumps(draft(entries_in(text), subject), ensure_ascii=False)
            case "route":
                return json.dumps(routes(text), ensure_ascii=False)
            case "update":
                return json.dumps(changes(text, judge))
            case "split":
                seqs = list(entries_in(text))
                return json.dumps({"parts": [{"title": "Second half", "seqs": seqs[len(seqs) // 2 :]}], "conf": 0.95})
            case "merge":
                return '{"merges": []}'
            case "summary":
                return json.dumps({"summaries": summaries(text)}, ensure_ascii=False)
            case step:
                raise AssertionError(f"no script for {step}")

    return answer


def draft(entries: dict[int, str], subject: Callable[[str], str]) -> dict[str, Any]:
    """Entries in blocks by their subject."""
    blocks: dict[str, list[int]] = {}
    for seq, words in entries.items():
        blocks.setdefault(subject(words), []).append(seq)
    rows = [{"topic": word, "heading": "", "seqs": seqs} for word, seqs in blocks.items()]
    return {"blocks": rows, "duplicates": [], "corrections": [], "joins": []}


def routes(text: str) -> dict[str, Any]:
    """Each block to the page that bears its name, else to a new one."""
    topics = set(re.findall(r"^([\w-]+): ", text.split("Blocks:")[0], re.MULTILINE))
    rows = []
    for number, subject in re.findall(r"^block (\d+): (.*?) /", text, re.MULTILINE):
        known = subject.lower() in topics
        rows.append(
            {
                "block": int(number),
                "topic": subject.lower() if known else "new",
                "title": "" if known else subject,
                "heading": "",
            }
        )
    return {"routes": rows}


def changes(text: str, judge: Judge) -> dict[str, Any]:
    """What the judge says of each asked pair."""
    entries = entries_in(text)
    rows = []
    for new, olds in re.findall(r"^(\d+): ([\d, ]+)$", text.split("Pairs to judge")[1], re.MULTILINE):
        for old in map(int, olds.split(", ")):
            relation = judge(int(new), entries[int(new)], old, entries[old])
            if relation:
                rows.append({"new": int(new), "old": old, "relation": relation, "conf": 0.95})
    return {"changes": rows}


def summaries(text: str) -> list[dict[str, str]]:
    """For each page the words of its last entry."""
    rows = []
    for page in re.split(r"^page ", text, flags=re.MULTILINE)[1:]:
        words = list(entries_in(page).values())
        text = words[-1].removesuffix(" …") if words else "nothing"
        rows.append(
            {"topic": page.split(":", 1)[0], "text": text if len(text) <= 200 else text[:200].rsplit(" ", 1)[0]}
        )
    return rows


def each_seq(value: Any, change: Callable[[list[int]], list[int]]) -> Any:
    """A reply with every list of seqs changed."""
    if isinstance(value, dict):
        return {
            key: change(one) if key == "seqs" and isinstance(one, list) else each_seq(one, change)
            for key, one in value.items()
        }
    return [each_seq(one, change) for one in value] if isinstance(value, list) else value


def hostile(kind: str, payload: Payload, answer: str) -> str:
    """A sensible answer made bad in one way."""
    step = step_of(payload)
    value = json.loads(answer)
    entries = entries_in(given(payload))
    seqs = list(entries)
    match kind:
        case "drops":
            value = each_seq(value, lambda found: [seq for seq in found if seq % 5])
        case "invents":
            value = each_seq(value, lambda found: [*found, 900_000 + len(found), -3, 0])
        case "repeats":
            value = each_seq(value, lambda found: found + found + seqs)
        case "retypes":
            if step == "rewrite" and len(seqs) > 1:
                words = f"{entries[seqs[0]]} {entries[seqs[1]]}"
                wrong = re.sub(r"\bnot\b", "", re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), words))
                value["joins"] = [{"seqs": seqs[:2], "text": wrong, "conf": 1.0}]
                value["blocks"] = [{"topic": "All", "heading": "", "seqs": seqs}]
            if step == "summary":
                for row in value["summaries"]:
                    row["text"] += " Since 1847, with 31 others."
        case "retires":
            if step == "rewrite" and len(seqs) > 1:
                value["duplicates"] = [{"seq": seq, "of": seqs[0], "conf": 1.0} for seq in seqs[1:]]
                value["corrections"] = [{"seq": seqs[0], "replaces": seq, "conf": 1.0} for seq in seqs[1:]]
            if step == "update":
                value = changes(given(payload), lambda new, words, old, others: "replaces")
        case "escapes":
            if step == "route":
                for row in value["routes"]:
                    row.update(topic="new", title="../../etc/passwd\n# id: x\n---", heading="\n## a\n- <seq=1> b")
            if step == "merge":
                value["merges"] = [{"topics": ["../x", "CURRENT"], "into": "/etc", "conf": 1.0}]
        case "obeys":
            if any("IGNORE ALL" in words for words in entries.values()):
                value = {"blocks": [], "parts": [], "changes": [], "delete": "everything", "text": "PWNED"}
        case "types":
            return json.dumps({key: {"seqs": None, "conf": "very", "topic": 3.5} for key in value} | {"blocks": "all"})
        case "refuses":
            return "I'm sorry, but I can't help with sorting private memories."
    return json.dumps(value, ensure_ascii=False)


HOSTILE = ("drops", "invents", "repeats", "retypes", "retires", "escapes", "obeys", "types", "refuses")
