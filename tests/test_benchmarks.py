"""What the benchmarks read, how they mark it, and that they run: files of the shapes that the data sets have."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conversations import read
from benchmarks.marks import exact, holds, locomo_f1, without_citations
from benchmarks.peers import fused
from benchmarks.plot import Series, series_of, svg
from benchmarks.scores import KS, interval, judge

ROOT = Path(__file__).resolve().parent.parent

LOCOMO = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ana",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ana", "dia_id": "D1:1", "text": "I moved to Bergen last week."},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "How is the new flat?", "blip_caption": "a flat"},
            {"speaker": "Ana", "dia_id": "D1:3", "text": "Small, but with a view of the harbour."},
        ],
        "session_2_date_time": "9:00 am on 1 June, 2023",
        "session_2": [{"speaker": "Ben", "dia_id": "D2:1", "text": "My sister bought a kiln for her pottery."}],
        "session_3_date_time": "9:00 am on 2 June, 2023",
        "session_3": [],
    },
    "qa": [
        {"question": "Where did Ana move?", "answer": "Bergen", "evidence": ["D1:1"], "category": 4},
        {"question": "What of the flat?", "answer": "small, view", "evidence": ["D1:2; D1:3", "D:9"], "category": 1},
        {"question": "Who bought a kiln?", "answer": "Ben's sister", "evidence": ["D2:1"], "category": 4},
        {"question": "Does Ben like Bergen?", "adversarial_answer": "yes", "evidence": ["D1:1"], "category": 5},
    ],
    "observation": {"session_1_observation": {"Ana": [["Ana moved to Bergen.", "D1:1"]]}},
}
TURNS = [
    [{"role": "user", "content": "I adopted a cat named Miso."}, {"role": "assistant", "content": "Lovely!"}],
    [{"role": "user", "content": "My commute takes 45 minutes.", "has_answer": True}],
]
LONGMEMEVAL = {
    "question_id": "q1",
    "question_type": "single-session-user",
    "question": "How long is my commute?",
    "answer": "45 minutes",
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_dates": ["2023/05/22 (Mon) 10:00", "2023/05/20 (Sat) 02:21"],
    "haystack_session_ids": ["s_b", "s_a"],
    "haystack_sessions": TURNS,
    "answer_session_ids": ["s_a"],
}
FACTS = {
    "context": "Here are facts:\n0. Ana is married to Bo.\n1. The capital of Fria is Lome.\n2. Bo lives in Lome.\n",
    "questions": ["What is the capital of Fria?", "Who is Ana married to?"],
    "answers": [["Lome"], ["Bo", "Bo X"]],
    "metadata": {"source": "factconsolidation_sh_6k", "qa_pair_ids": ["a", "b"], "haystack_sessions": None},
}


def saved(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    lines = content if name.endswith(".jsonl") and isinstance(content, list) else None
    text = "".join(json.dumps(row) + "\n" for row in lines) if lines is not None else json.dumps(content)
    path.write_text(text)
    return path


def test_locomo_by_turn_and_by_fact_with_malformed_evidence(tmp_path: Path) -> None:
    path = saved(tmp_path, "locomo.json", [LOCOMO])
    (talk,) = read(path)
    assert [len(session) for session in talk.sessions] == [3, 1]
    assert talk.turns[0].time == "2023-05-08T13:56"
    assert [sorted(question.evidence) for question in talk.questions] == [
        ["D1:1"],
        ["D1:2", "D1:3"],
        ["D2:1"],
        ["D1:1"],
    ]
    assert [question.answerable for question in talk.questions] == [True, True, True, False]
    (facts,) = read(path, "facts")
    assert [turn.text for turn in facts.turns] == ["Ana moved to Bergen."]


def test_longmemeval_sessions_in_order_of_time_and_abstention_without_evidence(tmp_path: Path) -> None:
    unanswered = {**LONGMEMEVAL, "question_id": "q1_abs"}
    one, other = read(saved(tmp_path, "longmemeval_s.json", [LONGMEMEVAL, unanswered]))
    assert one.turns[0].text == "My commute takes 45 minutes."
    assert one.questions[0].evidence == {"s_a:0"}
    assert one.questions[0].time == "2023-05-30T23:40"
    assert not other.questions[0].evidence and not other.questions[0].answerable


def test_the_shared_haystack_of_memory_arena(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "I ran 5 km.", "metadata": {"has_answer": True}}]
    saved(tmp_path, "sessions.jsonl", [{"id": "s1", "timestamp": "2023/05/20 (Sat) 02:21", "turns": turns}])
    truth = {"answer": "5 km", "supporting_session_ids": ["s1"], "valid_as_of": "2023/05/30 (Tue) 23:40"}
    saved(tmp_path, "questions.jsonl", [{"question": "How far?", "category": "temporal", "ground_truth": truth}])
    (talk,) = read(tmp_path)
    assert talk.questions[0].evidence == {"s1:0"}


@pytest.mark.parametrize("name", ["rows.json", "rows.jsonl"])
def test_memory_agent_bench_takes_a_passage_that_holds_an_answer_for_evidence(tmp_path: Path, name: str) -> None:
    (talk,) = read(saved(tmp_path, name, [FACTS]))
    assert [turn.text for turn in talk.turns][:2] == ["Ana is married to Bo.", "The capital of Fria is Lome."]
    assert [sorted(question.evidence) for question in talk.questions] == [["p1", "p2"], ["p0", "p2"]]
    assert all(question.any_of for question in talk.questions)


def test_memory_agent_bench_with_marked_turns(tmp_path: Path) -> None:
    about = {"source": "longmemeval_s*", "haystack_sessions": [TURNS, TURNS[:1]], "question_types": ["a", "b"]}
    row = {"context": "…", "questions": ["How long?", "Which cat?"], "answers": [["45"], ["Miso"]], "metadata": about}
    (talk,) = read(saved(tmp_path, "rows.json", [row]))
    assert len(talk.sessions) == 2
    assert [sorted(question.evidence) for question in talk.questions] == [["s1:0"], ["s0:0"]]
    assert [question.any_of for question in talk.questions] == [False, True]


def test_memory_agent_bench_with_dated_sessions_and_turns_that_no_question_names(tmp_path: Path) -> None:
    bare = [[{"role": turn["role"], "content": turn["content"]} for turn in session] for session in TURNS]
    other = [{"role": "user", "content": "Bees sleep at night.\u2028Ants do not."}]
    told = ["Chat Time: 2023/05/22 (Mon) 10:00", bare[0], "Chat Time: 2023/05/20 (Sat) 02:21", bare[1]]
    about = {
        "source": "longmemeval_s*",
        "haystack_sessions": [TURNS, TURNS[:1]],
        "question_types": ["user", "user"],
        "question_ids": ["q1", "q2_abs"],
        "question_dates": ["2023/05/30 (Tue) 23:40", "2023/05/30 (Tue) 23:40"],
    }
    row = {
        "context": repr([*told, "Chat Time: 2023/05/21 (Sun) 08:00", other]),
        "questions": ["How long?", "Which dog?"],
        "answers": [["45"], ["It was not said."]],
        "metadata": about,
    }
    path = tmp_path / "rows.json"  # JSON lines, as some write them under this name
    path.write_text(f"{json.dumps(row, ensure_ascii=False)}\n{json.dumps(FACTS)}\n", "utf-8")
    talk, facts = read(path)
    assert len(facts.questions) == 2
    times = ["2023-05-20T02:21", "2023-05-21T08:00", "2023-05-22T10:00"]
    assert [session[0].time for session in talk.sessions] == times
    assert talk.turns[1].text == other[0]["content"]
    first, second = talk.questions
    assert [turn.text for turn in talk.turns if turn.labels & first.evidence] == ["My commute takes 45 minutes."]
    assert first.time == "2023-05-30T23:40" and not first.any_of
    assert not second.answerable and not second.evidence and not second.any_of


def test_memory_agent_bench_keeps_its_documents_apart(tmp_path: Path) -> None:
    row = {**FACTS, "context": "Document 1:\nAna lives in Lome.\nShe bakes.\n\nDocument 2:\nBo sails.\n"}
    (talk,) = read(saved(tmp_path, "rows.json", [row]))
    assert [(turn.session, turn.text) for turn in talk.turns] == [
        ("Document 1", "Ana lives in Lome."),
        ("Document 1", "She bakes."),
        ("Document 2", "Bo sails."),
    ]


def test_a_long_paragraph_is_cut_where_a_sentence_ends(tmp_path: Path) -> None:
    row = {**FACTS, "context": "One sentence of some length. " * 100}
    (talk,) = read(saved(tmp_path, "rows.json", [row]))
    assert all(turn.text.endswith(".") and len(turn.text) <= 1200 for turn in talk.turns)
    assert " ".join(turn.text for turn in talk.turns) == row["context"].strip()


def test_recall_ndcg_and_all_evidence_by_hand() -> None:
    places = [frozenset({"x"}), frozenset({"a"}), frozenset({"a"}), frozenset({"b"})]
    at = dict(zip(KS, judge(places, frozenset({"a", "b"})), strict=True))
    assert at[1] == (0.0, 0.0, 0.0)
    assert at[3][0] == 0.5 and at[3][2] == 0.0
    assert at[5][0] == 1.0 and at[5][2] == 1.0
    assert round(at[5][1], 4) == round((0.63093 + 0.43068) / 1.63093, 4)
    assert dict(zip(KS, judge(places, frozenset({"a", "b"}), any_of=True), strict=True))[3] == (
        1.0,
        0.6309297535714575,
        1.0,
    )


def test_an_interval_holds_the_mean_and_is_the_same_each_time() -> None:
    values = [1.0] * 30 + [0.0] * 10
    low, high = interval(values, ["a"] * 20 + ["b"] * 20)
    assert low < 75 < high
    assert (low, high) == interval(values, ["a"] * 20 + ["b"] * 20)
    assert interval([1.0] * 5, ["a"] * 5) == (100.0, 100.0)


def test_fusion_prefers_what_both_rank_high() -> None:
    a, b, c = (frozenset({name}) for name in "abc")
    assert fused([[a, b, c], [b, c, a]])[0] == b


def test_marks_are_those_of_the_papers() -> None:
    assert locomo_f1("She went to the pottery workshops", ["pottery workshop"], "single-hop") == 2 * 2 / (5 + 2)
    assert locomo_f1("Paris, Rome", ["Rome, Oslo"], "multi-hop") == 0.5
    assert locomo_f1("yes", ["yes; she said so"], "open-domain") == 1.0
    assert exact("The harbour.", ["harbour"]) and not exact("the harbours", ["harbour"])
    assert holds("She said it was 45 minutes.", ["45 minutes"]) and not holds("145 minutes", ["45 minutes"])
    assert without_citations("In Bergen [maya-work:14].") == "In Bergen ."


def test_a_plot_names_each_line_and_says_each_point() -> None:
    rows: list[dict[str, Any]] = [
        {"tool": "search & find", "n": 100, "s": 0.2},
        {"tool": "search & find", "n": 1_000_000, "s": 0.3},
        {"tool": "other", "n": 100, "s": None},
        {"tool": "other", "n": 1000, "s": 5},
    ]
    lines = series_of(rows, "n", "s", ["tool"])
    assert [(line.name, len(line.points)) for line in lines] == [("search & find", 2), ("other", 1)]
    drawn = svg(lines, title="CPU", x="entries", y="seconds", log="xy")
    tree = ElementTree.fromstring(drawn)
    told = [element.text or "" for element in tree.iter() if element.tag.endswith(("text", "title"))]
    assert "search & find" in told and "other" in told and "search & find: 1,000,000, 0.3" in told
    heights = [float(found) for found in re.findall(r'<circle cx="[\d.]+" cy="([\d.]+)"', drawn)]
    assert all(0 < height < 440 for height in heights) and heights[2] < heights[1]


def test_a_logarithmic_axis_has_no_place_for_zero() -> None:
    with pytest.raises(ValueError, match="no place"):
        svg([Series("a", ((0.0, 1.0), (1.0, 2.0)))], log="x")


def test_recall_runs_and_writes_what_it_measured(tmp_path: Path) -> None:
    path = saved(tmp_path, "locomo.json", [LOCOMO, {**LOCOMO, "sample_id": "conv-2"}])
    out = tmp_path / "recall.json"
    command = [sys.executable, "benchmarks/recall.py", str(path), "--only", "ours", "--json", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    run = json.loads(out.read_text())
    rows = {(row["ranking"], row["level"], row["part"], row["k"]): row for row in run["results"]["curves"]}
    assert rows["infinimem, in CURRENT", "turn", "test", 5]["recall"] == 100.0
    assert rows["infinimem, in CURRENT", "session", "dev", 1]["recall"] == 100.0
    assert ("infinimem, flushed", "own block", "test", 5) in rows
    assert run["versions"]["infinimem"] and run["limits"] and str(tmp_path) not in out.read_text()


def test_what_a_user_asked_and_the_replies_to_it_are_looked_for(tmp_path: Path) -> None:
    talk = [
        {"role": "user", "content": f"I keep {animal}s. What should I feed my {animal} in winter?"}
        if number % 2 == 0
        else {"role": "assistant", "content": f"A {animal} likes {food} in winter."}
        for animal, food in (("goat", "hay"), ("hen", "maize"), ("bee", "syrup"))
        for number in range(2)
    ]
    path = saved(tmp_path, "longmemeval.json", [{**LONGMEMEVAL, "haystack_sessions": [talk, TURNS[1]]}])
    out = tmp_path / "recall.json"
    command = [sys.executable, "benchmarks/recall.py", str(path), "--only", "replies", "--json", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(out.read_text())["results"]["replies"]
    assert [row["questions"] for row in rows] == [3] * 4
    assert (
        rows[0]["recall@1"] == 100.0 and rows[1]["recall@5"] == rows[1]["recall@5 without what `I` asks for"] == 100.0
    )


def test_answers_of_the_bm25_reader_are_marked_and_those_without_an_answer_are_among_them(tmp_path: Path) -> None:
    path = saved(tmp_path, "locomo.json", [LOCOMO])
    out = tmp_path / "answers.json"
    command = [sys.executable, "benchmarks/answers.py", "--locomo", str(path), "--questions", "3", "--json", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (row,) = json.loads(out.read_text())["results"]
    assert row["questions"] == 3 and row["unanswerable"] == 1
    assert row["evidence"] == 100.0 and row["calls"] == 0


def test_answers_of_the_first_sessions_are_asked_of_what_they_say(tmp_path: Path) -> None:
    path, out, work = saved(tmp_path, "locomo.json", [LOCOMO]), tmp_path / "answers.json", tmp_path / "work"
    command = [sys.executable, "benchmarks/answers.py", "--locomo", str(path), "--sessions", "1", "--json", str(out)]
    command += ["--maintenance", "current,flush", "--work", str(work), "--settings", "split.max_tokens=600"]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *more], cwd=ROOT, capture_output=True, text=True, check=False)

    done = run()
    assert done.returncode == 0, done.stderr
    told = json.loads(out.read_text())
    current, flush = told["results"]
    asked = ["Where did Ana move?", "What of the flat?", "Does Ben like Bergen?"]
    assert sorted(mark["question"] for mark in current["marks"]) == sorted(asked)
    assert current["evidence"] == flush["evidence"] == 100.0 and current["unanswerable"] == 1
    (row,) = told["settings"]["flushed"]
    assert row["maintenance"] == "flush" and row["entries"] == 3 and row["steps"]["extend executed"]
    topics = {path: path.stat().st_mtime_ns for path in (work / "flush" / "conv-1").rglob("*.md")}
    assert any(path.name not in ("CURRENT.md", "ROOT.md") for path in topics)

    assert run("--reader", "bm25").returncode == 0
    assert json.loads(out.read_text())["settings"]["flushed"] == [row]
    assert topics == {path: path.stat().st_mtime_ns for path in topics}
    other = run("--sessions", "2")
    assert other.returncode != 0 and "give another --work" in other.stderr


def test_answers_that_a_run_cut_off_had_are_not_asked_for_again(tmp_path: Path) -> None:
    path, keep, out = saved(tmp_path, "locomo.json", [LOCOMO]), tmp_path / "keep.jsonl", tmp_path / "answers.json"
    command = [sys.executable, "benchmarks/answers.py", "--locomo", str(path), "--keep", str(keep), "--json", str(out)]

    def run() -> tuple[list[dict[str, object]], int]:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        (row,) = json.loads(out.read_text())["results"]
        return row["marks"], done.stdout.count("expected: ")

    marks, asked = run()
    assert asked == len(marks) == 4
    assert run() == (marks, 0)
    keep.write_text(keep.read_text()[:-40])
    again, asked = run()
    assert asked == 1 and [mark["question"] for mark in again] == [mark["question"] for mark in marks]
    assert run() == (again, 0)


def test_a_small_world_of_changing_facts_is_kept_right_by_a_perfect_judge_alone(tmp_path: Path) -> None:
    out = tmp_path / "revision.json"
    command = [sys.executable, "benchmarks/revision.py", "--tokens", "800", "--asked", "10", "--json", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = {row["maintenance"]: row for row in json.loads(out.read_text())["results"]}
    assert rows["judged"]["stale"] == 0 and rows["judged"]["missing"] == 0 and rows["judged"]["controls_lost"] == 0
    assert rows["lexical"]["stale"] == rows["current"]["stale"] > 0 and rows["lexical"]["missing"] == 0
    assert all(row["readers"]["bm25"]["1 hops"]["newest"] == 10 for row in rows.values())
