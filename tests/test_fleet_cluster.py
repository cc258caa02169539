"""Libraries flushed by a cluster of real worker processes, one of which is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from infinimem.fleet.below import libraries_below
from infinimem.fleet.cluster import flush_on_cluster
from infinimem.fleet.flush import flush_below
from tests.test_fleet import due, every_entry_once, make

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
