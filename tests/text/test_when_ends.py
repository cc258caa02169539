"""When a date is over: one rule, for a flush that retires, for marks on what is shown, and for every past date."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infinimem.consolidate.expiry import age_of, has_expired
from infinimem.model import Unit
from infinimem.search.records import interval, is_about_a_date, is_over, last_moment, moment_of
from infinimem.text.when import end_of, is_past

MAY = datetime(2026, 5, 1, 9, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("date", "end"),
    [
        ("2026", "2026-12-31T23:59:59.999999+00:00"),
        ("2024-02", "2024-02-29T23:59:59.999999+00:00"),
        ("2026-05-01", "2026-05-01T23:59:59.999999+00:00"),
        ("2026-05-01T09:30", "2026-05-01T09:30:59.999999+00:00"),
        ("2026-05-01 09:30Z", "2026-05-01T09:30:59.999999+00:00"),
        ("2026-05-01T09:30:00", "2026-05-01T09:30:00.999999+00:00"),
        ("2026-05-01T09:30:00.25Z", "2026-05-01T09:30:00.250000+00:00"),
        ("2026-05-01T09:30+02:00", "2026-05-01T09:30:59.999999+02:00"),
        ("", ""),
        ("soon", ""),
        ("2026-13", ""),
        ("2026-05-01 or later", ""),
        ("2026-02-30", ""),
    ],
)
def test_a_date_ends_with_all_that_it_leaves_open(date: str, end: str) -> None:
    found = end_of(date)
    assert (found.isoformat() if found else "") == end


def dates() -> st.SearchStrategy[str]:
    """ISO dates of every length about one day, and what is none."""
    moments = st.integers(-4000, 4000).map(lambda minutes: MAY + timedelta(minutes=minutes, seconds=minutes % 60))
    lengths = st.sampled_from([4, 7, 10, 16, 19])
    whole = st.builds(lambda moment, length: moment.isoformat()[:length], moments, lengths)
    zones = st.sampled_from(["", "Z", "+02:00"])
    zoned = st.builds(lambda date, zone: date + zone if len(date) > 10 else date, whole, zones)
    return zoned | st.sampled_from(["soon", "2026-99", "2026-05-01 or so", ""])


@given(dates(), st.integers(-5000, 5000), st.integers(0, 59))
def test_what_a_flush_would_retire_is_what_is_marked(date: str, minutes: int, seconds: int) -> None:
    now = MAY + timedelta(minutes=minutes, seconds=seconds)
    unit = Unit("topics/a.md", 1, 1, "The code is 7.", (1,), fields=(("expires", date),))
    assert is_over(unit, moment_of(now)) == has_expired(unit.fields, now, ()) == is_past(date, now)
    end = end_of(date)
    if end is not None:
        found = interval(date)
        assert found is not None
        assert last_moment(unit) == moment_of(end)
        assert is_past(date, now) == (found[1] < moment_of(now))  # as every past date is told


def test_to_the_minute_where_a_date_names_no_seconds() -> None:
    unit = Unit("topics/a.md", 1, 1, "The code is 7.", (1,), fields=(("expires", "2026-05-01T09:30"),))
    during, after = MAY + timedelta(seconds=59), MAY + timedelta(seconds=60)
    assert [has_expired(unit.fields, now, ()) for now in (during, after)] == [False, True]
    assert [is_over(unit, moment_of(now)) for now in (during, after)] == [False, True]


def test_age_counts_from_the_end_of_what_is_said_of_its_time() -> None:
    assert age_of({"observed": "2026-05-01T09:30:00Z"}, MAY + timedelta(seconds=11)) == pytest.approx(10, abs=1)
    assert age_of({"time": "2026-04"}, datetime(2026, 5, 1, 1, tzinfo=UTC)) == pytest.approx(3600, abs=1)
    assert age_of({"source": "user"}, MAY) < 0
    assert age_of({"time": "2027"}, MAY) < 0


@pytest.mark.parametrize(
    ("text", "time", "is_one"),
    [
        ("The dentist is on 3 May 2026.", "", True),
        ("The stand-up is at ten.", "", False),
        ("The stand-up is at ten.", "2026-06-01", True),  # told ahead
        ("The stand-up is at ten.", "2026-05-01", False),  # of today
        ("The stand-up is at ten.", "2026-05-01T09:31", True),
        ("The stand-up is at ten.", "2026-04", False),
        ("The stand-up is at ten.", "soon", False),
        ("Maya joined in May 2024.", "2024-05", True),
        ("Maya has 2026 books.", "", True),  # a year, as far as words tell
    ],
)
def test_what_is_about_a_date(text: str, time: str, is_one: bool) -> None:
    assert is_about_a_date(text, time, moment_of(MAY)) == is_one
