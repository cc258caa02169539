"""What `check` does not keep of a large library has nothing wrong: it finds the same as when it looks at everything."""

from __future__ import annotations

import random
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from infinimem import Library, sound
from infinimem.check import Finding, preview
from infinimem.model import Create, Extend, Join, Link, Retire
from infinimem.plan.desk import set_header
from infinimem.plan.paper import Plan
from infinimem.store.evidence import Record, all_records, read_records
from infinimem.text.document import body_tokens, parse, render
from tests.conftest import NIGHTLY
from tests.hand.test_ways import before  # noqa: F401 - a fixture
from tests.hand.ways import WAYS, Way

NOW = datetime(2026, 5, 1, 9, tzinfo=UTC)
ROUNDS = 400 if NIGHTLY else 40
ODD_LINES = (
    "- typed by hand\n",
    "A paragraph about 3 May.\n",
    "- <seq=3, source=user> other words\n",
    "- <seq=77, links=1:from+nowhere> new\n",
    "- <seq=78, supersedes=9, time=soon> new\n",
    "1. <seq=5, source=user> broken\n",
    "  - <seq=6> nested\n",
    "# <seq=2> as a heading\n",
    "My password is hunter22xy\n",
    "- <event=retire, seq=4, by=8, why=superseded, at=2026-04-01T00:00:00Z>\n",
    "- <event=forget, seq=7, at=2026-04-01T00:00:00Z>\n",
    "```\n",
    "<<<<<<< HEAD\n",
    "- <seq=12-13, source=user> joined by hand\n",
    "\n",
    "  more of it\n",
    "- <seq=007, source=user> padded\n",
    "- <seq=0010> padded\n",
    "- <seq=5, rev=2, at=2026-04-01T00:00:00Z> reworded\n",
    "-  <seq=90, source=user> two spaces\n",
    "* <seq=91, source=user> a star\n",
    "- \\<seq=92, source=user> escaped\n",
    "- <seq=93,source=user> without a space\n",
    "  - <seq=94, source=user> indented\n",
    "\t- <seq=95, source=user> behind a tab\n",
    "      - <seq=1-3, source=user> far in\n",
    "   * <event=forget, seq=2, at=2026-04-01T00:00:00Z>\n",
    "- <seq=4+6, source=user> joined by hand\n",
    "- <event=retire, seq=002, by=003, why=superseded, at=2026-04-01T00:00:00Z>\n",
    '- <seq="8", source=user> in quotes\n',
    "- <source=user, seq=11> the seq last\n",
    "<!-- - <seq=97> in a comment -->\n",
    "- <seq=98> has secret=ok and links=5\n",
    "- <seq=99, secret=ok> password: hunter22xy\n",
)


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six topics: entries of several lines, joined, replaced and linked ones, and two that wait."""
    root = tmp_path_factory.mktemp("varied") / "memory"
    library = Library.open(root, create=True, clock=lambda: NOW)
    library.write(
        [f"Ines saw boat {number}.{chr(10) + 'It was red.' if number % 4 == 0 else ''}" for number in range(24)]
    )
    steps = [
        step
        for number in range(6)
        for step in (
            Create(f"boats/{number}", f"Boats {number}"),
            Extend(f"boats/{number}", "", tuple(range(4 * number + 1, 4 * number + 5))),
        )
    ]
    library.flush(plan=Plan(tuple(steps)))
    library.write(["Ines saw no boat.", "The key is in the box."])
    library.write("Ines saw boat 8, which is blue.", supersedes=9)
    library.flush(plan=Plan((Retire(9, 27, "superseded"), Extend("boats/2", "", (27,)), Link("27", "1", "supports"))))
    library.flush(plan=Plan((Join((17, 18), "Ines saw boat 16, and boat 17. It was red."),)))
    assert sum(path.stat().st_size for path in (root / "topics").rglob("*.md")) > 0
    return root


def both_ways(root: Path) -> tuple[list[Finding], str, sound.Sound]:
    """What `check` finds and would change, the same whether or not it keeps everything in memory."""
    whole = preview(root, NOW, 1 << 60)
    assert preview(root, NOW, 0) == whole
    return *whole, sound.look_through(root, 0)


def test_most_of_a_library_is_sound(varied: Path) -> None:
    findings, diff, found = both_ways(varied)
    assert (findings, diff) == ([], "")
    assert len(found.paths) >= 3 and 5 in found.seqs and 9 in found.odd


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_every_way_of_hands_is_found_the_same(
    before: Path,  # noqa: F811
    tmp_path: Path,
    way: Way,
) -> None:
    root = tmp_path / "memory"
    shutil.copytree(before, root, symlinks=True)
    way.edit(root)
    both_ways(root)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_any_damage_is_found_the_same(varied: Path, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    root = tmp_path / "memory"
    shutil.copytree(varied, root)
    files = sorted([*(root / "topics").rglob("*.md"), *(root / "evidence").iterdir(), root / "CURRENT.md"])
    for _ in range(chance.randint(1, 4)):
        damage(chance, chance.choice(files), chance.choice(files))
    both_ways(root)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_what_evidence_says_of_a_seq_is_the_same_looked_for_and_read_whole(
    varied: Path, tmp_path: Path, seed: int
) -> None:
    """Indented, padded, quoted, far from how we write it: what counts is what a reader of the whole file sees."""
    chance = random.Random(seed)
    root = tmp_path / "memory"
    shutil.copytree(varied, root)
    [path] = (root / "evidence").iterdir()
    for _ in range(chance.randint(1, 4)):
        damage(chance, path, path)
    path.write_text(path.read_text().replace("```", "..."), newline="")  # a fence around items: nobody looks for one
    if b"\r" in path.read_bytes():
        return
    whole = all_records(root)
    for wanted in ([chance.randint(1, 28)], range(1, 100)):
        found = {seq: one for seq, one in read_records(root, wanted).items() if one.entries or one.events}
        assert sorted(map(told, found.values())) == sorted(told(one) for seq, one in whole.items() if seq in wanted)


def told(record: Record) -> str:
    """What evidence says of a seq, and where; under which heading makes no difference."""
    entries = [(path, entry.signature, entry.text, entry.span) for path, entry in record.entries]
    return repr((record.seq, entries, record.events))


def test_a_line_that_two_sound_looking_topics_show_is_found(varied: Path, tmp_path: Path) -> None:
    root = tmp_path / "memory"
    shutil.copytree(varied, root)
    line = next(line for line in (root / "topics/boats/1.md").read_text().splitlines() if "<seq=6," in line)
    path = root / "topics/boats/3.md"
    document = parse("topics/boats/3.md", (path.read_text() + line + "\n").encode())
    path.write_bytes(render(set_header(document, "token_count", str(body_tokens(document)))))
    findings, _, _ = both_ways(root)
    assert [finding.problem.code for finding in findings] == ["doubled"]


def damage(chance: random.Random, file: Path, other: Path) -> None:
    """Something that a hand, an editor or a merge does to a file."""
    lines = file.read_text().splitlines(keepends=True)
    at = chance.randrange(len(lines) + 1) if lines else 0
    match chance.randrange(8):
        case 0:
            lines[at : at + 1] = []
        case 1:
            lines.insert(at, chance.choice(ODD_LINES))
        case 2:
            theirs = other.read_text().splitlines(keepends=True)
            lines.insert(at, chance.choice(theirs or ["\n"]))
        case 3 if lines:
            at = min(at, len(lines) - 1)
            place = chance.randrange(len(lines[at]))
            lines[at] = lines[at][:place] + chance.choice("x<>,=- \n\r\t\"'ß\u00a0") + lines[at][place + 1 :]
        case 4:
            chance.shuffle(lines)
        case 5 if lines:
            at = min(at, len(lines) - 1)
            lines[at] = chance.choice(("  ", "\t", "    ", " ")) + lines[at]
        case 6:
            zeros = chance.choice(("0", "00"))
            lines = [re.sub(r"seq=(?=\d)", f"seq={zeros}", one) if chance.random() < 0.2 else one for one in lines]
        case _:
            lines = [line.replace("boat", chance.choice(("boat", "ship")), 1) for line in lines]
    file.write_text("".join(lines), newline="")
