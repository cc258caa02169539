"""Titled conversations and notes: what becomes of them in a flush without a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infinimem import Library
from infinimem.model import Document, Entry, Signature
from infinimem.plan.lexical.titled import part_titled, shared_words, usable
from infinimem.text.document import parse, title_of


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library.open(tmp_path / "memory", create=True)


def documents(library: Library) -> dict[str, Document]:
    """The topics by id."""
    paths = sorted((library.root / "topics").rglob("*.md"))
    found = [parse(path.relative_to(library.root).as_posix(), path.read_bytes()) for path in paths]
    return {document.id: document for document in found}


def talk(title: str, day: str, *said: str) -> list[dict[str, str]]:
    """A conversation, user and assistant in turn."""
    roles = ("user", "AI")
    return [{"text": text, "title": title, "time": day, "source": roles[at % 2]} for at, text in enumerate(said)]


SOURDOUGH = talk(
    "Sourdough starter not rising", "2026-01-03",
    "My rye starter is flat. I feed it flour and water once a day.",
    "A cold kitchen slows the yeast. Feed the starter twice a day with rye flour.",
)  # fmt: skip
CRUMB = talk(
    "Dense sourdough crumb", "2026-02-07",
    "The loaf from my starter is dense and gummy, the flour was rye.",
    "That loaf is underproofed: the dough should grow by half before you bake.",
)  # fmt: skip
DOCKER = talk(
    "Fix Docker network error", "2026-01-09",
    "docker compose says the network mynet could not be found.",
    "Remove external: true so that compose makes the network itself.",
)  # fmt: skip


def test_a_conversation_stays_whole_and_gives_its_topic_its_name(library: Library) -> None:
    library.write([*DOCKER, *SOURDOUGH])
    library.flush(planner="lexical")
    assert {topic: (title_of(one), len(one.entries)) for topic, one in documents(library).items()} == {
        "fix-docker-network-error": ("Fix Docker network error", 2),
        "sourdough-starter-not-rising": ("Sourdough starter not rising", 2),
    }


def test_conversations_about_one_subject_share_a_topic_with_a_heading_each(library: Library) -> None:
    library.write([*SOURDOUGH, *DOCKER, *CRUMB])
    library.flush(planner="lexical")
    topics = documents(library)
    assert set(topics) == {"fix-docker-network-error", "sourdough"}
    headings = [block.headings[-1] for block in topics["sourdough"].blocks if block.level == 2]
    assert headings == ["Sourdough starter not rising (2026-01-03)", "Dense sourdough crumb (2026-02-07)"]


def test_a_later_conversation_joins_and_the_topic_is_found_by_its_old_name(library: Library) -> None:
    library.write([*SOURDOUGH, *DOCKER])
    library.flush(planner="lexical")
    library.write(CRUMB)
    library.flush(planner="lexical")
    assert set(documents(library)) == {"fix-docker-network-error", "sourdough"}
    assert library.read("sourdough-starter-not-rising").topic == "sourdough"
    assert not library.check()


def test_a_topic_that_somebody_pinned_keeps_its_name(library: Library) -> None:
    library.write([*SOURDOUGH, *DOCKER])
    library.flush(planner="lexical")
    path = library.root / "topics" / "sourdough-starter-not-rising.md"
    path.write_text(path.read_text().replace("aux: {}", "aux: {pinned: true}"))
    library.write(CRUMB)
    report = library.flush(planner="lexical")
    assert report.exit_code == 0
    assert set(documents(library)) == {"fix-docker-network-error", "sourdough-starter-not-rising"}


def test_a_conversation_that_goes_on_goes_on_in_its_topic(library: Library) -> None:
    library.write([*DOCKER, *SOURDOUGH])
    library.flush(planner="lexical")
    library.write(talk("Fix Docker network error", "2026-03-01", "Thanks, it works with bread, flour and yeast."))
    library.flush(planner="lexical")
    texts = [entry.text for entry in documents(library)["fix-docker-network-error"].entries]
    assert texts[-1] == "Thanks, it works with bread, flour and yeast."


def test_a_chat_of_years_is_cut_into_topics_that_bear_its_title(library: Library) -> None:
    subjects = ("boat harbour sail berth mast", "bread flour oven yeast dough", "exam thesis professor library essay")
    said = []
    for number in range(240):
        words = subjects[number // 80].split()
        text = " ".join(f"the {words[(number * step) % 5]} and a {words[(number + step) % 5]}," for step in range(1, 9))
        speaker = ("Ann", "Ben")[number % 2]
        said.append(
            {"text": f"{text} {number}.", "title": "Family", "source": speaker, "time": f"2026-0{1 + number // 80}-05"}
        )
    library.write(said)
    library.flush(planner="lexical")
    topics = documents(library)
    assert len(topics) >= 2
    assert all(title_of(one) == "Family" or title_of(one).startswith("Family: ") for one in topics.values())
    assert sum(len(one.entries) for one in topics.values()) == 240


def test_a_note_keeps_its_page_and_its_headings_and_links_find_it(library: Library, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    long = "The boat Terna has a berth in the harbour and an engine that wants oil. " * 8
    (vault / "Terna.md").write_text(f"# Terna\n\n{long}\n\n## Winter\n\nShe stands in the shed.\n")
    (vault / "Ines.md").write_text("Ines sails [[Terna]] on Sundays in the harbour.\n")
    (vault / "2026-05-01.md").write_text("Met somebody at the station.\n")
    library.import_(vault)
    library.flush(planner="lexical")
    topics = documents(library)
    assert {"terna", "ines"} <= set(topics)
    assert [block.headings[-1] for block in topics["terna"].blocks if block.level == 2] == ["Winter"]
    assert "links=terna" in (library.root / "topics" / "ines.md").read_text()
    assert not any(topic.startswith("2026") for topic in topics)


def test_what_only_a_program_named_is_no_title() -> None:
    for title in ("New chat", "Untitled", "2026-05-01", "Neuer Chat", "", "…", "[[]]"):
        assert usable(title) == ""
    assert usable("# Boat | [[Terna]]") == "Boat Terna"
    assert usable("船の修理") == "船の修理"


def test_what_titles_share_is_spelt_as_one_of_them_does() -> None:
    assert shared_words(["Dense sourdough crumb", "Sourdough starter", "Brioche"]) == "Sourdough"
    assert shared_words(["Half marathon training plan", "Train tickets"]) == ""
    assert shared_words(["Meiji Restoration causes", "Meiji Restoration in short"]) == "Meiji Restoration"


@given(st.lists(st.tuples(st.sampled_from(["", "Boat", "boat", "New chat", "x<y>#"]), st.sampled_from(["", "work"]))))
def test_every_entry_is_in_one_part(rows: list[tuple[str, str]]) -> None:
    fields = [tuple(pair for pair in (("title", title), ("ns", ns)) if pair[1]) for title, ns in rows]
    entries = [Entry("CURRENT", Signature((seq,), own), "words") for seq, own in enumerate(fields, 1)]
    titled, rest = part_titled(entries)
    assert sorted([entry.seq for told in titled for entry in told.entries] + [entry.seq for entry in rest]) == list(
        range(1, len(rows) + 1)
    )
    assert all(len({entry.signature.get("ns") for entry in told.entries}) == 1 for told in titled)
