"""The lexical planner: what it groups, where it routes, how it names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from infinimem.model import Create, Document, Entry, Extend, Merge, Signature, Span, Split, Step
from infinimem.plan.lexical import (
    Candidate,
    Frequencies,
    duplicates,
    heading_of,
    is_talk,
    part,
    place,
    plan_merge,
    plan_promote,
    plan_sort,
    plan_split,
    plan_union,
    route,
    segment,
    slug_of,
    summarise,
    title_of,
)
from infinimem.text.document import entry_lines, parse_lines
from infinimem.text.tokens import estimate
from infinimem.text.words import analyse


def notes(text: str, start: int = 1) -> list[Entry]:
    """One entry a line: `2026-01-05 user: text`."""
    found = []
    for seq, line in enumerate(text.strip().splitlines(), start):
        time, source, said = re.match(r"\s*(\S+) ([^:]*): (.*)", line).groups()  # type: ignore[union-attr]
        found.append(Entry("CURRENT", Signature((seq,), (("time", time), ("source", source))), said))
    return found


def document(topic: str, sections: dict[str, Sequence[Entry]], title: str = "Title") -> Document:
    lines = [f"# {title}\n"]
    for heading, entries in sections.items():
        lines += ["\n", f"## {heading}\n", "\n"] if heading else ["\n"]
        for entry in entries:
            lines += entry_lines(entry.signature, entry.text)
    return parse_lines(f"topics/{topic}.md", tuple(lines))


def candidate(topic: str, sections: dict[str, Sequence[Entry]], title: str = "Title") -> Candidate:
    made = document(topic, sections, title)
    tokens = estimate("".join(made.lines))
    return Candidate(topic, title, "", tokens, 1.0, tuple(sections), made.entries)


def seqs(entries: Sequence[Entry]) -> list[int]:
    return [entry.seq for entry in entries]


CHAT = notes(
    """
    2023-05-25 Ana: Hey Ben! Good to see you! I finally signed up for the pottery class downtown.
    2023-05-25 Ben: That's great, Ana! What did you make in the pottery class?
    2023-05-25 Ana: Thanks, Ben! I made a clay bowl and glazed it blue, the kiln fires on Friday.
    2023-05-25 Ben: Wow, a clay bowl sounds lovely. Will the kiln keep the blue glaze?
    2023-05-25 Ana: The teacher says the glaze turns darker in the kiln, we will see.
    2023-05-25 Ben: By the way, my sister is moving to Bergen with her two cats.
    2023-05-25 Ana: Oh nice! How do the cats travel to Bergen?
    2023-05-25 Ben: The cats travel by ferry to Bergen, my sister booked a pet cabin.
    2023-05-25 Ana: A pet cabin on the ferry, that is good to know for my dog.
    2023-05-25 Ben: The ferry company wants a vaccination passport for cats and dogs.
    """
)
BIKE = notes(
    """
    2026-01-10 user: Bought a used Canyon gravel bike from Pavel for 900 euros.
    2026-01-12 user: The gravel bike needs new brake pads and a chain.
    2026-03-08 user: Bike service done at Velowerk, new chain and brake pads for 95 euros.
    """,
    100,
)
FLAT = notes(
    """
    2026-02-26 user: Neue Wohnung in der Gartenallee besichtigt, 72 Quadratmeter, Balkon nach Süden.
    2026-02-28 user: Mietvertrag für die Gartenallee unterschrieben, Einzug am 1. Juni.
    2026-03-24 user: Die Hausverwaltung der Gartenallee verlangt eine Kaution von 2.700 Euro.
    """,
    200,
)
BOOKS = notes(
    """
    2026-02-08 user: 读完了《三体》第一部，刘慈欣的科幻小说很精彩。
    2026-02-09 user: 下个月读书会讨论《三体》第二部。
    2026-02-10 user: 读书会在小王家举行，大家带自己做的点心。
    """,
    300,
)


def test_a_conversation_is_cut_where_its_subject_changes() -> None:
    blocks = segment(CHAT)
    assert [seqs(block) for block in blocks] == [[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]


def test_independent_notes_are_grouped_by_subject_not_by_place() -> None:
    mixed = [note for three in zip(BIKE, FLAT, BOOKS, strict=True) for note in three]
    blocks = [seqs(block) for block in segment(mixed)]
    assert [100, 101, 102] in blocks
    assert all(len({seq // 100 for seq in block}) == 1 for block in blocks)


def test_notes_of_different_namespaces_never_share_a_block() -> None:
    twins = [
        Entry("CURRENT", Signature((seq,), (("ns", ns),)), "The gravel bike needs a new chain.")
        for seq, ns in ((1, "work"), (2, "home"))
    ]
    assert len(segment(twins)) == 2


texts = st.text(st.characters(codec="utf-8"), max_size=60)
entries_of = st.lists(
    st.tuples(
        texts,
        st.sampled_from(["", "user", "Ana", "Ben Li", "tool:jira"]),
        st.sampled_from(["", "2026-01", "2026-01-05"]),
    ),
    min_size=1,
    max_size=12,
).map(
    lambda rows: [
        Entry("CURRENT", Signature((seq,), (("time", time), ("source", source))), text)
        for seq, (text, source, time) in enumerate(rows, 1)
    ]
)


@given(entries_of)
def test_every_entry_lands_in_exactly_one_block(entries: list[Entry]) -> None:
    assert sorted(seq for block in segment(entries) for seq in seqs(block)) == seqs(entries)


@given(entries_of)
def test_a_block_is_routed_whole_and_names_are_single_lines(entries: list[Entry]) -> None:
    steps = route(entries, [], [], 5000)
    assert isinstance(steps[0], Create)
    assert [seq for step in steps if isinstance(step, Extend) for seq in step.seqs] == seqs(entries)
    for name in (title_of(entries), heading_of(entries), summarise("", entries)):
        assert len(name.splitlines()) <= 1


def test_a_repeated_entry_is_a_duplicate_only_where_time_and_source_agree() -> None:
    written = notes(
        """
        2026-01-05 user: Maya joined Nordlys.
        2026-01-05 user: maya  joined Nordlys
        2026-01-06 user: Maya joined Nordlys.
        2026-01-05 Ines: Maya joined Nordlys.
        """
    )
    assert [(step.seq, step.by, step.why) for step in duplicates(written)] == [(2, 1, "duplicate")]


def test_what_changed_and_changed_back_is_not_a_duplicate_of_what_was_first_said() -> None:
    """Or the value in between would be the last one said."""
    written = notes(
        """
        2026-01-05 user: Maya is in the Bergen office on Tuesdays.
        2026-01-05 user: Maya is in the Bergen office on Thursdays.
        2026-01-05 user: Maya is in the Bergen office on Tuesdays.
        2026-01-05 user: The kiln is at her sister's place.
        2026-01-05 user: Maya is in the Bergen office on Tuesdays.
        """
    )
    assert [(step.seq, step.by) for step in duplicates(written)] == [(5, 3)]


def test_thanks_said_twice_is_not_a_duplicate() -> None:
    assert duplicates(notes("2026-01-05 Ana: Thanks, Ben!\n2026-01-05 Ana: Thanks, Ben!")) == []


def test_a_title_names_the_subject_not_the_greeting() -> None:
    title = title_of(CHAT[:5])
    assert "clay bowl, kiln" in title.casefold()
    assert "clay-bowl-kiln" in slug_of(title, [])
    assert heading_of(CHAT[:5]).endswith("(2023-05-25)")


def test_titles_keep_the_language_and_its_capitals() -> None:
    assert title_of(FLAT).startswith("Gartenallee")
    assert "读书会" in title_of(BOOKS)


def test_a_title_that_is_taken_gets_other_words() -> None:
    first = title_of(CHAT)
    assert title_of(CHAT, [first]) != first


@given(st.text(max_size=200), st.lists(st.text(max_size=10), max_size=5))
def test_a_slug_is_safe_on_every_file_system(title: str, taken: list[str]) -> None:
    slug = slug_of(title, taken)
    again = slug_of(title, [*taken, slug.upper()])
    for name in (slug, again):
        assert 0 < len(name) <= 60
        assert all(char == "-" or unicodedata.category(char)[0] in "LMN" for char in name)
        assert not name.startswith("-") and not name.endswith("-")
    assert again.casefold() != slug.casefold()


def test_a_slug_is_no_device_and_not_the_buffer() -> None:
    assert [slug_of(title, []) for title in ("CON", "Com1", "Current", "..", "")] == [
        "con-notes",
        "com1-notes",
        "current-notes",
        "notes",
        "notes",
    ]


def test_a_block_continues_the_document_of_its_subject() -> None:
    bike = candidate("gravel-bike", {"Gravel bike": BIKE[:2]})
    flat = candidate("gartenallee", {"Gartenallee": FLAT})
    assert route(BIKE[2:], [flat, bike], ["gartenallee", "gravel-bike"], 5000) == [
        Extend("gravel-bike", "Gravel bike", (102,))
    ]


def test_a_new_subject_gets_a_document_of_its_own() -> None:
    flat = candidate("gartenallee", {"Gartenallee": FLAT})
    create, extend = route(BIKE, [flat], ["gartenallee"], 5000)
    assert create == Create("gravel-bike-brake-pads-chain", "Gravel bike, brake pads, chain")
    assert extend == Extend("gravel-bike-brake-pads-chain", "Gravel bike, brake pads", (100, 101, 102))


def long_document(copies: int) -> Document:
    sections: dict[str, list[Entry]] = {}
    seq = 0
    for number in range(copies):
        for name, theme in (("Bike", BIKE), ("Wohnung", FLAT)):
            for note in theme:
                seq += 1
                entry = Entry("", Signature((seq,), note.signature.fields), f"{note.text} ({number})")
                sections.setdefault(f"{name} {number}", []).append(entry)
    return document("gravel-bike", sections, "Gravel bike")


def test_a_long_document_is_split_by_subject_and_keeps_its_id_for_what_it_names() -> None:
    split = plan_split(long_document(8), 1000, ["gravel-bike"])
    assert split is not None
    first, *others = split.parts
    assert first.topic == "gravel-bike"
    assert first.title.startswith("Gravel bike")
    assert all("Gartenallee" in other.title for other in others if 4 in other.seqs)


@given(st.integers(1, 30), st.integers(60, 3000))
def test_a_split_is_an_exact_partition_under_the_limit(copies: int, limit: int) -> None:
    whole = long_document(copies)
    split = plan_split(whole, limit, ["gravel-bike"])
    if split is None:
        assert estimate("".join(whole.lines)) <= limit
        return
    assert sorted(seq for part in split.parts for seq in part.seqs) == seqs(whole.entries)
    assert len({part.topic for part in split.parts}) == len(split.parts) >= 2
    sizes = {entry.seq: estimate("".join(whole.lines[entry.span.start : entry.span.stop])) for entry in whole.entries}
    for piece in split.parts:
        assert len(piece.seqs) == 1 or sum(sizes[seq] for seq in piece.seqs) <= limit


def test_an_entry_over_the_limit_stands_alone() -> None:
    giant = Entry("", Signature((9,)), "gravel bike " * 2000)
    split = plan_split(document("x", {"": [*BIKE, giant, *FLAT]}), 1000, ["x"])
    assert split is not None
    assert [part.seqs for part in split.parts if 9 in part.seqs] == [(9,)]


def test_small_documents_of_one_subject_are_merged() -> None:
    one = candidate("gravel-bike", {"Gravel bike": BIKE[:2]}, "Gravel bike")
    two = candidate("brake-pads", {"Brake pads": BIKE[2:]}, "Brake pads")
    flat = candidate("gartenallee", {"Gartenallee": FLAT}, "Gartenallee")
    merge = plan_merge(one, [one, two, flat], 1000, 5000)
    assert isinstance(merge, Merge)
    assert (merge.topics, merge.into) == (("gravel-bike", "brake-pads"), "gravel-bike")


def test_documents_of_different_subjects_are_not_merged() -> None:
    bike = candidate("gravel-bike", {"Gravel bike": [*BIKE, *notes("2026-04-01 user: Gravel bike stolen.", 150)]})
    flat = candidate("gartenallee", {"Gartenallee": FLAT})
    assert plan_merge(bike, [flat], 1000, 5000) is None


def test_a_merge_never_makes_a_document_over_the_limit() -> None:
    one = candidate("gravel-bike", {"Gravel bike": BIKE[:2]})
    two = candidate("brake-pads", {"Brake pads": BIKE[2:]})
    assert plan_merge(one, [two], 1000, one.tokens + two.tokens - 1) is None


def test_a_single_odd_note_goes_to_the_odds_and_ends() -> None:
    odd = candidate("wifi", {"Guest wifi": notes("2026-03-12 user: Password for the guest wifi is on the fridge.")})
    ends = candidate("odds", {"Tax": FLAT[:1], "Book": BOOKS[:1], "Bike": BIKE[:1]})
    flat = candidate("gartenallee", {"Gartenallee": FLAT})
    merge = plan_merge(odd, [flat, ends], 1000, 5000)
    assert merge is not None and merge.into == "odds"


def test_a_subject_that_grew_among_odds_and_ends_moves_out() -> None:
    odds = document("odds", {"Gravel bike": BIKE, "Wohnung": FLAT[:1], "读书会": BOOKS[:1]}, "Gravel bike, Gartenallee")
    split = plan_promote(odds, ["odds"])
    assert split is not None
    assert [part.seqs for part in split.parts] == [(200, 300), (100, 101, 102)]
    assert split.parts[1].topic == "gravel-bike-brake-pads-chain"


def test_a_summary_names_what_is_inside() -> None:
    summary = summarise("Gravel bike", BIKE)
    assert summary == (
        "Brake pads, chain, Pavel, Velowerk, service · 2026-01-10 – 2026-03-08 — The gravel bike needs new brake pads "
        "and a chain. Bought a used Canyon gravel bike from Pavel for 900 euros."
    )


@given(entries_of, st.integers(40, 300))
def test_a_summary_says_only_what_the_entries_say(entries: list[Entry], limit: int) -> None:
    summary = summarise("", entries, limit)
    said = " ".join(f"{entry.text} {entry.source} {entry.time}" for entry in entries)
    assert len(summary) <= limit
    assert set(re.findall(r"\d+", summary)) <= set(re.findall(r"\d+", said))


def test_the_plan_does_not_depend_on_the_hash_seed() -> None:
    program = (
        "from tests.plan.test_lexical import *\n"
        "mixed = [*CHAT, *BIKE, *FLAT, *BOOKS]\n"
        "for block in segment(mixed): print(seqs(block), route(block, [], [], 5000), summarise('', block))\n"
        "print(summarise('', mixed), title_of(mixed), plan_split(long_document(9), 900, []))\n"
    )
    plans = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(plans) == 1


def test_a_document_without_signed_entries_is_not_split() -> None:
    prose = Document("topics/x.md", ("word " * 9000,), entries=(Entry("x", Signature(()), "plain", (), Span(0, 1)),))
    assert plan_split(prose, 1000, []) is None


# Independent notes, by the library's word frequencies

FIELDWORK = notes(
    """
    2026-02-01 user: The Kestrel transect has 14 plots; plot 9 is under water until April.
    2026-02-03 Amara: Kestrel plots 1 to 6 counted, lichen cover up again.
    2026-02-09 user: Lichen samples from the Kestrel transect are in the freezer, second drawer.
    """,
    400,
)
SHOP = notes(
    """
    2026-02-02 user: Supplier Brandt raises the price of oat flour to 1.90 from March.
    2026-02-04 user: Ordered 40 kg of oat flour from Brandt, delivery on Thursday.
    2026-02-10 user: The oven's left door leaks heat; Mr Okoye comes to look at the oven on Monday.
    2026-02-11 user: Okoye replaced the seal of the oven door, 85 euros.
    """,
    500,
)
RUSSIAN = notes(
    """
    2026-02-05 user: Бабушка переехала в Казань, новый адрес: улица Баумана, 14.
    2026-02-06 user: Позвонить бабушке в воскресенье, Казань на час впереди.
    """,
    600,
)
MIXED = [*FIELDWORK, *SHOP, *RUSSIAN, *BOOKS]


def frequencies(*entries: Entry) -> Frequencies:
    """As in a library of 300 entries whose others share no word with these."""
    held = [set(analyse(f"{entry.text} {entry.source}")) for entry in entries]
    return Frequencies(300, lambda term: sum(term in terms for terms in held))


def homes_of(steps: Sequence[Step]) -> dict[int, str]:
    return {seq: step.topic for step in steps if isinstance(step, Extend) for seq in step.seqs}


def test_short_notes_about_one_subject_share_a_document_in_any_language() -> None:
    homes = homes_of(place(MIXED, [], frequencies(*MIXED), [], 5000))
    assert sorted(homes) == sorted(seqs(MIXED))
    for subject in (FIELDWORK, SHOP[:2], SHOP[2:], RUSSIAN, BOOKS):
        assert len({homes[seq] for seq in seqs(subject)}) == 1
    assert len({homes[seq] for seq in (400, 500, 600, 300)}) == 4


def test_a_note_joins_the_document_that_names_what_it_names() -> None:
    kestrel = candidate("kestrel", {"Plots": FIELDWORK[:2]}, "Kestrel")
    flour = candidate("oat-flour", {"Brandt": SHOP[:2]}, "Oat flour")
    steps = place([FIELDWORK[2], SHOP[3]], [kestrel, flour], frequencies(*MIXED), ["kestrel", "oat-flour"], 5000)
    homes = homes_of(steps)
    assert homes[402] == "kestrel"
    assert homes[503] not in ("kestrel", "oat-flour")


def test_a_new_document_of_notes_is_named_after_what_they_share() -> None:
    created = [step for step in place(FIELDWORK, [], frequencies(*MIXED), [], 5000) if isinstance(step, Create)]
    assert [step.topic.split("-")[0] for step in created] == ["kestrel"]
    assert created[0].title.startswith("Kestrel")


def test_what_is_jotted_down_in_one_sitting_stays_together() -> None:
    def note(seq: int, minute: int, text: str) -> Entry:
        fields = (("source", "user"), ("observed", f"2026-03-10T10:{minute:02}:00Z"))
        return Entry("CURRENT", Signature((seq,), fields), text)

    bids = [note(1, 2, "Bidding for the farmhouse opened."), note(2, 6, "They went to 6.3."), note(3, 9, "We stop.")]
    homes = homes_of(place(bids, [], frequencies(*bids, *MIXED), [], 5000))
    assert len(set(homes.values())) == 1
    at_once = [Entry("", Signature((e.seq,), (("observed", "2026-03-10T10:00:00Z"),)), e.text) for e in bids]
    assert len(set(homes_of(place(at_once, [], frequencies(*bids, *MIXED), [], 5000)).values())) > 1


def test_a_correction_goes_where_the_corrected_entry_stands() -> None:
    fix = Entry("CURRENT", Signature((700,), (("supersedes", "500"),)), "It is 2.05 now.")
    flour = candidate("oat-flour", {"Brandt": SHOP[:2]}, "Oat flour")
    assert homes_of(place([fix], [flour], frequencies(*MIXED), ["oat-flour"], 5000)) == {700: "oat-flour"}


@given(entries_of)
def test_every_note_is_placed_exactly_once(entries: list[Entry]) -> None:
    talks, rest = part(entries)
    steps = place(rest, [], frequencies(*entries), [], 5000)
    placed = [seq for step in steps if isinstance(step, Extend) for seq in step.seqs]
    assert sorted([*placed, *(seq for block in talks for seq in seqs(block))]) == seqs(entries)
    made = [step.topic for step in steps if isinstance(step, Create)]
    assert len(made) == len(set(made)) and set(homes_of(steps).values()) <= set(made)


def test_a_long_exchange_is_talk_and_a_few_notes_are_not() -> None:
    assert is_talk(CHAT) and not is_talk(MIXED)


def test_small_documents_with_one_anchor_become_one_and_are_named_after_it() -> None:
    one = candidate("plots", {"Plots": FIELDWORK[:2]}, "Plots")
    two = candidate("samples", {"Samples": FIELDWORK[2:]}, "Samples")
    bread = candidate("oat-flour", {"Brandt": SHOP[:2]}, "Oat flour")
    names = ["plots", "samples"]
    create, merge = plan_union(two, [one, bread], frequencies(*MIXED), 1000, 5000, names, names)
    assert isinstance(create, Create) and create.title.startswith("Kestrel")
    assert merge == Merge((create.topic, "plots", "samples"), create.topic, create.title)
    kept = plan_union(two, [one, bread], frequencies(*MIXED), 1000, 5000, names, ["samples"])
    assert kept == [Merge(("plots", "samples"), "plots", "Plots")], "what stood before keeps its name"


def test_two_odd_notes_go_to_the_odds_and_ends_of_their_month() -> None:
    one = candidate("freezer", {"Freezer": FIELDWORK[2:]}, "Freezer")
    two = candidate("oat-flour", {"Brandt": SHOP[:1]}, "Oat flour")
    assert plan_union(one, [two], frequencies(*MIXED), 1000, 5000, [], ["oat-flour"]) == []
    assert plan_union(one, [two], frequencies(*MIXED), 1000, 5000, [], ["freezer", "oat-flour"]) == [
        Create("notes-2026-02", "Notes 2026-02"),
        Merge(("notes-2026-02", "freezer", "oat-flour"), "notes-2026-02", "Notes 2026-02"),
    ]


def test_three_odd_notes_that_share_a_word_leave_the_odds_and_ends() -> None:
    odds = candidate("notes-2026-02", {"Odds": [*SHOP[:1], *FIELDWORK, *RUSSIAN[:1]]}, "Notes 2026-02")
    split, *others = plan_sort(odds, [], frequencies(*MIXED), ["notes-2026-02"], 5000)
    assert isinstance(split, Split) and not others
    assert [(part.topic.split("-")[0], part.seqs) for part in split.parts] == [
        ("notes", (500, 600)),
        ("kestrel", (400, 401, 402)),
    ]


def test_three_odd_notes_that_share_a_word_do_not_go_back_to_the_odds_and_ends() -> None:
    momo = notes("2026-02-01 me: Momo weighs 5 kg.\n2026-02-01 me: Momo hates thunder.\n2026-02-02 me: Momo sleeps.")
    subject = candidate("momo", {"Momo": momo}, "Momo")
    odds = candidate("notes-2026-01", {"Odds": SHOP[:1]}, "Notes 2026-01")
    assert plan_union(subject, [odds], frequencies(*MIXED), 1000, 5000, [], ["momo"]) == []


def test_an_odd_note_moves_to_the_document_that_came_to_be_about_it() -> None:
    odds = candidate("notes-2026-02", {"Odds": [*FIELDWORK[2:], *RUSSIAN[:1]]}, "Notes 2026-02")
    home = candidate("kestrel", {"Plots": FIELDWORK[:2]}, "Kestrel")
    split, merge = plan_sort(odds, [home], frequencies(*MIXED), ["notes-2026-02", "kestrel"], 5000)
    assert isinstance(split, Split) and split.parts[1].seqs == (402,)
    assert merge == Merge(("kestrel", split.parts[1].topic), "kestrel", "Kestrel")


def test_a_slug_is_short_and_plain_where_letters_are_latin() -> None:
    assert slug_of("Håkon Vik, Fähre für Øyvind, Straße", []) == "hakon-vik-fahre-fur-oyvind"
    assert slug_of("读书会, 三体", []) == "读书会-三体"
    assert slug_of("Бабушка, Казань, Йод", []) == "бабушка-казань-йод"
