"""What a word is: pairs of texts that must meet, texts that must not, and laws for any text at all."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infinimem.text import words
from infinimem.text.words import (
    analyse,
    content_words,
    date_terms,
    fold,
    is_date_term,
    query_words,
    says_when,
)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Maya's moving to the moved movers", ["maya", "move", "move", "mover"]),
        ("We don’t, can't and WON'T; I’ve it's they'll", []),
        ("café Cafés CAFE\u0301", ["cafe", "cafe", "cafe"]),
        ("O'Brien", ["brien", "obrien"]),
        ("wi-fi WiFi wifi", ["wi", "fi", "wifi", "wifi", "wi", "fi", "wifi"]),
        ("getUserName", ["getusernam", "user", "name"]),
        ("snake_case", ["snake", "case", "snakecas"]),
        ("HTTPServer TVs", ["httpserver", "http", "server", "tv"]),
        ("COVID-19 covid19", ["covid", "19", "covid19", "covid19", "covid", "19"]),
        ("2nd two 2 02", ["2", "2", "2", "2"]),
        ("1,000 1000 1000.0 $1,000.50", ["1000", "1000", "1000", "1000.5"]),
        ("192.168.1.1", ["192", "168", "1", "1", "192.168.1.1"]),
        ("ＡＢＣ １２", ["abc", "12"]),
        ("東京で", ["東京", "京で", "東", "京"]),
        ("猫 AI助手", ["猫", "ai", "助手", "助", "手"]),
        ("서울에서", ["서울", "울에", "에서"]),
        ("Straße STRASSE", ["strass", "strass"]),
        ("мы живём, Москва", ["жив", "москв"]),
        ("مُحَمَّد محمد", ["محمد", "محمد"]),
        ("naïve\u00adly", ["naiv"]),
        ("\ud800x\udfff \x00", ["x"]),
        ("🦊 — … !", []),
    ],
)
def test_the_terms_of_a_text(text: str, terms: list[str]) -> None:
    assert analyse(text) == terms


@pytest.mark.parametrize(
    "spelling",
    [
        "7 May 2023",
        "May 7, 2023",
        "May 7th 2023",
        "the 7th of May, 2023",
        "2023-05-07",
        "2023/5/7",
        "7.5.2023",
        "2023-05-07T09:30:00Z",
        "2023年5月7日",
        "2023년 5월 7일",
        "7 мая 2023 г.",
        "7. Mai 2023",
        "7 de mayo de 2023",
        "1:56 pm on 7 May, 2023",
    ],
)
def test_every_way_to_write_a_date_holds_its_day_month_and_year(spelling: str) -> None:
    assert {"y2023", "m05", "ym2023-05", "md05-07", "d2023-05-07"} <= set(analyse(f"we met ({spelling})."))
    assert {"y2023", "m05", "ym2023-05"} <= set(analyse("in May 2023"))


def test_partial_dates_and_dates_that_are_none() -> None:
    assert date_terms("2023") == ["y2023"]
    assert date_terms("2023-05") == ["y2023", "m05", "ym2023-05"]
    assert date_terms("2023-05-07T13:56")[-1] == "d2023-05-07"
    assert date_terms("") == date_terms("soon") == date_terms("empty") == []
    assert all(map(is_date_term, date_terms("2023-05-07"))) and not is_date_term("may")
    assert analyse("I may march in April") == ["march", "april", "m04"]
    assert "m03" in analyse("since March") and "m05" in analyse("in May")
    assert set(analyse("07/05/2023")) >= {"d2023-05-07", "d2023-07-05"}
    assert {term for term in analyse("13.13.1213 2023-13-45x 12-34") if is_date_term(term)} == {"y1213", "y2023"}


def test_questions_keep_what_they_ask_about() -> None:
    assert query_words("When did Caroline go to the support group? Caroline!") == ["carolin", "support", "group"]
    assert query_words("黒猫") == ["黒猫"] and query_words("猫") == ["猫"]
    assert content_words("Tell me, what kind of zeppelin is it?") == ["zeppelin"]
    assert content_words("who is it?") == []


def test_says_when() -> None:
    assert says_when(analyse("We went there last Friday.")) and says_when(analyse("昨日、京都で"))
    assert says_when(analyse("It was in 2021")) and says_when(analyse("on 3 May"))
    assert not says_when(analyse("I like the colour of it."))


def test_the_library_s_language_rules_latin_script_and_scripts_rule_themselves() -> None:
    assert analyse("die Häuser und Straßen", "german") == ["haus", "strass"]
    assert analyse("les chevaux", "french") == ["cheval"]
    assert analyse("в Москве", "german") == ["москв"]
    assert analyse("the houses", "none") == ["the", "houses"], "a language without rules keeps every word"
    assert fold("Ångström ŁÓDŹ Æ") == "angstrom lodz ae"


@given(st.text(st.characters(exclude_categories=()), max_size=60))
def test_any_text_has_terms_that_survive_a_tokeniser_at_white_space(text: str) -> None:
    for term in [*analyse(text), *query_words(text), *content_words(text), *date_terms(text)]:
        assert term.split() == [term] and len(term) <= 100
        term.encode()
    fold(text)


@given(st.lists(st.sampled_from(["7", "May", "2023", "n't", "’s", "年", "é", "\u0301", "-", ".", "한", "ﷺ", "½"])))
def test_pieces_of_dates_and_contractions_in_any_order(pieces: list[str]) -> None:
    for text in ("".join(pieces), " ".join(pieces)):
        assert analyse(text) == analyse(text)
        assert all(term.split() == [term] for term in analyse(text))


@pytest.mark.parametrize("unit", ["a", "a'", "1", "1,", "May ", "2023-", "年", "a n't", "é", "aB", "_", "1:"])
def test_time_grows_with_the_text_alone(unit: str) -> None:
    started = time.process_time()
    analyse(unit * (300_000 // len(unit)))
    assert time.process_time() - started < 4


def test_the_memory_of_spellings_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_REMEMBERED", 10)
    monkeypatch.setattr(words, "_memories", {})
    for number in range(100):
        analyse(f"word{number}")
    assert len(words._memories["english"]) <= 10


def test_importing_it_loads_nothing_heavy() -> None:
    code = "import sys, infinimem.text.words; print([m for m in ('numpy', 're2', 'Stemmer') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
