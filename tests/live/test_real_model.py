"""A flush planned by a real model: `pytest --live tests/live` with OPENAI_BASE_URL (and INFINIMEM_MODEL) set.

What it decides is its own affair and is printed; that nothing is lost is asserted. `tools/small_model.py` starts a
small model that comes from the package index.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from infinimem import Library
from tests.test_model_flush import NEVER, assert_nothing_lost

pytestmark = pytest.mark.live

ENTRIES = [
    ("Maya works at Fjord Labs as a senior engineer.", "user", "2025-09-01"),
    ("The boiler was serviced; the next service is due in 2027.", "user", "2025-10-02"),
    ("Oma Hilde zieht am 8. August nach Lübeck um.", "Mama", "2026-05-02"),
    ("Choir rehearsals are on Tuesdays at 19:00 in the parish hall.", "user", "2026-03-03"),
    ("Maya plays the cello in a quartet.", "user", "2026-03-04"),
    ("Die Umzugsfirma kostet 1.240 Euro.", "Mama", "2026-05-03"),
    ("Choir concert: Brahms, 14 June, Mariakirken.", "Margrethe", "2026-03-31"),
    ("The roof has not been repaired yet.", "user", "2026-04-01"),
]
LATER = [
    ("Maya left Fjord Labs and joined Nordlys as a staff engineer.", "user", "2026-05-01"),
    ("Oma Hilde zieht erst am 12. August nach Lübeck um.", "Mama", "2026-06-02"),
    ("Choir rehearsals are on Wednesdays at 18:30 from now on.", "Margrethe", "2026-08-20"),
    ("王芳上个月搬到上海了。", "user", "2026-09-01"),
]
CHANGED = {(1, 9), (3, 10), (4, 11)}


def written(library: Library, rows: list[tuple[str, str, str]]) -> dict[int, str]:
    seqs = library.write([{"text": text, "source": source, "time": time} for text, source, time in rows])
    return dict(zip(seqs, (text for text, _, _ in rows), strict=True))


def test_a_real_model_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("INFINIMEM_MODEL_TIMEOUT", "5m")
    monkeypatch.setenv("INFINIMEM_MODEL_DEADLINE", "30m")
    library = Library.open(tmp_path / "memory", create=True)
    texts: dict[int, str] = {}
    for rows in (ENTRIES, LATER):
        texts |= written(library, rows)
        report = library.flush(planner="model")
        assert_nothing_lost(library, texts)
        counts = Counter(outcome.status for outcome in report.outcomes)
        with capsys.disabled():
            print(f"\nexecuted {counts['executed']}, skipped {counts['skipped']}, no-op {counts['no-op']}; ", end="")
            print(f"without the model: {len(report.failures)} steps; {report.usage}")
            for outcome in report.outcomes:
                print(f"  {outcome.status}: {outcome.step} {outcome.why}")
            print("\n".join(f"  {failure}" for failure in report.failures))
    pairs = {(step.seq, step.by) for step in report.retired if step.why == "superseded"}
    with capsys.disabled():
        print(
            f"changed facts found: {len(pairs & CHANGED)} of {len(CHANGED)}, wrongly superseded: {len(pairs - CHANGED)}"
        )


def test_what_replaces_nothing_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("INFINIMEM_MODEL_TIMEOUT", "5m")
    wrong = []
    for kind, old, new in NEVER:
        library = Library.open(tmp_path / kind.replace(" ", "-"), create=True)
        texts = written(library, [(old, "user", "2026-05-01")])
        library.flush(planner="lexical")
        texts |= written(library, [(new, "user", "2026-06-20")])
        report = library.flush(planner="model")
        assert_nothing_lost(library, texts)
        wrong += [kind for step in report.retired if step.why == "superseded"]
    with capsys.disabled():
        print(f"\nsuperseded although nothing was replaced: {len(wrong)} of {len(NEVER)} {wrong}")
