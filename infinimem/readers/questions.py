"""What kind of question it is, as far as that decides which evidence it wants; by its words, in several languages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from infinimem.text.words import analyse, content_words

NEWEST, OLDEST = "newest", "oldest"


@dataclass(frozen=True, slots=True)
class Kind:
    """`counts` wants every entry that matches, `end` which end of them in time matters, `history` the old values."""

    counts: bool = False
    end: str = ""
    history: bool = False


def kind_of(question: str) -> Kind:
    """The kind of a question."""
    last = _LAST.search(question) is not None
    first = _FIRST.search(question) is not None
    counts = last or first or _COUNTS.search(question) is not None
    history = _HISTORY.search(question) is not None or (not counts and _PAST.search(question) is not None)
    return Kind(counts, NEWEST if last else OLDEST if first else "", history)


def subject_words(question: str, language: str) -> list[str]:
    """The analysed words that a question is about, without those that only ask for a count or a date."""
    return [term for term in content_words(question, language) if term not in _counting(language)]


@cache
def _counting(language: str) -> frozenset[str]:
    return frozenset(analyse(_COUNTING_WORDS, language))


_SPAN = r"(?:week|month|year|night|summer|winter|autumn|fall|spring|evening|mon|tues|wednes|thurs|fri|satur|sun)"
_COUNTS = re.compile(
    r"\bhow (?:many|often)\b|\bnumber of\b|\bcount (?:the|all|my|how)\b|^list\b|\blist (?:all|every|the|my)\b"
    r"|\b(?:all|every) (?:the |of |my |our )?\w+s\b|\bin total\b|\baltogether\b"
    r"|\bwie ?(?:viele?|oft|häufig)\b|\banzahl\b|\balle\b|\bsämtliche\b|\binsgesamt\b"
    r"|\bcombien de\b|\btou(?:te)?s les\b|\bcu[aá]nt[oa]s\b|\btod[oa]s l[oa]s\b|\bquant[ei]\b|\bhoeveel\b|\bhoe vaak\b"
    r"|\bhvor (?:mange|ofte)\b|\bhur (?:många|ofta)\b|\bсколько\b|几次|多少次|何回|いくつ",
    re.I,
)
_LAST = re.compile(
    rf"\b(?<!at )last\b(?! {_SPAN})|\bmost recent(?:ly)?\b|\blatest\b|\bnewest\b"
    r"|\bzuletzt\b|\bletzte[nrsm]?\b(?! (?:woche|nacht|jahr|monat))|\bjüngste[nrsm]?\b|\bderni[eè]re? fois\b"
    r"|\búltima vez\b|\bultima volta\b|\blaatste keer\b|\bsiste gang\b|\bsenast\b|\bпоследн\w+ раз\b|最后一次|最後に",
    re.I,
)
_FIRST = re.compile(
    r"\bsince when\b|\bhow long ha(?:s|ve)\b|\bfirst time\b|\b(?:did|was|were) .*\bfirst\b|\bearliest\b"
    r"|\bwhen did .* (?:start|begin)\b|\bseit wann\b|\bzuerst\b|\berstmals\b|\berste[ns]? mal\b"
    r"|\bdepuis (?:quand|combien)\b|\bpremi[eè]re fois\b|\bdesde cu[aá]ndo\b|\bprimera vez\b|\bda quando\b"
    r"|\bprima volta\b|\bsinds wanneer\b|\beerste keer\b|\bsiden når\b|\bsedan när\b|\bс каких пор\b|第一次|初めて",
    re.I,
)
_HISTORY = re.compile(
    r"\bused to\b|\bprevious(?:ly)?\b|\bformer(?:ly)?\b|\bbefore\b|\bearlier\b|\boriginal(?:ly)?\b|\bat first\b"
    r"|\bonce\b|\bno longer\b|\bany ?more\b|\bchang(?:e|ed|es)\b|\bhistory\b|\buntil\b|\binstead\b"
    r"|\bfrüher\b|\bvorher(?:ige[nrsm]?)?\b|\bdamals\b|\bursprünglich\b|\behemal\w+\b|\bbis(?:her| wann)\b|\bbevor\b"
    r"|\bgeändert\b|\bzuvor\b|\bavant\b|\bautrefois\b|\bauparavant\b|\bantes\b"
    r"|\banterior(?:mente)?\b|\bprima\b|\bvroeger\b|\btidligere\b|\bfør\b|\btidigare\b|\bраньше\b|\bпрежде\b"
    r"|以前|之前|前は",
    re.I,
)
# at the beginning, `Was` may be German
_PAST = re.compile(r"(?<!^)\b(?:was|were|did|had)\b|\bwar(?:en)?\b|\bétai(?:t|ent)\b", re.I)
_COUNTING_WORDS = """times time often list number count counted total altogether last latest recent recently newest
    first earliest since start begin long ago date day days every each used previously before formerly earlier ever far
    oft häufig mal male anzahl insgesamt zuletzt letzte letzten letztes letzter seit erste ersten erstes erstmals
    viele viel alle wann lange bisher
    combien fois dernier dernière depuis quand premier première tous toutes
    veces última último desde primera primero cuántas cuántos todas todos
    volte ultima ultimo prima quante quanti hoeveel vaak laatste keer"""
