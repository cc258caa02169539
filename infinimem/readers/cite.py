"""Statements and what they cite: taken apart, held against the cited entries, put together again. Pure.

A number, a date, a name or a "not" that no source has is not supported (`grounds`), a source that tells of somebody
else is no answer (`about`). Doubtful cases pass where a refusal would more often be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from infinimem.ask import Evidence
from infinimem.readers.about import outdated, strays
from infinimem.readers.grounds import (
    ALONE,
    ENOUGH,
    bad_names,
    is_german,
    overlap,
    plain_terms,
    shares_nothing,
    terms_of,
    unsupported,
)
from infinimem.text.words import content_words

CITATION = re.compile(r"[\[【]\s*((?:[^\[\]【】\n]){1,160}?)\s*[\]】]")
ROUND = re.compile(
    r"\((?:(?:from |see )?(?:evidence|piece|source|entry|entries)s? )?(\[?\d{1,3}\]?(?:\s*[,;&]\s*\[?\d{1,3}\]?)*)\)"
    r"(?=[.!?。]?\s*$)",
    re.IGNORECASE,
)
"""Numbers in round brackets at the end of a statement, as some models cite."""
VAGUE = re.compile(
    r"\s*\((?:from|see|based on|according to) (?:the )?(?:evidence|pieces?|sources?)[^()\d\[]*\)", re.IGNORECASE
)
"""What some models write in the place of a citation."""
NUMBERS = re.compile(r"#?\d{1,4}(?:\s*[-–]\s*#?\d{1,4})?(?:\s*[,;&]\s*#?\d{1,4}(?:\s*[-–]\s*#?\d{1,4})?)*")
END = re.compile(r"(?:[.!?…]+[\"'”’»)*_]*(?=\s|$)|[。！？]+[」』”]?|\n+)")
TRAILING = re.compile(r"(?:[^\S\n]*(?:,[^\S\n]*)?[\[【][^\[\]【】\n]{1,160}[\]】][.;]?)+")
ABBREVIATION = re.compile(
    r"(?:\b(?:dr|mr|mrs|ms|prof|st|hr|fr|nr|no|bzw|ca|vs|vgl|e\.g|i\.e|z\.b|d\.h|u\.a|etc|approx|jr|sr)"
    r"|\b[^\W\d_]|\b\d{1,2})\.$",
    re.IGNORECASE,
)
NOT_THERE = re.compile(r"(?i:^\W*(?:not|nicht) (?:in|im) (?:memory|gedächtnis)\b)|\bNOT IN MEMORY\b")
ABSENT = re.compile(
    r"\b(?:evidence|memory|context|information|notes?|pieces?|entries|text)\b.{0,40}"
    r"\b(?:does|do|is|are)(?: not|n['’]t)\b"
    r"|\bno (?:information|mention|evidence|record)\b|\bnot (?:mentioned|stated|specified|provided|given)\b"
    r"|\b(?:cannot|can't|can not) be (?:determined|answered)\b|\bI (?:do not|don['’]t|cannot|can't) (?:know|tell|say)\b"
    r"|\bkeine? (?:information|angabe|hinweis)\w*\b|\bnicht (?:erwähnt|angegeben|genannt|bekannt)\b",
    re.IGNORECASE,
)
"""How models say that the evidence has no answer, in other words than they were asked to."""
ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b[^.!?\n]{0,40}\b(?:instructions?|rules?|prompts?|guidelines?)\b"
    r"|\bsystem (?:prompt|message)\b|(?:^|\n)\W*(?:system|assistant|developer)\W*:|\byou are now\b"
    r"|\b(?:answer|reply|respond|say|output|print)\b (?:only|exactly|nothing but)\b"
    r"|\b(?:ignorier|vergiss|missachte)\w*\b[^.!?\n]{0,40}\b(?:anweisung|regel|vorgabe)"
    r"|\b(?:ignore[zr]?|oublie[zr]?)\b[^.!?\n]{0,40}\b(?:consignes?|règles?)\b"
    r"|\b(?:ignora|olvida)\w*\b[^.!?\n]{0,40}\b(?:instrucci|reglas)"
    r"|(?:忽略|无视|忘记)[^。！？\n]{0,20}(?:指令|规则|指示)",
    re.IGNORECASE,
)
"""Orders to a model, as they may stand in what somebody else wrote."""
ORDERLY = re.compile(
    r"\b(?:instruct|prompt|inject|ignor|order|rule|anweis|regel|consigne|règle|instrucc)|指令|规则", re.IGNORECASE
)
OPENERS = frozenset("yes no ja nein oui non sí si correct indeed inde sure both exact right follow answer".split())
"""Words that say nothing by themselves."""
WANTS = re.compile(r"\b(?:what|which|who|whose|whom|when|where|how)\b", re.IGNORECASE)
WANTS_GERMAN = re.compile(r"\b(?:was|wer|wen|wem|wessen|wann|wo|wie|welche[rsmn]?)\b", re.IGNORECASE)
CHOICE = re.compile(r"\b(?:or|oder)\b", re.IGNORECASE)
LONGEST_LEAD, SHORT_LEAD = 120, 8
"""Characters of a line that introduces others, words of one that joins them."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A statement after the check: its text with `[topic:line]` citations, or why it has no support.

    `removed` counts citations that were taken off: of what does not exist, or of what bears nothing of it out.
    """

    text: str
    citations: tuple[str, ...] = ()
    removed: int = 0
    why: str = ""


def statements(text: str) -> Iterator[tuple[str, int]]:
    """The statements of a text with their citations, each with where it ends; the last may be unfinished.

    Line breaks before and after one stay. Citations after a full stop belong to what stands before it, unless the
    line begins with one.
    """
    start = at = 0
    while match := END.search(text, at):
        at = match.end()
        if match[0].startswith(".") and ABBREVIATION.search(text[max(start, match.end() - 16) : match.end()]):
            continue
        trailing = TRAILING.match(text, at)
        line = text[text.rfind("\n", 0, at) + 1 : at].lstrip(" -*•")
        after = bool(line) and not CITATION.match(line)
        if trailing and (after or text[trailing.end() :].lstrip(" ")[:1] in ("", "\n")):
            at = trailing.end()
        if text[start:at].strip():
            yield text[start:at].strip(" \t"), at
            start = at
    if text[start:].strip():
        yield text[start:].strip(" \t"), len(text)


def finished(text: str) -> tuple[list[str], str]:
    """Of a text that is still being written: the statements that nothing can be added to, and the rest."""
    found = list(statements(text))
    done: list[str] = []
    end = 0
    for statement, stop in found[:-1]:  # a citation may still follow the last one
        if text[stop:].lstrip()[:1] in ("[", "【") and stop == found[-2][1]:  # or be on its way
            break
        done.append(statement)
        end = stop
    return done, text[end:]


def cited(statement: str, pieces: Sequence[Evidence]) -> tuple[list[int], int, str]:
    """The pieces that a statement cites, how many of its citations exist nowhere, and its words alone."""
    statement = VAGUE.sub("", statement)
    statement = ROUND.sub(lambda match: f"[{re.sub(r'[][]', '', match[1])}]", statement)
    places = {piece.place.casefold(): at for at, piece in enumerate(pieces)}
    found: dict[int, None] = {}
    unknown = 0
    bare: list[str] = []
    last = 0
    for match in CITATION.finditer(statement):
        inside = match[1]
        if NUMBERS.fullmatch(inside):
            numbers = list(numbers_in(inside))
            found.update(dict.fromkeys(number - 1 for number in numbers if 1 <= number <= len(pieces)))
            unknown += sum(not 1 <= number <= len(pieces) for number in numbers)
        else:
            names = [name.strip().casefold() for name in re.split(r"[,;]\s+", inside)]
            known = [places[name] for name in names if name in places]
            if not known and ":" not in inside:
                continue  # brackets of the text's own
            found.update(dict.fromkeys(known))
            unknown += len(names) - len(known)
        bare.append(statement[last : match.start()])
        last = match.end()
    bare.append(statement[last:])
    words = " ".join("".join(bare).split())
    return list(found), unknown, tidy(words)


def tidy(words: str) -> str:
    """A statement without the marks that stood between its citations."""
    words = re.sub(r"\s*\((?:from|see|evidence|pieces?|sources?|[^\w()]){0,12}\)", "", words)
    words = re.sub(r",{2,}", ",", re.sub(r"\s+([.,;:!?])", r"\1", words))
    return re.sub(r"(?<!\.)\.\.$", ".", re.sub(r"([.!?]),+$|,+([.!?]?)$", r"\1\2", words))


def numbers_in(text: str) -> Iterator[int]:
    """The numbers of `1, 3-5`; a range of more than a hundred is none."""
    for piece in re.split(r"[,;&]", text):
        ends = [int(number) for number in re.findall(r"\d+", piece)]
        if len(ends) == 2 and 0 <= ends[1] - ends[0] <= 100:
            yield from range(ends[0], ends[1] + 1)
        else:
            yield from ends


def check(
    statement: str,
    pieces: Sequence[Evidence],
    question: str,
    *,
    before: Sequence[int] = (),
    count: int = 0,
) -> tuple[Checked, list[int]]:
    """A statement held against the pieces that it cites; and the places of those, for the next one.

    One that cites nothing is held against what the statement before it cited (`before`), then against each piece
    alone: if one has its words, that one is cited. `count` is how long a complete list is.
    """
    asked, removed, words = cited(statement, pieces)
    if not words.strip(" .,;:!?-*•"):
        return Checked("", removed=removed, why="it says nothing"), []
    sources = [bearing(piece, question) for piece in pieces]
    if wants_more(question) and not tells_something(words, question):
        return Checked(words, removed=removed, why="it only repeats the question"), []
    if asked:
        named = asked
        asked, why = borne_out(words, sources, asked, question, count)
        asked = without_idle(words, sources, asked, question, count)
        removed += sum(at not in asked for at in named) if asked else 0
    elif tells_something(words, question):
        asked, why = found_for(words, sources, question, before, count), "it cites no entry"
    else:
        why = "it cites no entry"
    if not asked:
        return Checked(words, removed=removed, why=why), []
    places = tuple(pieces[at].place for at in asked)
    marks = " ".join(f"[{place}]" for place in places)
    end = re.search(r"[.!?。！？…]+$", words)
    text = f"{words[: end.start()]} {marks}{end[0]}" if end else f"{words} {marks}"
    return Checked(text, places, removed), asked


def borne_out(
    words: str, pieces: Sequence[Evidence], asked: Sequence[int], question: str, count: int
) -> tuple[list[int], str]:
    """Which pieces bear out a statement that cites some, and why none do.

    All that it cites; or those of them that are not about somebody else, or one of these; or these with one more.
    A statement with words of its own may have got the number wrong: then the piece that has its words.
    """
    to_point = [at for at in asked if not strays(words, question, pieces, [at])]
    if not to_point and not unsupported(words, [pieces[at] for at in asked], question, count):
        return [], strays(words, question, pieces, asked)  # it is said, but of somebody else
    why = fails(words, pieces, to_point or asked, question, count)
    if not why:
        return to_point, ""
    for at in to_point if len(asked) > 1 else ():
        if not fails(words, pieces, [at], question, count):
            return [at], ""
    if plain_terms(words) <= set(terms_of(question)):
        return [], why
    more = with_another(words, pieces, to_point, question, count) if to_point else []
    return more or found_for(words, pieces, question, (), count), why


def without_idle(words: str, pieces: Sequence[Evidence], at: Sequence[int], question: str, count: int) -> list[int]:
    """Of pieces that bear a statement out together: those without which it is not, or that say something of it."""
    kept = list(at)
    for one in at:
        rest = [other for other in kept if other != one]
        if rest and shares_nothing(words, pieces[one]) and not fails(words, pieces, rest, question, count):
            kept = rest
    return kept


def leads_on(words: str, pieces: Sequence[Evidence], question: str) -> bool:
    """Whether a statement without citation only introduces or joins others: `Yes.`, `The dates are:`."""
    if any(char.isdigit() for char in words) or "[" in words or len(words) > LONGEST_LEAD:
        return False
    if words.rstrip("*_ ").endswith((":", "：")):
        return not bad_names(words, set(terms_of(question)), pieces, question)
    return not tells_something(words, question) and len(words.split()) <= SHORT_LEAD


def wants_more(question: str) -> bool:
    """Whether a question wants more than a yes, a no or a choice between what it names."""
    asks = WANTS_GERMAN if is_german(question) else WANTS
    return asks.search(question) is not None and CHOICE.search(question) is None


def tells_something(words: str, question: str) -> bool:
    """Whether a statement holds a word or a number that is not in the question."""
    return bool(set(content_words(words)).difference(terms_of(question), OPENERS))


def fails(words: str, pieces: Sequence[Evidence], at: Sequence[int], question: str, count: int) -> str:
    """Why some pieces do not bear a statement out; "" where they do."""
    sources = [pieces[one] for one in at]
    return (
        unsupported(words, sources, question, count)
        or strays(words, question, pieces, at)
        or outdated(words, pieces, at, question)
    )


def found_for(words: str, pieces: Sequence[Evidence], question: str, before: Sequence[int], count: int) -> list[int]:
    """The pieces that bear out a statement which names none: those of the statement before, or one alone."""
    told = [pieces[at] for at in before]
    if before and overlap(words, told, question) >= ALONE and not fails(words, pieces, before, question, count):
        return list(before)
    best: tuple[float, int] | None = None
    for at, piece in enumerate(pieces):
        share = min(overlap(words, [piece], ""), overlap(words, [piece], question))
        if share >= ALONE and (best is None or share > best[0]) and not fails(words, pieces, [at], question, count):
            best = (share, at)
    return [best[1]] if best else []


def with_another(words: str, pieces: Sequence[Evidence], at: Sequence[int], question: str, count: int) -> list[int]:
    """Pieces that bear a statement out only with one more, which it should have named too: `from 9 to 41`."""
    for other in range(len(pieces)):
        if (
            other not in at
            and overlap(words, [pieces[other]], question) >= ENOUGH
            and not fails(words, pieces, [*at, other], question, count)
            and not strays(words, question, pieces, [other])
        ):
            return [*at, other]
    return []


def bearing(piece: Evidence, question: str) -> Evidence:
    """A piece without the orders to a model that stand in it, which bear out nothing, unless one asks about those."""
    found = ORDERS.search(piece.text)
    if found is None or ORDERLY.search(question):
        return piece
    start = max((match.end() for match in END.finditer(piece.text, 0, found.start())), default=0)
    return replace(piece, text=piece.text[:start])
