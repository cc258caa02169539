"""Forgetting while others write, flush and search: what they write is there, what was forgotten is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from infinimem import Library
from tests.forgetting.test_forget import holding

WRITER = """
import sys
from infinimem import Library
library = Library.open(sys.argv[1])
for number in range(12):
    print(*library.write(f"writer {sys.argv[2]} wrote {number}"), flush=True)
    if number % 4 == 3:
        library.search("wrote")
        library.flush(planner="lexical")
"""


def test_forgetting_while_others_write_flush_and_search(tmp_path: Path) -> None:
    library = Library.open(tmp_path / "memory", create=True)
    seqs = library.write([f"Zorblatt{number} has key {number}." for number in range(6)])
    library.flush(planner="lexical")
    command = [sys.executable, "-c", WRITER, str(library.root)]
    writers = [
        subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for number in range(2)
    ]
    for seq in seqs:
        library.forget([seq])
        library.search("Zorblatt")
    said = [writer.communicate(timeout=300) for writer in writers]
    assert all(writer.returncode == 0 for writer in writers), said
    written = {int(line) for out, _ in said for line in out.split()}
    assert len(written) == 24
    assert holding(library, "zorblatt") == []
    assert not library.check(), "after all of it"
    for seq in sorted(written):
        story = library.trace(seq)
        assert story.here is not None or story.fate == "duplicate", seq
