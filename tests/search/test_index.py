"""The index against small libraries of real files, read by a reader that counts what it reads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from infinimem.errors import BadInput
from infinimem.model import Filter, Unit
from infinimem.search.folder import held
from infinimem.search.index import FileState, Index, Parsed, Tail


class Files:
    """A folder of files with one JSON entry a line: the smallest format that the index can be told about."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.read: list[str] = []
        self.tails: list[tuple[str, int, int]] = []
        (root / "topics").mkdir(parents=True)
        (root / "evidence").mkdir()

    def put(self, path: str, *entries: dict[str, object]) -> None:
        fresh = self.root / f"{path}.new"
        fresh.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        self.age(f"{path}.new")
        fresh.replace(self.root / path)

    def append(self, path: str, *entries: dict[str, object]) -> None:
        with (self.root / path).open("a") as file:
            file.write("".join(json.dumps(entry) + "\n" for entry in entries))
        self.age(path)

    def age(self, path: str, seconds: float = 10) -> None:
        """Let a file have changed a while ago, so that its state alone tells."""
        status = (self.root / path).stat()
        os.utime(self.root / path, ns=(status.st_atime_ns, status.st_mtime_ns - int(seconds * 1e9)))

    def listing(self) -> dict[str, FileState]:
        found = {}
        for file in sorted(self.root.rglob("*.md")):
            status = file.stat()
            path = str(file.relative_to(self.root))
            found[path] = FileState(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        return found

    def units(self, path: str, content: bytes, line: int = 1) -> list[Unit]:
        units = []
        for at, row in enumerate(content.decode().splitlines(), line):
            entry = json.loads(row)
            fields = tuple((key, str(value)) for key, value in entry.items() if key not in NOT_FIELDS)
            headings = tuple(entry.get("headings", ()))
            units.append(
                Unit(path, at, at, entry.get("text", ""), tuple(entry.get("seqs", ())), headings, fields,
                     entry.get("retired", ""))
            )  # fmt: skip
        return units

    def read_units(self, path: str) -> Parsed:
        import hashlib

        self.read.append(path)
        content = (self.root / path).read_bytes()
        units = self.units(path, content)
        digest = hashlib.blake2b(content, digest_size=16).hexdigest()
        end, line = (len(content), len(units) + 1) if path == "CURRENT.md" else (0, 1)
        return Parsed(units, path, f"about {path}", len(content), "guest" in path, digest, end, line)

    def read_tail(self, path: str, offset: int, line: int) -> Tail | None:
        self.tails.append((path, offset, line))
        content = (self.root / path).read_bytes()[offset:]
        units = self.units(path, content, line)
        return Tail(units, offset + len(content), line + len(units), len(content))

    def refresh(self, index: Index) -> Index:
        self.read, self.tails = [], []
        index.refresh(self.listing(), self.read_units, self.read_tail)
        return index


NOT_FIELDS = {"text", "seqs", "headings", "retired"}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    files = Files(tmp_path / "memory")
    files.put(
        "topics/maya-work.md",
        {"seqs": [41], "text": "Maya joined Nordlys as a staff engineer.", "time": "2026-05-01", "source": "user"},
        {"seqs": [43, 44], "text": "She reports to Ines in Bergen.", "time": "2026-05-01", "source": "Ines",
         "headings": ["Maya's work", "Employers"]},
    )  # fmt: skip
    files.put("topics/garden.md", {"seqs": [7], "text": "The plum tree was planted by the fence.", "ns": "home"})
    files.put("CURRENT.md", {"seqs": [50], "text": "The ferry to Bergen leaves at nine."})
    return files


def found(index: Index, query: str, **filter: object) -> list[tuple[int, ...]]:
    return [hit.seqs for hit in index.search(query, 10, Filter(**filter))]  # type: ignore[arg-type]


def test_entries_of_documents_and_of_the_buffer_are_found_with_their_place(files: Files) -> None:
    index = files.refresh(Index(files.root))
    (hit,) = index.search("who planted plum trees?")
    assert (hit.topic, hit.line, hit.seqs) == ("garden", 1, (7,))
    assert found(index, "Bergen ferry")[0] == (50,)
    assert set(found(index, "Bergen")) == {(50,), (43, 44)}
    assert found(index, "employers") == [(43, 44)], "headings are words"
    assert not index.missing("any employers?")
    assert found(index, "zeppelin") == []
    assert found(index, "") == found(index, "who is it?") == []


def test_only_what_changed_is_read_again(files: Files) -> None:
    index = files.refresh(Index(files.root))
    assert sorted(files.read) == ["CURRENT.md", "topics/garden.md", "topics/maya-work.md"]
    assert files.refresh(index) and files.read == []
    files.put("topics/garden.md", {"seqs": [7], "text": "The plum tree was felled."})
    fresh = files.refresh(Index(files.root))
    assert files.read == ["topics/garden.md"]
    for known in (fresh, files.refresh(index)):
        assert found(known, "felled plum") == [(7,)] and found(known, "planted") == []
    (files.root / "topics/garden.md").unlink()
    assert found(files.refresh(index), "plum") == [] and files.read == []


def test_a_save_within_the_clock_tick_of_the_last_one_is_seen(files: Files) -> None:
    path = files.root / "topics/garden.md"
    path.write_text('{"seqs": [7], "text": "A plum tree."}\n')
    status = path.stat()
    index = files.refresh(Index(files.root))
    path.write_text('{"seqs": [7], "text": "A pear tree."}\n')
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    listing = files.listing()
    listing["topics/garden.md"] = FileState(*status[6:7], status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    index.refresh(listing, files.read_units, files.read_tail)
    assert found(index, "pear") == [(7,)]


def test_a_buffer_that_grew_costs_what_it_grew_by(files: Files) -> None:
    index = files.refresh(Index(files.root))
    end = (files.root / "CURRENT.md").stat().st_size
    files.append("CURRENT.md", {"seqs": [51], "text": "The tram is late."})
    assert found(files.refresh(index), "late tram") == [(51,)]
    assert files.read == [] and files.tails == [("CURRENT.md", end, 2)]
    assert index.locate(51) == index.search("tram")[0].unit and index.locate(51).line == 2  # type: ignore[union-attr]
    files.put("CURRENT.md", {"seqs": [51], "text": "The tram is late, says someone by hand, at length."})
    assert found(files.refresh(index), "ferry") == [] and files.read == ["CURRENT.md"]


def test_an_edit_before_the_end_is_no_growth(files: Files) -> None:
    index = files.refresh(Index(files.root))
    content = (files.root / "CURRENT.md").read_text().replace("ferry", "train")
    (files.root / "CURRENT.md").write_text(content + '{"seqs": [51], "text": "More."}\n')
    assert found(files.refresh(index), "train") == [(50,)] and found(index, "ferry") == []


def test_where_a_seq_stands(files: Files) -> None:
    index = files.refresh(Index(files.root))
    assert index.locate(44).topic == "maya-work" and index.locate(50).topic == "CURRENT"  # type: ignore[union-attr]
    assert index.locate(42) is None


def test_catalog_and_similar_topics(files: Files) -> None:
    files.put("topics/guest.md", {"text": "Engineers at Nordlys like plum cake."})
    index = files.refresh(Index(files.root))
    rows = {row.topic: row for row in index.catalog()}
    assert list(rows) == ["CURRENT", "garden", "guest", "maya-work"]
    assert rows["maya-work"].entries == 2 and rows["guest"].guest and rows["guest"].entries == 0
    assert Index(files.root).catalog() == [] and files.refresh(Index(files.root)).catalog() == index.catalog()
    (match,) = index.similar("An engineer at Nordlys asked about Bergen.", 3)
    assert match.topic == "maya-work" and match.score > 0
    told = [record.unit for record in index.like("An engineer at Nordlys asked about Bergen.")]
    assert [unit.seqs for unit in told if unit.topic == "maya-work"] == [(41,), (43, 44)]
    assert index.similar("zeppelin") == index.similar("") == []


def test_missing_says_whether_any_content_word_occurs(files: Files) -> None:
    index = files.refresh(Index(files.root))
    assert not index.missing("What do you know about Nordlys?")
    assert index.missing("What kind of zeppelin do they fly?")
    assert index.missing("When was the zeppelin built in 2026?"), "that the year occurs is no answer"
    assert index.missing("who is it?") and index.missing("")


def test_filters_apply_before_ranking(files: Files) -> None:
    index = files.refresh(Index(files.root))
    assert found(index, "Bergen Maya plum", where=(("source", "Ines"),)) == [(43, 44)]
    assert found(index, "Bergen Maya plum", where=(("ns", "home"),)) == [(7,)]
    assert found(index, "Bergen Maya plum", topic="garden") == [(7,)]
    assert found(index, "Bergen", topic="CURRENT") == [(50,)]
    assert found(index, "Maya Bergen", since="2026-05", until="2026") == [(43, 44), (41,)]
    assert found(index, "Maya Bergen", since="2026-05-02") == []
    assert found(index, "Maya Bergen", until="2026-04") == []
    with pytest.raises(BadInput, match="no date"):
        found(index, "Maya", since="yesterday")


def test_a_filter_finds_what_ranks_behind_a_thousand_others(files: Files) -> None:
    files.put("topics/many.md", *({"seqs": [1000 + n], "text": "Bergen Bergen", "ns": "a"} for n in range(1000)))
    index = files.refresh(Index(files.root))
    assert found(index, "Bergen", where=(("source", "Ines"),)) == [(43, 44)]


def retired_library(files: Files) -> Index:
    files.put(
        "evidence/2026-05.md",
        {"seqs": [12], "text": "Maya works at Fjord Labs.", "time": "2025-09-01", "observed": "2026-01-03T10:00:00Z"},
        {"seqs": [41], "text": "Maya joined Nordlys as a staff engineer.", "time": "2026-05-01"},
        {"seqs": [12], "retired": "superseded", "retired_by": 41, "retired_at": "2026-05-02T08:00:00Z",
         "event": "retire"},
    )  # fmt: skip
    return files.refresh(Index(files.root))


def test_retired_entries_are_found_only_when_asked_for(files: Files) -> None:
    index = retired_library(files)
    assert found(index, "Fjord Labs") == []
    assert found(index, "Fjord Labs", retired=True) == [(12,)]
    hit = index.search("Fjord Labs", 1, Filter(retired=True))[0]
    assert (hit.unit.retired, hit.unit.get("retired_by"), hit.unit.line) == ("superseded", "41", 1)
    assert index.missing("Fjord")


def test_what_held_at_a_date_and_what_was_known_then(files: Files) -> None:
    index = retired_library(files)
    query = "where does Maya work, at Fjord or at Nordlys?"
    assert set(found(index, query, as_of="2026-03")) == {(12,), (7,), (50,)} & {(12,)}
    assert (12,) not in found(index, query, as_of="2026-05-02") and (41,) in found(index, query, as_of="2026-05")
    assert found(index, query, as_of="2025-01") == []
    assert (12,) in found(index, query, known_at="2026-05-01")
    assert (12,) not in found(index, query, known_at="2026-06")
    assert (12,) not in found(index, query, known_at="2026-01-02")


def test_evidence_is_looked_up_by_seq_and_not_searched(files: Files) -> None:
    index = retired_library(files)
    words, event = index.evidence(12)
    assert (words.path, words.line, words.text) == ("evidence/2026-05.md", 1, "Maya works at Fjord Labs.")
    assert event.get("event") == "retire" and event.line == 3
    assert found(index, "Maya staff engineer") == [(41,), (43, 44)]
    assert [row.topic for row in index.catalog()] == ["CURRENT", "garden", "maya-work"]


def test_an_entry_that_stands_again_is_not_retired(files: Files) -> None:
    retired_library(files)
    files.append("CURRENT.md", {"seqs": [12], "text": "Maya works at Fjord Labs."})
    index = files.refresh(Index(files.root))
    assert [hit.unit.retired for hit in index.search("Fjord", 9, Filter(retired=True))] == [""]


def test_evidence_that_grew_is_read_from_where_it_ended(files: Files) -> None:
    index = retired_library(files)
    end = (files.root / "evidence/2026-05.md").stat().st_size
    event = {"seqs": [41], "retired": "deleted", "retired_at": "2026-05-03T08:00:00Z"}
    files.append("evidence/2026-05.md", event)
    files.put("topics/maya-work.md")
    files.refresh(index)
    assert files.tails == [("evidence/2026-05.md", end, 4)]
    assert found(index, "Nordlys") == [] and found(index, "Nordlys", retired=True) == [(41,)]


def test_rewritten_evidence_leaves_no_word_behind(files: Files) -> None:
    retired_library(files)
    files.put("evidence/2026-06.md", {"seqs": [60], "text": "Something else."})
    index = files.refresh(Index(files.root))
    files.put("evidence/2026-05.md", {"seqs": [41], "text": "Maya joined Nordlys as a staff engineer."})
    files.refresh(index)
    assert index.evidence(12) == [] and found(index, "Fjord", retired=True) == []
    assert len(index.evidence(60)) == 1


def test_deleting_the_index_changes_nothing(files: Files) -> None:
    import shutil

    index = files.refresh(Index(files.root))
    before = index.search("Bergen")
    shutil.rmtree(files.root / ".infinimem")
    assert files.refresh(index).search("Bergen") == before
    assert (files.root / ".infinimem/index").is_dir()
    index.destroy()
    assert not list((files.root / ".infinimem/index").glob("*/*"))
    assert files.refresh(index).search("Bergen") == before


KINDS = [
    "meta.json",
    ".managed.json",
    "*.idx",
    "*.term",
    "*.store",
    "*.fast",
    "*.fieldnorm",
    "files-*",
    "catalog-*",
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", ["empty", "noise", "cut", "gone"])
def test_a_damaged_index_is_rebuilt(files: Files, damage: str, kind: str) -> None:
    before = files.refresh(Index(files.root)).search("Bergen")
    (place,) = (files.root / ".infinimem/index").glob("*.english")
    damaged = list(place.glob(kind))
    assert damaged
    for file in damaged:
        content = file.read_bytes()
        if damage == "gone":
            file.unlink()
        else:
            wrong = {"empty": b"", "noise": bytes(len(content)), "cut": content[: len(content) // 2]}
            file.write_bytes(wrong[damage])
    index = files.refresh(Index(files.root))
    assert (index.search("Bergen"), len(index.catalog())) == (before, 3)
    assert index.locate(44) is not None
    files.append("CURRENT.md", {"seqs": [51], "text": "Bergen again."})
    assert (51,) in found(files.refresh(Index(files.root)), "Bergen")
    assert not files.refresh(Index(files.root)).stats().in_memory


def test_an_index_of_another_version_is_rebuilt(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    files.refresh(Index(files.root))
    monkeypatch.setattr("infinimem.search.shelf.VERSION", 99)
    assert found(files.refresh(Index(files.root)), "Bergen") and len(files.read) == 3
    (place,) = (path for path in (files.root / ".infinimem/index").iterdir() if path.is_dir())
    assert place.name.startswith("99.")


def test_a_folder_that_cannot_be_written_is_searched_in_memory(files: Files) -> None:
    (files.root / ".infinimem").write_text("not a folder")
    index = files.refresh(Index(files.root))
    assert set(found(index, "Bergen")) == {(50,), (43, 44)} and index.stats().in_memory
    assert files.refresh(index) and files.read == [], "nothing is read twice for nothing"
    files.append("CURRENT.md", {"seqs": [51], "text": "Bergen again."})
    assert (51,) in found(files.refresh(index), "Bergen")


def test_while_another_process_writes_changes_are_read_over_what_is_there(files: Files) -> None:
    retired_library(files)
    files.put("topics/garden.md", {"seqs": [7], "text": "The plum tree was felled near Bergen."})
    files.put("topics/new.md", {"seqs": [8], "text": "Bergen is wet."})
    files.append("CURRENT.md", {"seqs": [51], "text": "Bergen again."})
    files.append("evidence/2026-05.md", {"seqs": [44], "text": "in Bergen"})
    with held(files.root / ".infinimem/index", 1):
        index = files.refresh(Index(files.root))
        assert set(found(index, "Bergen")) == {(50,), (43, 44), (7,), (8,), (51,)}
        assert found(index, "planted") == [] and index.locate(7).text.endswith("Bergen.")  # type: ignore[union-attr]
        assert len(index.evidence(44)) == 1 and len(index.evidence(12)) == 2
        assert [row.topic for row in index.catalog()] == ["CURRENT", "garden", "maya-work", "new"]
        over = index.search("Bergen")
    assert [hit.seqs for hit in files.refresh(index).search("Bergen")] == [hit.seqs for hit in over]
    assert not index.stats().in_memory
    rebuilt = files.refresh(Index(files.root))
    assert rebuilt.search("Bergen") == index.search("Bergen")


def test_scores_do_not_depend_on_how_the_index_came_about(files: Files) -> None:
    index = files.refresh(Index(files.root))
    for round in range(12):
        files.append("CURRENT.md", {"seqs": [60 + round], "text": f"Bergen has {round} trams."})
        files.put("topics/garden.md", {"seqs": [7], "text": f"The plum tree in Bergen, {round} years old."})
        files.refresh(index)
    grown = index.search("trams in Bergen", 20)
    index.destroy()
    assert files.refresh(Index(files.root)).search("trams in Bergen", 20) == grown


def test_any_text_can_be_indexed(files: Files) -> None:
    odd = ["\ud800 lone", "nul\0byte", "tab\tand\x0bvertical", "\u2028line", "x" * 100_000, "🦊" * 50, ""]
    files.put("topics/od\udcffd.md", *({"seqs": [100 + n], "text": text} for n, text in enumerate(odd)))
    index = files.refresh(Index(files.root))
    assert found(index, "lone") == [(100,)] and index.locate(102).text == odd[2]  # type: ignore[union-attr]
    assert index.search("lone")[0].unit.path == "topics/od\udcffd.md"
    assert len(files.refresh(Index(files.root)).catalog()) == 4


HELD = [
    (1, "zh", "梅雅五月份加入了北极光公司，担任高级工程师。"),
    (2, "zh", "她每个星期二在卑尔根的办公室上班。"),
    (3, "zh", "我们家的猫叫豆豆，喜欢睡在窗台上。"),
    (4, "zh", "爸爸对花生过敏，不能吃花生酱。"),
    (5, "zh", "2023年5月7日我们搬到了上海浦东。"),
    (6, "ja", "マヤさんは北極光社でエンジニアとして働いています。"),
    (7, "ja", "京都の祖母の家には大きな柿の木がある。"),
    (8, "ja", "来週の水曜日に歯医者の予約があります。"),
    (9, "ja", "うちの犬はポチという名前で、散歩が大好きです。"),
    (10, "ja", "パスワードは金庫の中の赤いノートに書いてある。"),
]


@pytest.mark.parametrize(
    ("query", "seq"),
    [
        ("谁加入了北极光公司？", 1),
        ("星期二她在哪里上班", 2),
        ("猫叫什么名字", 3),
        ("猫", 3),
        ("花生过敏", 4),
        ("什么时候搬到上海的？", 5),
        ("2023-05", 5),
        ("マヤさんの仕事は？", 6),
        ("祖母の家の木", 7),
        ("柿", 7),
        ("歯医者はいつ？", 8),
        ("犬の名前は何ですか", 9),
        ("ﾊﾟｽﾜｰﾄﾞはどこ？", 10),
    ],
)
def test_chinese_and_japanese_questions_find_their_entries(files: Files, query: str, seq: int) -> None:
    files.put("topics/asia.md", *({"seqs": [n], "text": text} for n, _, text in HELD))
    assert found(files.refresh(Index(files.root)), query)[0] == (seq,)


WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from tests.search.test_index import Files, Index
from pathlib import Path
files = Files.__new__(Files)
files.root, files.read, files.tails = Path(sys.argv[1]), [], []
for round in range(10_000):
    files.put("topics/busy.md", *({"seqs": [500 + n], "text": f"Bergen {round} {n}"} for n in range(200)))
    files.refresh(Index(files.root))
    print(round, flush=True)
"""


def start_writer(files: Files) -> subprocess.Popen[bytes]:
    here = Path(__file__).parents[2]
    command = [sys.executable, "-c", WRITER, str(files.root), str(here)]
    return subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE)


def test_readers_never_fail_while_another_process_writes(files: Files) -> None:
    writer = start_writer(files)
    assert writer.stdout is not None and writer.stdout.readline()
    try:
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            index = files.refresh(Index(files.root))
            assert (50,) in found(index, "ferry") and len(found(index, "Bergen")) == 10
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()


def test_a_killed_writer_leaves_a_usable_index(files: Files) -> None:
    for pause in (0.0, 0.007, 0.021):
        writer = start_writer(files)
        assert writer.stdout is not None and writer.stdout.readline()
        time.sleep(pause)
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        files.put("topics/busy.md", {"seqs": [500], "text": "All quiet in Bergen."})
        index = files.refresh(Index(files.root))
        assert set(found(index, "Bergen")) == {(50,), (43, 44), (500,)}
        assert not index.stats().in_memory


FULL = """
import resource, sys
sys.path.insert(0, sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
from tests.search.test_index import Files, Index, found
from pathlib import Path
files = Files.__new__(Files)
files.root, files.read, files.tails = Path(sys.argv[1]), [], []
index = files.refresh(Index(files.root))
print(sorted(found(index, "Bergen")), index.locate(7).line, len(index.catalog()), index.stats().in_memory)
"""


@pytest.mark.parametrize("room", [0, 40, 400, 3000])
def test_a_full_disk_is_searched_in_memory(files: Files, room: int) -> None:
    here = Path(__file__).parents[2]
    for round in range(2):
        command = [sys.executable, "-c", FULL, str(files.root), str(here), str(room)]
        told = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True).stdout
        assert told.startswith("[(43, 44), (50,)"), (round, told)
        files.append("CURRENT.md", {"seqs": [51 + round], "text": "The tram is late."})
    index = files.refresh(Index(files.root))
    assert len(index.search("late tram")) == 2 and not index.stats().in_memory
