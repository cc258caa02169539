"""A CURRENT as an import leaves it is read piece by piece, and found is what is found when it is read whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infinimem import Library, indexing
from infinimem.search import sources

TEXTS = st.lists(
    st.text("ab \n-<>#`·🚲", min_size=1, max_size=60).filter(str.strip) | st.sampled_from(["```\n- x\n```", "# a\nb"]),
    min_size=1, max_size=30,
)  # fmt: skip
LOOSE = st.sampled_from(
    ["", "- a bullet of a person\n", "a paragraph\n\n", "## a heading\n", "* <seq=900, x=y> a starred one\n"]
)


@settings(max_examples=60)
@given(texts=TEXTS, loose=LOOSE, piece=st.integers(1, 300))
def test_pieces_and_the_whole_give_the_same_units(
    texts: list[str], loose: str, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    current = library.root / "CURRENT.md"
    current.unlink(missing_ok=True)
    library.write([f"{text}\nberth {number}" for number, text in enumerate(texts)])
    current.write_text(current.read_text() + loose)
    library.index().destroy()
    whole = [(hit.unit, hit.score) for hit in Library.open(library.root).search("berth", k=50)]
    with monkeypatch.context() as patch:
        patch.setattr(sources, "_LARGE", 0)
        patch.setattr(indexing, "PIECE", piece)
        library.index().destroy()
        pieces = Library.open(library.root)
        assert [(hit.unit, hit.score) for hit in pieces.search("berth", k=50)] == whole
        [seq] = pieces.write("one more berth")
        assert seq in {one for hit in pieces.search("one more berth", k=1) for one in hit.seqs}
