"""Libraries flushed and searched by a cluster of real worker processes, one of which is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from infinimem.fleet.ask import ask_below
from infinimem.fleet.below import libraries_below
from infinimem.fleet.cluster import ask_on_cluster, flush_on_cluster, search_on_cluster
from infinimem.fleet.flush import flush_below
from infinimem.fleet.search import Found, search_below
from tests.test_fleet import due, every_entry_once, make
from tests.test_fleet_search import QUERIES, apart_and_together

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")  # of tornado and asyncio, at the cluster's end
NUMBER = 18


@pytest.fixture
def client() -> Iterator[object]:
    """A client of two worker processes with a nanny each, which starts another when one dies."""
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


def test_a_poisoned_library_and_a_killed_worker_cost_no_other_library(tmp_path: Path, client: object) -> None:
    make(tmp_path, NUMBER)
    poisoned = tmp_path / "group-1" / "agent-4"
    with (poisoned / "CURRENT.md").open("a") as file:
        file.write("<<<<<<< ours\n- one\n=======\n- two\n>>>>>>> theirs\n")
    before = (poisoned / "CURRENT.md").read_bytes()
    found = {}
    for one in flush_on_cluster(client, tmp_path, "lexical"):  # type: ignore[arg-type]
        assert one.path not in found
        found[one.path] = one
        if len(found) in (2, 9):
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)  # type: ignore[attr-defined]
    assert set(found) == set(map(str, libraries_below(tmp_path)))
    assert [Path(path).name for path, one in found.items() if one.status == "failed"] == ["agent-4"]
    assert "conflict" in found[str(poisoned)].why
    assert due(tmp_path) == 1
    assert (poisoned / "CURRENT.md").read_bytes() == before
    poisoned_text = before[: before.index(b"<<<<<<<")]
    (poisoned / "CURRENT.md").write_bytes(poisoned_text)
    assert [one.status for one in flush_below(tmp_path, "lexical", processes=1) if one.path == str(poisoned)] == [
        "flushed"
    ]
    assert every_entry_once(tmp_path, NUMBER)
    again = [one.status for one in flush_on_cluster(client, tmp_path, "lexical")]  # type: ignore[arg-type]
    assert again == ["nothing"] * NUMBER


def test_a_search_on_the_cluster_finds_what_a_search_here_finds(tmp_path: Path, client: object) -> None:
    many, _ = apart_and_together(tmp_path, flushed=True)
    for query in QUERIES[1:4]:
        here = search_below(many, query, 8, processes=1)
        assert here.hits or query == QUERIES[3]
        there = search_on_cluster(client, many, query, 8)  # type: ignore[arg-type]
        assert [as_told(one) for one in there.hits] == [as_told(one) for one in here.hits]
        assert (there.searched, there.holding, there.troubles) == (here.searched, here.holding, ())
    answered = ask_on_cluster(client, many, QUERIES[1], reader="bm25")  # type: ignore[arg-type]
    expected = ask_below(many, QUERIES[1], reader="bm25", processes=1)
    assert answered.answer.citations == expected.answer.citations != ()
    (many / "agent-012" / "infinimem.yaml").write_text("format: 99\n")
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)  # type: ignore[attr-defined]
    broken = search_on_cluster(client, many, "Admiral", 8)  # type: ignore[arg-type]
    assert broken.hits
    assert [Path(one.path).name for one in broken.troubles] == ["agent-012"]
    assert broken.searched == 9


def as_told(one: Found) -> tuple[str, str, int, float]:
    """A hit without what floating point makes of it."""
    return one.library, one.hit.unit.path, one.hit.line, round(one.hit.score, 9)
