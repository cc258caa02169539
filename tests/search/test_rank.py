"""The ranking on small pools: what lifts an entry, and what must not matter."""

from __future__ import annotations

import random

import pytest

from infinimem.model import Unit
from infinimem.search import rank
from infinimem.search.rank import Candidate, Sitting, Statistics, Weights, idf, names_source, read_question, score
from infinimem.search.records import describe, interval, restore


def entry(seq: int, text: str, **fields: str) -> Candidate:
    return describe(Unit("CURRENT.md", seq, seq, text, (seq,), (), tuple(fields.items())), "english").candidate


def scores(query: str, *pool: Candidate, units: int = 0) -> list[float]:
    question = read_question(query)
    holding = {term: sum(term in (*c.own, *c.signature) for c in pool) for term in question.terms}
    mean = sum(len(c.own) for c in pool) / max(1, len(pool))
    return score(question, pool, Statistics(units or len(pool), mean, holding))


def test_no_shared_word_no_score() -> None:
    assert scores("plum tree", entry(1, "Maya joined Nordlys."), entry(9, "A plum tree."))[0] == 0
    assert scores("plum") == scores("who is it?") == []
    assert scores("who is it?", entry(1, "who is it?")) == [0]


def test_a_library_of_one_or_two_entries_ranks_too() -> None:
    assert scores("plum", entry(1, "A plum tree."))[0] > 0
    first, second = scores("plum", entry(1, "A plum tree."), entry(5, "Plum, plum!"))
    assert 0 < first < second
    assert idf(10, 10) > 0 and idf(10, 1) > idf(10, 5) and idf(10, 0) == 0 and idf(2, 9) == idf(2, 2)


def test_frequencies_are_those_of_the_library_not_of_the_pool() -> None:
    question = read_question("plum ferry")
    pool = [entry(1, "plum"), entry(9, "ferry")]
    rare = score(question, pool, Statistics(1000, 5.0, {"plum": 900, "ferri": 3}))
    assert rare[1] > 5 * rare[0]


def test_an_answer_is_found_by_the_words_of_the_question_before_it() -> None:
    pool = [
        entry(4, "What did you plant by the fence?"),
        entry(5, "A plum tree, the old kind."),
        entry(6, "Lovely."),
        entry(40, "The fence is green."),
    ]
    asked, answer, after, other = scores("what was planted by the fence", *pool)
    assert asked > 0 and other > 0 and after == 0
    assert answer > other
    far = [pool[0], entry(15, "A plum tree, the old kind.")]
    assert scores("what was planted by the fence", *far)[1] == 0


REPLIED = (
    ("user", "I graduated with a degree in business. Which certificates suit me?"),
    ("AI", "A graduate with such a degree may like project management."),
)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("What degree did I graduate with?", "user"),
        ("Worin habe ich einen degree, graduate?", "user"),
        ("我 graduate degree", "user"),
        ("Which degree did you say I could add as a graduate?", "AI"),
        ("Which degree did we graduate with?", "AI"),
        ("degree of the graduate", "AI"),
        ("US degree of a graduate", "AI"),
    ],
)
def test_who_says_i_asks_for_their_own_words_not_for_the_reply_to_them(query: str, first: str) -> None:
    for replier in ("AI", "assistant"):
        pool = [entry(at, text, source=who.replace("AI", replier)) for at, (who, text) in enumerate(REPLIED, 1)]
        said, replied = scores(query, *pool)
        assert (said > replied) == (first == "user"), (query, said, replied)


def test_where_nobody_replies_as_a_machine_it_does_not_matter_who_asks() -> None:
    pool = [entry(at, text, source=f"agent:{who}") for at, (who, text) in enumerate(REPLIED, 1)]
    notes = [entry(1, "The degree is in law.", source="agent:claude"), entry(9, "A degree.", source="user")]
    for own in (pool, notes):
        assert scores("What degree did I graduate with?", *own) == scores("What degree did she graduate with?", *own)


def test_neighbours_count_within_a_sitting_only() -> None:
    def pair(first: dict[str, str], second: dict[str, str]) -> float:
        return scores("plum fence", entry(1, "A plum.", **first), entry(2, "The fence.", **second))[1]

    alone = scores("plum fence", entry(1, "A plum."), entry(20, "The fence."))[1]
    assert pair({}, {}) > alone
    assert pair({"time": "2026-05-01T08:00"}, {"time": "2026-05-01T23:00"}) > alone
    assert pair({"time": "2026-05-01"}, {"time": "2026-05-02"}) == pytest.approx(alone)
    near, late = {"observed": "2026-05-01T08:00:00Z"}, {"observed": "2026-05-01T09:30:00Z"}
    assert pair(near, near) > alone and pair(near, late) == pytest.approx(alone)
    assert pair({"ns": "work"}, {"ns": "home"}) == pytest.approx(alone)
    assert Sitting().joins(Sitting()) and not Sitting(space="a").joins(Sitting())


def test_the_source_that_a_question_names_is_preferred() -> None:
    maya, ines = scores(
        "What does Maya paint?",
        entry(1, "I paint boats.", source="Ines"),
        entry(9, "I paint boats.", source="Maya Lindqvist"),
    )[::-1]
    assert maya > ines
    question = read_question("Does the user of file notes like Zoë?")
    assert names_source(question, "zoe") and names_source(question, "ZOË Ek")
    assert not any(names_source(question, source) for source in ("user", "file:notes", "", "AI", "Zo"))


def test_when_questions_prefer_entries_that_say_when() -> None:
    plain, dated = entry(1, "We painted the fence once more."), entry(9, "We painted the fence last week.")
    when = scores("When was the fence painted?", plain, dated)
    how = scores("How was the fence painted?", plain, dated)
    assert when[1] / when[0] > how[1] / how[0]


def test_a_question_states_less_than_a_statement() -> None:
    asks, says = scores("plum tree", entry(1, "A plum tree?"), entry(9, "A plum tree."))
    assert asks < says


@pytest.mark.parametrize(
    ("text", "asks", "only_asks"),
    [
        ("How was Bergen? And the kiln?", True, True),
        ("“How was Bergen?” 🙂", True, True),
        ("ベルゲンはどうでしたか？", True, True),
        ("I moved to Bergen last week. Any tips for the tram?", True, False),
        ("Any tips? I moved to Bergen.", True, False),
        ("I moved to Bergen.", False, False),
    ],
)
def test_what_states_something_before_it_asks_does_not_only_ask(text: str, asks: bool, only_asks: bool) -> None:
    candidate = describe(Unit("topics/a.md", 1, 1, text), "english").candidate
    assert (candidate.asks, candidate.only_asks) == (asks, only_asks)


def test_where_and_in_what_order_entries_stand_does_not_matter() -> None:
    texts = ["Plum or pear?", "Plum.", "The fence.", "A ferry to Bergen.", "Plum trees by the fence."]
    pool = [entry(seq, text) for seq, text in enumerate(texts, 1)]
    expected = dict(zip(pool, scores("plum fence ferry", *pool), strict=True))
    shuffled = pool.copy()
    random.Random(5).shuffle(shuffled)
    assert dict(zip(shuffled, scores("plum fence ferry", *shuffled), strict=True)) == expected


def test_a_joined_line_has_the_neighbours_of_its_first_and_last_seq() -> None:
    joined = Candidate(("plum",), seqs=(2, 3, 7))
    alone = scores("plum fence ferri", joined, Candidate(("fenc",), seqs=(30,)), Candidate(("ferri",), seqs=(40,)))
    beside = scores("plum fence ferri", joined, Candidate(("fenc",), seqs=(1,)), Candidate(("ferri",), seqs=(8,)))
    assert beside[0] > alone[0]


@pytest.mark.parametrize(
    ("date", "first", "last"),
    [
        ("2026", 20260101000000000, 20261231235959999),
        ("2026-05", 20260501000000000, 20260531235959999),
        ("2026-05-01", 20260501000000000, 20260501235959999),
        ("2026-05-01T09:30", 20260501093000000, 20260501093059999),
        ("2026-05-01T09:30:12Z", 20260501093012000, 20260501093012999),
        ("2026-05-01 09:30:12.25", 20260501093012250, 20260501093012259),
        ("2026-05-01T00:30:12+02:00", 20260430223012000, 20260430223012999),
        ("2026-12-31T23:30-0100", 20270101003000000, 20270101003059999),
    ],
)
def test_a_partial_date_is_an_interval(date: str, first: int, last: int) -> None:
    assert interval(date) == (first, last)


@pytest.mark.parametrize("date", ["", "empty", "soon", "26-05-01", "2026-5", "20260501", "2026-05-011"])
def test_what_is_no_date_is_no_interval(date: str) -> None:
    assert interval(date) is None


def test_a_record_survives_being_stored() -> None:
    unit = Unit("topics/\udcff.md", 3, 5, "a\nb\x1f\ud800?", (3, 9), ("H", "x"), (("time", "2026"),), "expired")
    record = describe(unit, "english")
    assert restore(record.words, record.above, record.stored) == record


@pytest.mark.parametrize("seed", range(200))
def test_scores_are_those_of_rank_bm25_to_the_last_bit(seed: int) -> None:
    chance = random.Random(seed)
    terms = [f"t{number}" for number in range(chance.randint(1, 12))]
    counts = [
        {term: chance.choice((1.0, 2.0, 0.25, chance.random() * 5)) for term in terms if chance.random() < 0.4}
        for _ in range(chance.randint(1, 80))
    ]
    lengths = [chance.random() * 60 for _ in counts]
    holding = {term: chance.choice((0, 1, chance.randint(0, 10_000))) for term in terms}
    statistics = Statistics(chance.randint(1, 10_000), 11.3, holding)
    weights = Weights(k1=chance.choice((0.9, 1.5, chance.random() * 3)), b=chance.choice((0.3, 0.75, chance.random())))
    mean_length = 1 + chance.random() * 40
    given = (terms, counts, lengths, statistics, weights, mean_length)
    assert rank._bm25(*given) == rank._rank_bm25(*given)


def test_many_candidates_are_scored_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = [entry(seq, f"plum {'tree ' * (seq % 7)}{seq}") for seq in range(1, 60)]
    few = scores("plum tree", *pool)
    monkeypatch.setattr(rank, "FEW", 0)
    assert few == scores("plum tree", *pool) and len(set(few)) > 5
