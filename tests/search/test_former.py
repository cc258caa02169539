"""Ids that topics had before: the catalog knows them, so that no document is read to see that a name is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from infinimem import Library, UnknownTopic
from infinimem.indexing import IndexFinder
from infinimem.model import Create, Extend
from infinimem.plan.paper import Plan


@pytest.fixture
def library(tmp_path: Path) -> Library:
    library = Library.open(tmp_path / "memory", create=True)
    library.write(["The choir sings Brahms.", "The choir meets on Wednesdays."])
    library.flush(plan=Plan((Create("choir", "Choir"), Extend("choir", "", (1, 2)))))
    return library


def former(library: Library, aux: str) -> None:
    path = library.root / "topics/choir.md"
    head, _, rest = path.read_text().partition("aux:")
    path.write_text(f"{head}aux: {aux}\n{rest.partition(chr(10))[2]}")


def test_a_topic_is_found_by_every_id_that_it_had(library: Library) -> None:
    assert library.index().named_before("singers") is None
    former(library, "{former_ids: [singers, the-choir], merged_from: [wednesday-choir]}")
    for name in ("choir", "singers", "the-choir", "wednesday-choir"):
        assert library.read(name).topic == "choir"
        assert [held.unit.text for held in library.timeline(name)] == [
            "The choir sings Brahms.", "The choir meets on Wednesdays.",
        ]  # fmt: skip
    again = Library.open(library.root)
    assert again.index().named_before("singers") == "choir"
    former(library, "{former_ids: [the-choir]}")
    with pytest.raises(UnknownTopic):
        again.read("singers")


def test_a_guest_and_evidence_have_no_former_ids(library: Library) -> None:
    (library.root / "topics/guest.md").write_text("---\naux: {former_ids: [visitor]}\n---\n# Guest\n\nHello.\n")
    assert library.index().named_before("visitor") is None
    assert library.index().named_before("") is None


def test_names_that_folders_and_links_have_taken_are_no_names_for_a_topic(library: Library) -> None:
    (library.root / "topics/band.md").mkdir()
    (library.root / "topics/band.md/inner.md").symlink_to("/nowhere")
    (library.root / "topics/rooms").mkdir()
    (library.root / "topics/rooms/hall.md").symlink_to(library.root / "topics/choir.md")
    finder = IndexFinder(library.root, library.index())
    assert sorted(finder.topics()) == ["CURRENT", "band", "band.md/inner", "choir", "rooms/hall"]
