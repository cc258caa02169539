"""What dates a text can mean, said at a known time: `yesterday`, `vor drei Tagen`, `le 3 mai`, `上周`.

To check a date that somebody else worked out a doubtful word allows all that it may mean (`is_said`); what is shown
beside a text is what it can hardly not mean (`dates_meant`), for people a little more (`dates_shown`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache

from infinimem.text.words import analyse, date_terms

Days = tuple[date, date]
"""The first and the last day of a period."""

TIME_OF_DAY = r"[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?"
ISO = re.compile(rf"(?!0000)(\d{{4}})(?:-(\d\d)(?:-(\d\d)(?:{TIME_OF_DAY})?)?)?", re.ASCII)
TIME_OF_DAY_PARTS = re.compile(r"[T ]\d\d:\d\d(:\d\d(\.\d+)?)?", re.ASCII)
WORD = re.compile(r"\w+")
ROUGHLY = timedelta(days=20)
"""Periods shorter than this are named for one day in them (`last week`); who names a longer one knows no day."""


def period(time: str) -> Days | None:
    """The days of an ISO date, possibly partial or with a time of day; None if it is none."""
    found = ISO.fullmatch(time)
    if found is None:
        return None
    year, month, day = (int(part) if part else 0 for part in found.groups())
    try:
        if len(time) > len("2026-05-01"):
            datetime.fromisoformat(time.replace(" ", "T", 1))
        if day:
            return date(year, month, day), date(year, month, day)
        return month_of(year, month) if month else (date(year, 1, 1), date(year, 12, 31))
    except ValueError:
        return None


def end_of(date: str) -> datetime | None:
    """The last moment of an ISO date, possibly partial, in UTC where it names no zone; None if it is none.

    What it leaves open lies before its end: of a month the last day, of 09:30 the last second.
    """
    days = period(date)
    if days is None:
        return None
    if len(date) <= len("2026-05-01"):
        return datetime.combine(days[1], time.max, UTC)
    clock = TIME_OF_DAY_PARTS.search(date)
    assert clock is not None
    moment = datetime.fromisoformat(date)
    if not clock[2]:
        moment = moment.replace(microsecond=999_999, second=moment.second if clock[1] else 59)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def is_past(date: str, now: datetime) -> bool:
    """Whether an ISO date, possibly partial, lies wholly before a moment. What is no date never does."""
    end = end_of(date)
    return end is not None and end < now


def is_said(time: str, text: str, at: str) -> bool:
    """Whether a date is said in a text, or follows from it and from `at`, when it was said ("" = unknown)."""
    days = period(time)
    if days is None:
        return False
    said = period(at)
    terms = set(analyse(text))
    wanted = date_terms(time[:10])
    if wanted and wanted[-1] in terms:
        return True
    if said is None:
        return False
    if within(said, days):
        return True
    near = bool(wanted) and abs(days[0].year - said[0].year) <= 1
    if near and len(time) >= 10 and wanted[-2] in terms:  # 3 May
        return True
    if near and len(time) == 7 and any(month_named(word) == days[0].month for word in WORD.findall(text)):  # in May
        return True
    return any(
        within(meant, days) or (within(days, meant) and meant[1] - meant[0] < ROUGHLY)
        for meant in meanings(text, said[0])
    )


@lru_cache(4096)
def month_named(word: str) -> int:
    """The month (1 to 12) that a word names in some language; 0 if it is no such name."""
    terms = analyse(f"1 {word} 2000")
    return next((int(term[1:]) for term in terms if re.fullmatch(r"m\d\d", term)), 0) if word.isalpha() else 0


def meanings(text: str, at: date) -> Iterator[Days]:
    """The periods that the words for time in a text may mean, said on a day."""
    words = f" {text.casefold()} ".replace("’", "'")
    for pattern, first, last in RELATIVE:
        if pattern.search(words):
            yield from span(at, first, last)
    for pattern, unit, sign in COUNTED:
        for found in pattern.finditer(words):
            count = next(group for group in found.groups() if group)
            number = int(count) if count.isdecimal() else NUMBERS[count]
            yield from some_ago(at, unit, sign * number)
    for pattern, unit, step in CALENDAR:
        if pattern.search(words):
            yield from some_ago(at, unit, step)
    for weekday, pattern in enumerate(WEEKDAYS):
        if pattern.search(words):
            for step in range(-7, 8):
                day = moved(at, step)
                if day is not None and day.weekday() == weekday:
                    yield day, day


def dates_meant(text: str, at: str) -> list[tuple[str, str]]:
    """The words of a text that name a day, month or year as seen from when it was said, each with its ISO date."""
    said = period(at)
    if said is None or said[0] != said[1]:
        return []
    words = text.casefold().replace("’", "'")
    found: list[tuple[re.Match[str], Days]] = []
    for pattern, first, last in RELATIVE:
        if first == last:
            found += [(match, days) for match in pattern.finditer(words) for days in span(said[0], first, last)]
    counted = (row for row in COUNTED if row[1] == "day" or row[2] < 0)  # `in two years` is often a length of time
    for pattern, unit, step in (*counted, *CALENDAR):
        if unit == "week":  # roughly meant
            continue
        for match in pattern.finditer(words):
            count = next((group for group in match.groups() if group), "1")
            number = step * (int(count) if count.isdecimal() else NUMBERS[count])
            found += [(match, days) for days in some_ago(said[0], unit, number)]
    for match in LAST_WEEKDAY.finditer(words):
        number = weekday_in(match[0])
        back = (said[0].weekday() - number) % 7 or 7
        found += [(match, days) for days in span(said[0], -back, -back)]
    whole = outermost([(match, iso(days)) for match, days in found if match[0] not in ELSEWHERE])
    return list(dict.fromkeys(whole))


Found = tuple[re.Match[str], str]
"""Words in a text, and what they mean."""


def outermost(found: Iterable[Found]) -> list[tuple[str, str]]:
    """What was found, in the order of the text, without what stands inside longer words that were found, too."""
    pairs = sorted(found, key=lambda pair: pair[0].start())
    return [
        (match[0], meaning)
        for match, meaning in pairs
        if not any(
            other.start() <= match.start() and match.end() <= other.end() and len(other[0]) > len(match[0])
            for other, _ in pairs
        )
    ]


def dates_shown(text: str, at: str) -> list[tuple[str, str]]:
    """As `dates_meant` for a person to read, with weeks, weekends, seasons and the next weekday: `a/b` is from a to b.

    Where usage differs both readings are given (`next friday` on a Monday); seasons are those of the north.
    """
    said = period(at)
    if said is None or said[0] != said[1]:
        return []
    words = text.casefold().replace("’", "'")
    known = dict.fromkeys(dates_meant(text, at))
    found: list[Found] = []
    for word, meaning in known:
        found += [(match, meaning) for match in re.finditer(re.escape(word), words)][:1]
    for pattern, step in WEEKS:
        found += [(match, week(said[0], step, 0)) for match in pattern.finditer(words)]
    for pattern, step in WEEKENDS:
        found += [(match, week(said[0], step, 5)) for match in pattern.finditer(words)]
    for match in NEXT_WEEKDAY.finditer(words):
        found.append((match, coming(said[0], weekday_in(match[0]))))
    for first, pattern in SEASONS:
        found += [(match, season_before(said[0], first)) for match in pattern.finditer(words)]
    return list(dict.fromkeys((word, meaning) for word, meaning in outermost(found) if meaning))


def weekday_in(words: str) -> int:
    """The weekday that some words name, Monday 0."""
    return next(day for day, pattern in enumerate(WEEKDAYS) if pattern.search(words))


def week(at: date, step: int, first: int) -> str:
    """A week that lies some weeks away, from its `first` day (Monday 0) to Sunday."""
    low, high = moved(at, 7 * step - at.weekday() + first), moved(at, 7 * step - at.weekday() + 6)
    return f"{low.isoformat()}/{high.isoformat()}" if low is not None and high is not None else ""


def coming(at: date, weekday: int) -> str:
    """The next such weekday; where that lies in the same week, the one after it may be meant as well."""
    ahead = (weekday - at.weekday()) % 7 or 7
    low, high = moved(at, ahead), moved(at, ahead + 7)
    if low is None or high is None:
        return ""
    same_week = ahead + at.weekday() < 7
    return f"{low.isoformat()} or {high.isoformat()}" if same_week else low.isoformat()


def season_before(at: date, first: int) -> str:
    """The last season, beginning in a month, that was over on a day."""
    for year in (at.year, at.year - 1, at.year - 2):
        last = (year, first + 2) if first < 12 else (year + 1, 2)
        if last < (at.year, at.month) and year > 0:
            return f"{year:04}-{first:02}/{last[0]:04}-{last[1]:02}"
    return ""


def iso(days: Days) -> str:
    """A day, a month or a year as an ISO date."""
    first, last = days
    if first == last:
        return first.isoformat()
    return first.isoformat()[:7] if first.month == last.month else f"{first.year:04}"


def some_ago(at: date, unit: str, number: int) -> Iterator[Days]:
    """The period that lies a number of days, weeks, months or years away; weeks are said roughly."""
    if unit == "day":
        yield from span(at, number, number)
    elif unit == "week":
        yield from span(at, 7 * number - 6, 7 * number + 6)
    elif unit == "month":
        months = at.year * 12 + at.month - 1 + number
        if 12 <= months < 12 * 10_000:
            yield month_of(months // 12, months % 12 + 1)
    elif 1 <= at.year + number < 10_000:
        yield date(at.year + number, 1, 1), date(at.year + number, 12, 31)


def span(at: date, first: int, last: int) -> Iterator[Days]:
    """The days from one distance to another; nothing where the calendar ends."""
    low, high = moved(at, first), moved(at, last)
    if low is not None and high is not None:
        yield low, high


def moved(at: date, days: int) -> date | None:
    """A day some days away; None beyond the calendar."""
    try:
        return at + timedelta(days=days)
    except OverflowError:
        return None


def month_of(year: int, month: int) -> Days:
    """The days of a month."""
    first = date(year, month, 1)
    last = date(year, 12, 31) if month == 12 else date(year, month + 1, 1) - timedelta(days=1)
    return first, last


def within(one: Days, other: Days) -> bool:
    """Whether one period lies in another."""
    return other[0] <= one[0] and one[1] <= other[1]


# Tables. Latin and Cyrillic words stand between word boundaries, those of Han and Kana anywhere.


class Phrases:
    """A pattern for words or phrases, compiled once a text holds what it cannot do without: a sign of each group.

    To compile all of them takes 30 ms, a tenth of a search, and few of them are ever wanted.
    """

    __slots__ = ("_compiled", "signs", "source")

    def __init__(self, source: str, *signs: str) -> None:
        self.source = source
        self.signs = tuple(tuple(group.split("|")) for group in signs)
        self._compiled: re.Pattern[str] | None = None

    def may_stand_in(self, text: str) -> bool:
        """Whether a text holds a sign of each group."""
        return all(any(sign in text for sign in group) for group in self.signs)

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern itself."""
        if self._compiled is None:
            self._compiled = re.compile(self.source)
        return self._compiled

    def search(self, text: str) -> re.Match[str] | None:
        """Where it first stands in a text."""
        return self.pattern.search(text) if self.may_stand_in(text) else None

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Wherever it stands in a text."""
        return self.pattern.finditer(text) if self.may_stand_in(text) else iter(())


def words_for(spaced: str, unspaced: str = "", signs: str = "") -> Phrases:
    """Any of these words or phrases, separated by `|`; what is no plain text among them needs its signs said."""
    source = "|".join([rf"\b(?:{spaced})\b", *([unspaced] if unspaced else [])])
    return Phrases(source, signs or f"{spaced}|{unspaced}".strip("|"))


RELATIVE = (
    (words_for("today|tonight|this morning|this evening|heute|aujourd'hui|hoy|oggi|сегодня", "今天|今日|오늘"), 0, 0),
    (words_for("yesterday|gestern|hier|ayer|ieri|вчера", "昨天|昨日|어제"), -1, -1),
    (words_for("last night|letzte nacht|anoche", "昨晚|昨夜"), -1, 0),
    (words_for("tomorrow|morgen|demain|mañana|domani|завтра", "明天|明日|내일"), 1, 1),
    (words_for("the day before yesterday|vorgestern|avant-hier|anteayer|позавчера", "前天|一昨日"), -2, -2),
    (words_for("the day after tomorrow|übermorgen|après-demain|pasado mañana|послезавтра", "后天|後天|明後日"), 2, 2),
    (words_for("this week|diese woche|cette semaine|esta semana", "这周|本周|今週"), -6, 6),
    (
        words_for(
            "(?:last|the|this|next) weekend|wochenende|week-end|fin de semana",
            "周末|週末",
            "weekend|wochenende|week-end|fin de semana|周末|週末",
        ),
        -9,
        9,
    ),
)
NUMBERS = {
    word: number
    for number, words in enumerate(
        (
            "a an one ein eine einem einer un une una uno один одну 一",
            "two zwei deux dos due два две 二 两",
            "three drei trois tres tre три 三",
            "four vier quatre cuatro quattro четыре 四",
            "five fünf cinq cinco cinque пять 五",
            "six sechs seis sei шесть 六",
            "seven sieben sept siete sette семь 七",
            "eight acht huit ocho otto восемь 八",
            "nine neun neuf nueve nove девять 九",
            "ten zehn dix diez dieci десять 十",
        ),
        1,
    )
    for word in words.split()
}
COUNT = "(" + "|".join([r"\d{1,3}", *sorted(NUMBERS, key=len, reverse=True)]) + ")"
UNITS = {
    "day": ("days?|tag(?:e|en)?|jours?|d[ií]as?|giorn[oi]|день|дня|дней", "天|日"),
    "week": ("weeks?|wochen?|semaines?|semanas?|settiman[ae]|недел[юиь]", "周|週|个星期|週間"),
    "month": ("months?|monat(?:e|en)?|mois|mes(?:es)?|mes[ei]|месяц(?:а|ев)?", "个月|か月|ヶ月"),
    "year": ("years?|jahr(?:e|en)?|ans?|années?|años?|ann[oi]|года?|лет", "年"),
}
SIGNS = {
    "day": "day|tag|jour|dia|día|giorn|день|дня|дней|天|日",
    "week": "week|woche|semain|seman|settiman|недел|周|週|星期",
    "month": "month|monat|mois|mes|месяц|月",
    "year": "year|jahr| an|ann|año|год|лет|年",
}
COUNTED = tuple(
    (Phrases(pattern, SIGNS[unit], signs), unit, step)
    for unit, (names, unspaced) in UNITS.items()
    for step, signs, pattern in (
        (
            -1,
            "ago|earlier| fa|назад|vor |hace |il y a |前",
            rf"\b{COUNT} (?:{names}) (?:ago|earlier|fa|назад)\b|\b(?:vor|hace|il y a) {COUNT} (?:{names})\b"
            rf"|{COUNT} ?(?:{unspaced}) ?(?:之?前)",
        ),
        (
            1,
            "in |within |dans |en |dentro de |fra |через |from now|后|後",
            rf"\b(?:in|within|dans|en|dentro de|fra|через) {COUNT} (?:{names})\b|\b{COUNT} (?:{names}) from now\b"
            rf"|{COUNT} ?(?:{unspaced}) ?(?:之?后|之?後)",
        ),
    )
)
CALENDAR = tuple(
    (words_for(spaced, unspaced, signs and f"{signs}|{unspaced}"), unit, step)
    for unit, step, spaced, unspaced, signs in (
        (
            "week",
            -1,
            "last week|letzte[nr]? woche|vorige woche|la semaine dernière|la semana pasada",
            "上周|上週|先週",
            "last week|woche|semaine|semana",
        ),
        (
            "week",
            1,
            "next week|nächste[nr]? woche|la semaine prochaine|la próxima semana",
            "下周|下週|来週",
            "next week|woche|semaine|semana",
        ),
        (
            "month",
            -1,
            "last month|letzten monat|le mois dernier|el mes pasado|в прошлом месяце",
            "上个月|上月|先月",
            "",
        ),
        ("month", 0, "this month|diesen monat|ce mois-ci|este mes", "这个月|本月|今月", ""),
        ("month", 1, "next month|nächsten monat|le mois prochain|el próximo mes", "下个月|下月|来月", ""),
        ("year", -1, "last year|letztes jahr|voriges jahr|l'année dernière|el año pasado|в прошлом году", "去年", ""),
        ("year", 0, "this year|dieses jahr|heuer|cette année|este año", "今年", ""),
        ("year", 1, "next year|nächstes jahr|l'année prochaine|el próximo año|в следующем году", "明年|来年", ""),
    )
)
WEEKDAYS = tuple(
    words_for(spaced, unspaced, signs and f"{signs}|{unspaced}")
    for spaced, unspaced, signs in (
        ("monday|montag|lundi|lunes|lunedì|понедельник", "周一|星期一|月曜", ""),
        ("tuesday|dienstag|mardi|martes|martedì|вторник", "周二|星期二|火曜", ""),
        (
            "wednesday|mittwoch|mercredi|miércoles|mercoledì|сред[ау]",
            "周三|星期三|水曜",
            "wednesday|mittwoch|mercredi|miércoles|mercoledì|сред",
        ),
        ("thursday|donnerstag|jeudi|jueves|giovedì|четверг", "周四|星期四|木曜", ""),
        (
            "friday|freitag|vendredi|viernes|venerdì|пятниц[ау]",
            "周五|星期五|金曜",
            "friday|freitag|vendredi|viernes|venerdì|пятниц",
        ),
        (
            "saturday|samstag|sonnabend|samedi|sábado|sabato|суббот[ау]",
            "周六|星期六|土曜",
            "saturday|samstag|sonnabend|samedi|sábado|sabato|суббот",
        ),
        ("sunday|sonntag|dimanche|domingo|domenica|воскресенье", "周日|星期日|星期天|日曜", ""),
    )
)
ELSEWHERE = frozenset(("morgen", "hier", "today", "heute", "hoy", "oggi"))
"""Words that are others in another language, and those that mean the entry's own date or our times."""
DAYS = "day|tag|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche"
LAST_WEEKDAY = Phrases(
    r"\blast (?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
    r"|\bletzten (?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)\b"
    r"|\b(?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche) dernier\b",
    f"{DAYS}|mittwoch",
    "last |letzten | dernier",
)
WEEKS = (
    (CALENDAR[0][0], -1),
    (words_for("this week|diese woche|cette semaine|esta semana", "这周|本周|今週"), 0),
    (CALENDAR[1][0], 1),
)
WEEKENDS = (
    (words_for("last weekend|letztes wochenende|le week-end dernier|el fin de semana pasado", "上周末|先週末"), -1),
    (words_for("this weekend|dieses wochenende|ce week-end|este fin de semana", "这周末|今週末"), 0),
)
NEXT_WEEKDAY = Phrases(
    r"\bnext (?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
    r"|\bnächsten (?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag)\b"
    r"|\b(?:lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche) prochain\b"
    r"|\bpróximo (?:lunes|martes|miércoles|jueves|viernes|sábado|domingo)\b"
    r"|\b(?:lunedì|martedì|mercoledì|giovedì|venerdì|sabato) prossimo\b",
    "next |nächsten | prochain|próximo | prossimo",
)
SEASONS = (
    (
        3,
        words_for(
            "last spring|letzte[ns] (?:frühling|frühjahr)|le printemps dernier|la primavera pasada",
            signs="last spring|früh|printemps|primavera",
        ),
    ),
    (6, words_for("last summer|letzten sommer|l'été dernier|el verano pasado|l'estate scorsa")),
    (
        9,
        words_for(
            "last (?:autumn|fall)|letzten herbst|l'automne dernier|el otoño pasado",
            signs="last autumn|last fall|herbst|automne|otoño",
        ),
    ),
    (12, words_for("last winter|letzten winter|l'hiver dernier|el invierno pasado")),
)
