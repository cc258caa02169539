"""Settings: what each means, its default, and where its value came from.

flag > `INFINIMEM_*` environment > the user's configuration > the library's `infinimem.yaml` > default.
The library's file travels with `git clone`, so it may hold only thresholds, language and retention:
never an endpoint, a key, a prompt or a command.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infinimem.errors import BadInput

Value = int | float | str | bool


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `kind` says how a text becomes its value; `in_library` whether infinimem.yaml may set it."""

    name: str
    default: Value
    kind: str
    about: str
    in_library: bool = True
    choices: tuple[str, ...] = ()
    variable: str = ""


SETTINGS: tuple[Setting, ...] = (
    Setting("flush.max_tokens", 5000, "count", "CURRENT is due for a flush at this size"),  # Infini Memory 4.1
    Setting(
        "flush.max_age",
        3600.0,
        "duration",
        "CURRENT is due when its oldest entry is older (90s, 30m, 1h, 2d)",
    ),
    Setting("flush.planner", "auto", "choice", "who plans a flush", choices=("auto", "lexical", "model")),
    Setting("split.max_tokens", 5000, "count", "a topic document over this size is split"),  # Infini Memory 4.1
    Setting("merge.max_tokens", 1000, "count", "topic documents under this size may be merged"),  # Infini Memory 4.1
    Setting("gate.supersede", 0.9, "share", "least confidence to retire an entry for another"),  # All-Mem
    Setting("gate.join", 0.9, "share", "least confidence to join entries into one line"),
    Setting("gate.split", 0.9, "share", "least confidence to split a document"),  # All-Mem
    Setting("gate.merge", 0.9, "share", "least confidence to merge documents"),  # All-Mem
    Setting("gate.link", 0.9, "share", "least confidence to link entries or topics"),
    Setting(
        "on_failure",
        "lexical",
        "choice",
        "what the model could not plan: planned without, or kept in CURRENT",
        choices=("lexical", "keep"),
    ),
    Setting(
        "model.name",
        "",
        "text",
        "the model to ask; with neither this nor model.url none is used",
        in_library=False,
        variable="INFINIMEM_MODEL",
    ),
    Setting("model.url", "", "text", "an OpenAI-compatible server", in_library=False, variable="OPENAI_BASE_URL"),
    Setting("model.timeout", 60.0, "duration", "a call that takes longer has failed", in_library=False),
    Setting("model.deadline", 600.0, "duration", "all calls of one command together", in_library=False),
    Setting("model.context", 8192, "count", "tokens that the model reads at once, prompt and reply", in_library=False),
    Setting("model.price_in", 0.0, "number", "price of a million tokens sent", in_library=False),
    Setting("model.price_out", 0.0, "number", "price of a million tokens received", in_library=False),
    Setting("budget.tokens", 0, "size", "tokens that one command may spend; 0: no limit", in_library=False),
    Setting("language", "english", "language", "stems and stop words of Latin-script text"),
    Setting("ask.k", 8, "count", "pieces of evidence that `ask` shows"),
    Setting(
        "ask.reader", "auto", "choice", "who reads for `ask`", choices=("auto", "agentic", "hybrid", "summary", "bm25")
    ),
    Setting("ask.rounds", 7, "count", "rounds of tool calls that the agentic reader may take"),  # Infini Memory 4.1
    Setting(
        "hyperlinks",
        "auto",
        "choice",
        "places as links on a terminal that has them, or never",
        in_library=False,
        choices=("auto", "never"),
    ),
    Setting("ask.notes", "yes", "choice", "note in .infinimem what each ask showed and cited", choices=("yes", "no")),
    Setting("links.hops", 2, "count", "how far readers follow links from what they found"),
    Setting("links.anchors", 10, "count", "found entries whose links are followed"),  # All-Mem 4.1, k
    Setting("links.candidates", 40, "count", "entries that links are followed to, at most"),  # All-Mem 4.1, L
    Setting("links.kept", 16, "count", "entries found and linked that a reader keeps, together"),  # All-Mem 4.1, K
    Setting("links.questions", 3, "count", "different questions before `reconsolidate` links two entries"),
    Setting("links.in_flush", False, "truth", "a flush that has something to do also does what `reconsolidate` does"),
    Setting("links.least", 0.5, "share", "weight from which on `reconsolidate` links two entries"),
    Setting("links.half_life", 180 * 86400.0, "duration", "after this time a question counts half (30d, 26w)"),
    Setting("ask.tokens", 3000, "count", "tokens of evidence that an answer is written from"),
    Setting("git.commit", False, "truth", "every flush, undo, split, merge and repair is a git commit (true, false)"),
    Setting(
        "retention", "", "retention", "how long entries stay: [{where: {source: 'tool:*'}, after: 90d, do: retire}]"
    ),
    Setting("access", "", "access", "what an audience is never shown: {mcp: {deny: {sensitivity: private}}}"),
)
STRUCTURED = ("retention", "access")
"""Kinds of settings that are lists or mappings; their value is kept as one line of JSON."""
BY_NAME = {setting.name: setting for setting in SETTINGS}
AUDIENCES = ("mcp", "export", "model")
"""Who reads a library besides its owner: agents over MCP, who gets an export, the model that is asked."""
DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw]?)")
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
LANGUAGES = (
    "arabic armenian basque catalan danish dutch english esperanto estonian finnish french german greek hindi "
    "hungarian indonesian irish italian lithuanian nepali norwegian porter portuguese romanian russian serbian "
    "spanish swedish tamil turkish yiddish"
).split()


@dataclass(frozen=True, slots=True)
class Settings:
    """The effective settings and, for each, where its value came from."""

    values: Mapping[str, Value]
    origins: Mapping[str, str]

    def count(self, name: str) -> int:
        """A whole number."""
        return int(self.values[name])

    def number(self, name: str) -> float:
        """A number: a share, or seconds."""
        return float(self.values[name])

    def truth(self, name: str) -> bool:
        """True or false."""
        return bool(self.values[name])

    def text(self, name: str) -> str:
        """A word."""
        return str(self.values[name])

    @property
    def retention(self) -> tuple[Retention, ...]:
        """The rules by which a flush lets entries go, in order."""
        return retention_in(self.text("retention"), "retention")

    def access(self, audience: str) -> Access:
        """What an audience may see. Raises `BadInput` for one that the rules do not name but nearly."""
        return access_in(self.text("access"), "access").get(audience, Access())


@dataclass(frozen=True, slots=True)
class Retention:
    """Entries whose fields match `where` go when they are older than `after` seconds; `do` is retire or forget."""

    where: tuple[tuple[str, str], ...]
    after: float
    do: str = "retire"

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether the rule is about an entry with these fields."""
        return has_all(fields, self.where)


@dataclass(frozen=True, slots=True)
class Access:
    """What an audience is never shown: entries that have any of the `deny` fields, or lack one of `allow`."""

    deny: tuple[tuple[str, str], ...] = ()
    allow: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.deny or self.allow)

    def permits(self, fields: Mapping[str, str]) -> bool:
        """Whether an entry with these fields may be shown."""
        if any(key in fields and is_like(fields[key], pattern) for key, pattern in self.deny):
            return False
        return has_all(fields, self.allow)


def has_all(fields: Mapping[str, str], wanted: Sequence[tuple[str, str]]) -> bool:
    """Whether each of the wanted fields is there, with one of the values that are wanted of it."""
    found = {key for key, pattern in wanted if key in fields and is_like(fields[key], pattern)}
    return found == {key for key, _ in wanted}


def is_like(value: str, pattern: str) -> bool:
    """Whether a field's value is what a rule says; `*` stands for anything, and case does not count."""
    from fnmatch import fnmatchcase

    return fnmatchcase(value.casefold(), pattern.casefold())


def user_config() -> Path:
    """Where the user's own configuration lies."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".config") / "infinimem" / "config.yaml"


def looks_of(library: Path) -> tuple[tuple[int, ...], ...]:
    """How the files of settings look from outside: another value when one has changed."""
    return tuple(look_of(path) for path in (library / "infinimem.yaml", user_config()))


def look_of(path: Path) -> tuple[int, ...]:
    """A file's identity, size and times; nothing where it cannot be looked at."""
    try:
        seen = path.stat()
    except OSError:
        return ()
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def load_settings(library: Path | None = None, flags: Mapping[str, Value] | None = None) -> Settings:
    """The effective settings. An unknown key or an impossible value is a `BadInput` naming file and line."""
    values: dict[str, Value] = {setting.name: setting.default for setting in SETTINGS}
    origins = dict.fromkeys(values, "default")
    if library is not None:
        take_file(library / "infinimem.yaml", values, origins, from_library=True)
    take_file(user_config(), values, origins, from_library=False)
    for setting in SETTINGS:
        if setting.kind in STRUCTURED:
            continue
        for variable in (setting.variable, "INFINIMEM_" + setting.name.upper().replace(".", "_")):
            if variable and os.environ.get(variable):
                values[setting.name] = value_of(setting, os.environ[variable], f"${variable}")
                origins[setting.name] = f"${variable}"
    for name, value in (flags or {}).items():
        values[name] = value_of(BY_NAME[name], value, f"--{name.replace('.', '-')}")
        origins[name] = "flag"
    return Settings(values, origins)


def take_file(path: Path, values: dict[str, Value], origins: dict[str, str], *, from_library: bool) -> None:
    """Take over the settings of one file."""
    try:
        text = path.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}") from error
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if lines in ([], ["format: 1"]):
        return
    import yaml

    from infinimem.text.header import load_yaml

    try:
        content = load_yaml(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        raise BadInput(f"{where}: cannot be read ({getattr(error, 'problem', error)}); correct the line") from error
    if not isinstance(content, Mapping):
        raise BadInput(f"{path}: write settings as `name: value`")
    for name, value in flatten(content):
        where = f"{path}:{line_of(text, name)}"
        if from_library and name == "format":
            continue
        setting = BY_NAME.get(name)
        if setting is None:
            near = difflib.get_close_matches(name, BY_NAME, 1, 0.4)
            meant = f"; did you mean {near[0]}?" if near else "; see: infinimem config"
            raise BadInput(f"{where}: there is no setting {name!r}{meant}")
        if from_library and not setting.in_library:
            raise BadInput(f"{where}: {name} is not taken from a library; set it in {user_config()}")
        taken = value_of(setting, value, where)
        if setting.kind == "access" and values[name]:  # rules only restrict: they add up, whoever made them
            taken = together(str(values[name]), str(taken or "{}"))
            where = f"{origins[name]} and {where}"
        values[name] = taken
        origins[name] = where


def flatten(content: Mapping[Any, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """`{flush: {max_tokens: 1}}` and `flush.max_tokens: 1` alike as dotted names."""
    pairs: list[tuple[str, Any]] = []
    for key, value in content.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and (name not in BY_NAME or BY_NAME[name].kind not in STRUCTURED):
            pairs.extend(flatten(value, f"{name}."))
        else:
            pairs.append((name, value))
    return pairs


def line_of(text: str, name: str) -> int:
    """The 1-based line on which a setting stands, as near as can be told."""
    last = name.rsplit(".", 1)[-1]
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().startswith((f"{name}:", f"{last}:")):
            return number
    inline = re.compile(rf"[{{,\s]['\"]?{re.escape(last)}['\"]?\s*:")  # {max_tokens: 5000}
    return next((number for number, line in enumerate(text.splitlines(), 1) if inline.search(line)), 1)


def value_of(setting: Setting, value: Any, where: str) -> Value:
    """A given value as the setting's type, or `BadInput` saying what it may be."""
    if setting.kind == "retention":
        retention_in(value, where)
        return one_line(value)
    if setting.kind == "access":
        access_in(value, where)
        return one_line(value)
    text = str(value).strip()
    if setting.kind == "count" and not isinstance(value, bool) and re.fullmatch(r"[\d_]+", text) and int(text) > 0:
        return int(text)
    if setting.kind == "size" and not isinstance(value, bool) and re.fullmatch(r"[\d_]+", text):
        return int(text)
    if setting.kind == "number" and not isinstance(value, bool) and re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if setting.kind == "text" and "\n" not in text:
        return text
    if setting.kind == "share" and not isinstance(value, bool):
        try:
            share = float(text)
        except ValueError:
            share = -1.0
        if 0 <= share <= 1:
            return share
    if setting.kind == "duration" and not isinstance(value, bool):
        match = DURATION.fullmatch(text.lower())
        if match:
            return float(match[1]) * SECONDS[match[2]]
    if setting.kind == "truth" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if setting.kind == "choice" and text in setting.choices:
        return text
    if setting.kind == "language" and text.lower() in LANGUAGES:
        return text.lower()
    wanted = {
        "count": "a whole number above 0",
        "size": "a whole number",
        "number": "a number such as 0.25",
        "text": "one line of text",
        "share": "a number from 0 to 1",
        "duration": "a time such as 90s, 30m, 1h or 2d",
        "truth": "true or false",
        "choice": "one of " + ", ".join(setting.choices),
        "language": "one of " + ", ".join(LANGUAGES),
    }[setting.kind]
    raise BadInput(f"{where}: {setting.name} is {wanted}, not {text!r}")


# Rules


def one_line(value: Any) -> str:
    """A list or mapping as one line of JSON; "" for an empty one."""
    import json  # here, because `write` reads settings and does not need it

    return json.dumps(value, ensure_ascii=False, default=str) if value else ""


def structure(value: Any, where: str, kind: type, example: str) -> Any:
    """A list or mapping, from its line of JSON if need be. Raises `BadInput`."""
    if value in ("", None):
        return kind()
    if isinstance(value, str) and value[:1] in "[{":
        import json

        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, kind):
        raise BadInput(f"{where}: this is written as {example}")
    return value


def only_keys(row: Mapping[Any, Any], names: tuple[str, ...], where: str) -> None:
    """Refuse a key that is none of these, naming the nearest."""
    for key in row:
        if key not in names:
            near = difflib.get_close_matches(str(key), names, 1, 0.4)
            meant = f"did you mean {near[0]}?" if near else f"use {', '.join(names)}"
            raise BadInput(f"{where}: there is no {str(key)!r} here; {meant}")


def fields_in(value: Any, where: str) -> tuple[tuple[str, str], ...]:
    """`{source: tool:*, ns: [work, home]}` as pairs of a field and what its value is like."""
    example = "a field and its value, such as {source: 'tool:*'}"
    found: list[tuple[str, str]] = []
    for key, patterns in structure(value, where, dict, example).items():
        for pattern in patterns if isinstance(patterns, list) else [patterns]:
            if pattern is None or isinstance(pattern, list | dict) or not str(pattern):
                raise BadInput(f"{where}: {key} is {example}")
            found.append((str(key), str(pattern)))
    return tuple(found)


def retention_in(value: Any, where: str) -> tuple[Retention, ...]:
    """The rules of a retention setting. Raises `BadInput`."""
    example = "[{where: {source: 'tool:*'}, after: 90d, do: retire}]"
    rules = []
    for number, row in enumerate(structure(value, where, list, example), 1):
        here = f"{where}, rule {number}"
        if not isinstance(row, Mapping):
            raise BadInput(f"{here}: this is written as {example}")
        only_keys(row, ("where", "after", "do"), here)
        match = DURATION.fullmatch(str(row.get("after", "")).strip().lower())
        if match is None:
            raise BadInput(f"{here}: after is a time such as 12h, 90d or 52w, not {str(row.get('after', ''))!r}")
        do = str(row.get("do", "retire"))
        if do not in ("retire", "forget"):
            raise BadInput(f"{here}: do is retire or forget, not {do!r}")
        if "where" in row and not row["where"]:  # perhaps all that it said was commented out
            raise BadInput(f"{here}: where is empty; say a field, or leave where out for a rule about every entry")
        rules.append(Retention(fields_in(row.get("where"), here), float(match[1]) * SECONDS[match[2]], do))
    return tuple(rules)


def access_in(value: Any, where: str) -> dict[str, Access]:
    """The rules of an access setting, by audience. Raises `BadInput`."""
    example = "{mcp: {deny: {sensitivity: private}}}"
    found: dict[str, Access] = {}
    for audience, rules in structure(value, where, dict, example).items():
        here = f"{where}, {audience}"
        only_keys({audience: rules}, AUDIENCES, where)
        if not isinstance(rules, Mapping):
            raise BadInput(f"{here}: this is written as {example}")
        only_keys(rules, ("deny", "allow"), here)
        found[str(audience)] = Access(fields_in(rules.get("deny"), here), fields_in(rules.get("allow"), here))
    return found


def together(one: str, other: str) -> str:
    """Two access settings as one that forbids what either forbids."""
    import json

    both = json.loads(one)
    for audience, rules in json.loads(other).items():
        known = both.setdefault(audience, {})
        for key in ("deny", "allow"):
            for field, patterns in (rules.get(key) or {}).items():
                merge_rule(known.setdefault(key, {}), field, patterns, widen=key == "deny")
    return one_line(both)


def merge_rule(known: dict[str, Any], field: str, patterns: Any, *, widen: bool) -> None:
    """Add a rule about a field: denials add up, and of what is allowed only what both allow stays."""
    new = patterns if isinstance(patterns, list) else [patterns]
    if field not in known:
        known[field] = new
        return
    old = known[field] if isinstance(known[field], list) else [known[field]]
    known[field] = [*old, *new] if widen else [one for one in new if one in old] or ["\0"]
