"""What a word is: the one analyser behind the index, the ranking and the planner.

Unicode words are case-folded, stripped of stop words and stemmed (Snowball, by script); accents are
folded after stemming. Scripts without spaces become bigrams. Numbers and dates are normalised, so that
`7 May 2023`, `2023-05-07` and `May 2023` share terms. Identifiers are split and kept whole too.
No term holds white space, so terms joined by spaces survive a tokeniser that splits at white space.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator

VERSION = 1
"""Changes whenever the same text gives other terms; an index made with another version is rebuilt."""

_REMEMBERED = 100_000  # spellings per language; chat has about 60,000 in a million lines
_LONGEST_REMEMBERED = 40  # characters: longer ones are URLs and unspaced text, seldom seen twice
_LONGEST_TERM = 80

_memories: dict[str, dict[str, tuple[str, ...]]] = {}
_stemmers = threading.local()  # a Stemmer is for one thread alone


def analyse(text: str, language: str = "english") -> list[str]:
    """The terms of any text, in reading order, repeats kept; `language` stems what is in Latin script."""
    memory = _memories.setdefault(language, {})
    terms: list[str] = []
    may_hold_date = False
    for spelling in text.split():
        known = memory.get(spelling)
        if known is None:
            known = _learn(spelling, language)
            if len(spelling) <= _LONGEST_REMEMBERED:
                if len(memory) >= _REMEMBERED:
                    memory.clear()
                memory[spelling] = known
        terms += known
        if type(known) is _BesideDate:
            may_hold_date = True
    if may_hold_date:
        terms += _spoken_dates(text)
    return terms


def query_words(query: str, language: str = "english") -> list[str]:
    """The distinct terms to look for; a Han character counts alone only where it stands alone."""
    terms = dict.fromkeys(analyse(query, language))
    pairs = "".join(term for term in terms if len(term) == 2 and _is_unspaced(term[0]))
    return [term for term in terms if len(term) > 1 or term not in pairs]


def content_words(query: str, language: str = "english") -> list[str]:
    """What a question asks about: if none of these occurs, memory cannot answer it."""
    return [term for term in query_words(query, language) if term not in _ASKING]


def date_terms(date: str) -> list[str]:
    """The terms of an ISO date, possibly partial or with a time; none if it is no date."""
    found = _ISO.match(date) or _BARE_YEAR.match(date)
    return _calendar_terms(*found.groups()) if found else []


def is_date_term(term: str) -> bool:
    """Whether a term stands for a year, a month or a day."""
    return _DATE_TERM.fullmatch(term) is not None


def says_when(terms: Iterable[str]) -> bool:
    """Whether analysed text says when: a date, a weekday, or words such as `yesterday` and `last week`."""
    return not _WHEN.isdisjoint(terms)


def fold(text: str) -> str:
    """Lower case without accents: how names are compared."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text).casefold())
    for mark in filter(unicodedata.combining, set(plain)):  # a text has few different ones, and may be long
        plain = plain.replace(mark, "")
    return plain.translate(_LETTERS)


# Dates


def _calendar_terms(year: str, month: str | None = None, day: str | None = None) -> list[str]:
    terms = [f"y{year}"] if year else []
    if not month or not 1 <= int(month) <= 12:
        return terms
    mm = f"{int(month):02}"
    terms.append(f"m{mm}")
    if year:
        terms.append(f"ym{year}-{mm}")
    if day and 1 <= int(day) <= 31:
        dd = f"{int(day):02}"
        terms.append(f"md{mm}-{dd}")
        if year:
            terms.append(f"d{year}-{mm}-{dd}")
    return terms


def _spoken_dates(text: str) -> Iterator[str]:
    """The terms of `7 May 2023`, `May 7th`, `in May` and `2023년 5월`; years are terms already."""
    for found in _SPOKEN.finditer(text):
        before, name, after, year = found.groups()
        day = before or after
        if not day and not year:
            continue
        month = _MONTHS[name.casefold()]
        sure = name.casefold() in _SURE_MONTHS
        already = {f"y{year}", f"m{month:02}" if sure else ""}
        yield from (term for term in _calendar_terms(year or "", str(month), day) if term not in already)
    for found in _IN_MONTH.finditer(text):
        yield f"m{_MONTHS[found[1].casefold()]:02}"
    for found in _EAST_ASIAN_SPACED.finditer(text):
        yield from _calendar_terms(*found.groups())[1:]


def _digits(number: str) -> str:
    """A number as plain decimal digits without leading zeros; a year as its date term."""
    plain = "".join(str(unicodedata.decimal(digit)) for digit in number)
    if len(plain) == 4 and plain[:2] in ("19", "20"):
        return f"y{plain}"
    return plain.lstrip("0") or "0"


# Spellings


class _BesideDate(tuple[str, ...]):
    """The terms of a spelling that can be part of a date written in several words."""

    __slots__ = ()


def _learn(spelling: str, language: str) -> tuple[str, ...]:
    bare = spelling.strip(".,;:!?()[]\"'*_").casefold()
    kind = _BesideDate if bare in _MONTHS or spelling[-1] in "年년" else tuple
    return kind(_spelling_terms(spelling, language))


def _spelling_terms(spelling: str, language: str) -> Iterator[str]:
    """The terms of what stands between two spaces."""
    if spelling.isascii():
        word = spelling.strip(_AROUND_WORDS)
        if word.isalpha() and (word.islower() or word.istitle() or word.isupper()):  # as nearly all are: a third faster
            yield from _plain_term(word, language)
            return
    if not spelling.isascii():
        spelling = unicodedata.normalize("NFKC", spelling).translate(_APOSTROPHES)
    if "'" in spelling:
        spelling = _CONTRACTION.sub("", _NEGATION.sub(" ", spelling))
    if any(map(str.isdecimal, spelling)):
        for pattern in (_ISO_INSIDE, _SLASHED, _EAST_ASIAN, _GROUPED):
            for found in pattern.finditer(spelling):
                yield from _NUMBERS[pattern](found)
            spelling = pattern.sub(" ", spelling)
    for compound in _compounds(spelling):
        yield from _compound_terms(compound, language)


def _compounds(spelling: str) -> list[list[str]]:
    """Runs of letters and digits, those that one of -_.' joins kept together."""
    compounds: list[list[str]] = []
    run: list[str] = []
    between = " "
    for letter in spelling + " ":
        if letter.isalnum() or (run and not letter.isascii() and unicodedata.category(letter)[0] == "M"):
            run.append(letter)
            continue
        if not letter.isascii() and unicodedata.category(letter) == "Cf":
            continue
        if run:
            if compounds and between in _JOINERS:
                compounds[-1].append("".join(run))
            else:
                compounds.append(["".join(run)])
            run = []
            between = ""
        between += letter
    return compounds


def _compound_terms(runs: list[str], language: str) -> Iterator[str]:
    for run in runs:
        if len(runs) > 1 and len(run) == 1 and run.isascii() and run.isalpha():
            continue
        for letters in _by_script(run):
            yield from _run_terms(letters, language)
    if len(runs) > 1:
        whole = "".join(runs)
        if len(whole) <= _LONGEST_REMEMBERED and not any(map(_is_unspaced, whole)):
            yield from _plain_term(".".join(runs) if whole.isdecimal() else whole, language)


def _by_script(run: str) -> list[str]:
    """A run cut where a script without spaces begins or ends."""
    if run.isascii():
        return [run]
    parts: list[str] = []
    start = 0
    was = _is_unspaced(run[0])
    for at, letter in enumerate(run):
        unspaced = _is_unspaced(letter)
        if unspaced != was and unicodedata.category(letter)[0] != "M":
            parts.append(run[start:at])
            start, was = at, unspaced
    parts.append(run[start:])
    return parts


def _run_terms(run: str, language: str) -> Iterator[str]:
    if run.isdecimal():
        yield _digits(run)[:_LONGEST_TERM]
    elif _is_unspaced(run[0]):
        yield from (run[at : at + 2].casefold() for at in range(max(1, len(run) - 1)))
        if len(run) > 1:
            yield from (letter for letter in run if "\u3400" <= letter < "\ua000")
    elif run.isalpha() and (run.islower() or run.isupper() or run.istitle()):
        yield from _plain_term(run, language)
    elif ordinal := _ORDINAL.fullmatch(run):
        yield _digits(ordinal[1])
    elif run[-1] == "s" and run[:-1].isupper() and len(run) > 2:
        yield from _plain_term(run[:-1], language)
    else:
        yield from _plain_term(run, language)
        pieces = _PIECES.findall(run)
        if len(pieces) > 1:
            for piece in pieces:
                if piece.isdecimal():
                    yield _digits(piece)
                elif len(piece) > 1:
                    yield from _plain_term(piece, language)


def _plain_term(word: str, language: str) -> Iterator[str]:
    """A word's stem, or nothing for a stop word."""
    lower = word.casefold()
    tongue = _tongue(lower, language)
    if lower in STOP_WORDS.get(tongue, ()):
        return
    if tongue == "english" and lower in _NUMBER_WORDS:
        yield _NUMBER_WORDS[lower]
        return
    lower = lower[:_LONGEST_TERM]
    if tongue in ("arabic", "hebrew"):
        lower = "".join(letter for letter in lower if not unicodedata.combining(letter) and letter != "ـ")
    elif tongue == "russian":
        lower = lower.replace("ё", "е")
    stem = _stem(lower, tongue)
    if not stem.isascii() and (lower[0].isascii() or ord(lower[0]) < _AFTER_GREEK):
        stem = fold(stem)
    yield stem or lower
    if lower in _SURE_MONTHS:
        yield f"m{_SURE_MONTHS[lower]:02}"


def _tongue(word: str, language: str) -> str:
    """The language whose rules a word follows: its script says, and for Latin the library."""
    first = ord(word[0])
    if first < 0x370:
        return language
    for start, stop, tongue in _SCRIPTS:
        if start <= first < stop:
            return tongue
    return language if first >= 0x1E00 and first < 0x1F00 else ""


def _stem(word: str, tongue: str) -> str:
    stemmer: Callable[[str], str] | None = _stemmers.__dict__.get(tongue)
    if stemmer is None:
        import Stemmer

        known = tongue in Stemmer.algorithms()
        stemmer = Stemmer.Stemmer(tongue).stemWord if known else str
        _stemmers.__dict__[tongue] = stemmer
    return stemmer(word)


def _is_unspaced(letter: str) -> bool:
    """Whether a letter is of a script that runs words together, or (Hangul) glues particles to them."""
    code = ord(letter)
    return code >= 0x0E00 and any(start <= code < stop for start, stop in _UNSPACED)


# Tables

_UNSPACED = (
    (0x0E00, 0x0F00),  # Thai, Lao
    (0x1000, 0x10A0),  # Myanmar
    (0x1780, 0x1800),  # Khmer
    (0x3005, 0x3008),  # ideographic iteration mark and zero
    (0x3040, 0x3130),  # Kana, Bopomofo
    (0x31A0, 0x3200),
    (0x3400, 0x4DC0),  # Han
    (0x4E00, 0xA000),
    (0xAC00, 0xD7B0),  # Hangul
    (0xF900, 0xFB00),
    (0x20000, 0x32000),
)
_SCRIPTS = (
    (0x0370, 0x0400, "greek"),
    (0x0400, 0x0530, "russian"),
    (0x0530, 0x0590, "armenian"),
    (0x0590, 0x0600, "hebrew"),
    (0x0600, 0x0780, "arabic"),
    (0x0900, 0x0980, "hindi"),
    (0x0B80, 0x0C00, "tamil"),
    (0x1F00, 0x2000, "greek"),
)
_AFTER_GREEK = 0x400
_AROUND_WORDS = "".join(mark for mark in map(chr, range(128)) if not mark.isalnum())
_JOINERS = frozenset("-_.'‐‑")
_APOSTROPHES = str.maketrans({"’": "'", "ʼ": "'", "‘": "'", "＇": "'", "´": "'"})
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"})
_CONTRACTION = re.compile(r"(?<=\w)'(?:s|m|re|ve|ll|d)(?!\w)", re.I)
_NEGATION = re.compile(r"(?<!\w)(?:[a-z]{2,6}n|wo|ca)'t(?!\w)", re.I)
_ORDINAL = re.compile(r"(\d{1,4})(?:st|nd|rd|th)", re.I)
_PIECES = re.compile(r"\d+|[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|[^\W\d_]+")

_ISO = re.compile(r"([12]\d{3})-(0?[1-9]|1[0-2])(?:-(0?[1-9]|[12]\d|3[01]))?(?![\d-])")
_ISO_INSIDE = re.compile(
    r"(?<![\w-])([12]\d{3})([-/.])(0?[1-9]|1[0-2])(?:\2(0?[1-9]|[12]\d|3[01]))?"
    r"(?:T\d\d:?\d\d(?::?\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)?(?![\w-])"
)
_DATE_TERM = re.compile(r"y\d{4}|m\d\d|ym\d{4}-\d\d|md\d\d-\d\d|d\d{4}-\d\d-\d\d")
_BARE_YEAR = re.compile(r"([12]\d{3})(?!\d)()()")
_SLASHED = re.compile(r"(?<![\w/.-])(\d{1,2})([/.-])(\d{1,2})\2([12]\d{3})(?![\w/-])")
_EAST_ASIAN = re.compile(r"([12]\d{3})[年년](?:(\d{1,2})[月월](?:(\d{1,2})[日일号號])?)?")
_EAST_ASIAN_SPACED = re.compile(r"([12]\d{3})\s?[年년]\s(\d{1,2})[月월](?:\s?(\d{1,2})[日일号號])?")
_GROUPED = re.compile(r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+)(?!\w|[.,]\d)")


def _slashed_terms(found: re.Match[str]) -> list[str]:
    """`07/05/2023` is read both ways where both are dates; with dots the day comes first."""
    first, mark, second, year = found.groups()
    readings = [(second, first)] if mark == "." else [(second, first), (first, second)]
    terms = [term for month, day in readings for term in _calendar_terms(year, month, day)]
    return list(dict.fromkeys(terms)) or [f"y{year}"]


def _grouped_terms(found: re.Match[str]) -> list[str]:
    whole, _, part = found[0].replace(",", "").partition(".")
    part = part.rstrip("0")
    digits = (whole.lstrip("0") or "0")[:_LONGEST_TERM]
    return [f"{digits}.{part[:_LONGEST_TERM]}" if part else digits]


_NUMBERS: dict[re.Pattern[str], Callable[[re.Match[str]], list[str]]] = {
    _ISO_INSIDE: lambda found: _calendar_terms(found[1], found[3], found[4]),
    _SLASHED: _slashed_terms,
    _EAST_ASIAN: lambda found: _calendar_terms(*found.groups()),
    _GROUPED: _grouped_terms,
}

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier enero gennaio janeiro januari января январь",
            "february feb februar février febrero febbraio fevereiro februari февраля февраль",
            "march mar märz mars marzo março maart марта март",
            "april apr avril abril aprile апреля апрель",
            "may mai mayo maggio maio mei maj мая май",
            "june jun juni juin junio giugno junho июня июнь",
            "july jul juli juillet julio luglio julho июля июль",
            "august aug août agosto augustus augusti августа август",
            "september sep sept septembre septiembre settembre setembro сентября сентябрь",
            "october oct oktober okt octobre octubre ottobre outubro октября октябрь",
            "november nov novembre noviembre novembro ноября ноябрь",
            "december dec dezember dez décembre diciembre dicembre dezembro декабря декабрь",
        ),
        1,
    )
    for name in names.split()
}
_SURE_MONTHS = {  # not may and march, which are other words too
    "january": 1,
    "february": 2,
    "april": 4,
    "june": 6,
    "july": 7,
    "august": 8,
    "september": 9,
    "october": 10,
    "november": 11,
    "december": 12,
}
_SPOKEN = re.compile(
    r"(?<!\w)(?=[\d" + "".join(sorted({name[0] for name in _MONTHS})) + "])"  # most places in a text fail here, quickly
    r"(?:(\d{1,2})(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?)?"
    r"(?<!\w)(" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")(?!\w)\.?"
    r"(?:\s+(?:the\s+)?(\d{1,2})(?:st|nd|rd|th)?(?![\w:%]))?"
    r"(?:,?\s+(?:of\s+|de\s+)?([12]\d{3})(?!\w))?",
    re.I,
)
_IN_MONTH = re.compile(r"\b(?:in|last|next|since|early|late|mid|this|until|during|by|of)[ -](may|march)\b", re.I)
_WHEN = frozenset(  # as stems, English first; of the others what is clear by itself
    "yesterday today tonight tomorrow ago last next week weekend month year day morn even recent soon sinc "
    "monday tuesday wednesday thursday friday saturday sunday "
    "gestern heute morgen montag dienstag mittwoch donnerstag freitag samstag sonntag woch monat jahr "
    "hier aujourd demain lundi mardi mercredi jeudi vendredi samedi dimanch semain "
    "ayer hoy mañana miercol juev viern doming seman año "
    "вчер сегодн завтр недел месяц год понедельник вторник сред четверг пятниц суббот воскресен "
    "昨天 今天 明天 昨日 今日 明日 去年 今年 明年 来年 上周 下周 上月 下月 先週 今週 来週 先月 来月 曜日".split()
) | frozenset([f"y{year}" for year in range(1900, 2100)] + [f"m{month:02}" for month in range(1, 13)])

_NUMBER_WORDS = {
    "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "eleven": "11", "twelve": "12", "twenty": "20", "thirty": "30", "forty": "40", "fifty": "50",
    "hundred": "100",
}  # fmt: skip

_ASKING = frozenset(("mani", "much", "kind", "type", "tell", "know", "say", "said", "name", "happen"))

STOP_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "english": """a about above after again against all also am an and any are aren as at be because been
            before being below between both but by can could did do does doing don done down during each even
            ever few for from further get gets getting go goes going gonna got had has have having he her here
            hers herself him himself his how i if in into is isn it its itself just let me might more most
            must my myself no nor not now of off oh ok okay on once only or other our ours ourselves out over
            own really same shall she should so some still such than that the their theirs them themselves
            then there these they this those through to too under until up us very was wasn we were what
            when where which while who whom whose why will with would yeah yes yet you your yours yourself
            yourselves may""",
        "german": """aber alle als also am an auch auf aus bei bin bis bist da das dass dein dem den der des
            dich die dir doch du durch ein eine einem einen einer eines er es euch für hat habe haben hier
            ich ihm ihn ihr im in ist ja kann kein keine man mein meine mich mir mit nach nicht noch nur ob
            oder ohne sehr sein seine sich sie sind so über um und uns unser von vor war was wenn wer wie
            wieder wir wird wo zu zum zur""",
        "french": """à au aux avec ce ces cet cette dans de des du elle elles en est et être eu il ils j je
            l la le les leur leurs lui ma mais me mes moi mon n ne nos notre nous on ont ou où par pas pour
            qu que quel quelle qui s sa se ses son sont sur t ta te tes toi ton tu un une vos votre vous y
            a ai as c d m été plus très""",
        "spanish": """a al algo ante con como cuando de del desde donde dónde e el él ella ellas ellos en
            entre era es esa ese eso esta está este esto ha hay la las le les lo los más me mi mis muy no
            nos o para pero por que qué quien quién se ser si sí sin sobre son su sus también te tu tus un
            una uno y ya yo""",
        "italian": """a ad al alla alle anche che chi ci come con da dal dalla dei del della delle di dove e
            è ed era essere gli ha hai hanno ho i il in io la le lei li lo loro lui ma mi mia mio ne nel
            nella no noi non o per perché più quale quando quello questa questo se sei si sono su sua suo
            ti tra tu tua tuo un una uno vi voi""",
        "portuguese": """a ao aos as às até com como da das de dela dele do dos e é ela elas ele eles em
            entre era essa esse esta está este eu foi há isso isto já lhe mais mas me meu minha muito na
            não nas no nos nós o onde os ou para pela pelo por quando que quem se sem ser seu sua só também
            te tem teu tu tua um uma você""",
        "dutch": """aan als al alles ben bij dan dat de deze die dit doen door een en er ge geen had heb
            hebben heeft het hier hij hoe hun ik in is ja je kan maar me meer men met mij mijn naar niet nog
            nu of om omdat ons ook op over te toch tot u uit van veel voor waar waren was wat we wel werd wie wij
            wil worden zal ze zich zij zijn zo zou""",
        "swedish": """alla att av blev bli då de dem den denna det detta dig din du där efter ej en er ett
            från för ha hade han har henne hennes här hon honom hur i icke inom inte jag kan kunde man med
            mellan men mig min mitt mot mycket ni nu när någon och om oss på sedan sig sin skulle som så
            till under upp ut utan vad var vara vem vi vid vilken är över""",
        "danish": """af alle at blev bliver da de dem den denne der deres det dette dig din dog du efter
            eller en end er et for fra ham han hans har havde have hende hendes her hun hvad hvis hvor i
            ikke ind jeg jer kunne man med meget men mig min mod ned noget nogle nu når og også om op os
            over på selv sig sin skal som sådan til ud under var vi vil være""",
        "norwegian": """alle at av begge ble bli da de deg dem den denne der deres det dette din du eller en
            er et ett etter for fordi fra ha hadde han hans har hennes her hun hva hvem hver hvor hvordan i
            ikke inn jeg kan kunne man med meg men mer min mot noe nå når og også om opp oss over på seg
            selv sin skal som så til um under ut var ved vi vil være å""",
        "russian": """а без бы был была были было быть в вам вас весь во вот все всё вы где да для до его ее
            её если есть еще ещё же за и из или им их к как ко когда кто ли меня мне мой моя мы на над нас не
            нет ни но ну о об он она они оно от по под при с со так там то тот ты у уже что чтобы эта это
            этот я""",
    }.items()
}
