"""The prompts: one Markdown file each, shipped in the wheel, overridden one by one by the user's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from infinimem.config import user_config
from infinimem.errors import BadInput

PACKAGE = Path(__file__).resolve().parent.parent
INPUT = "# Input\n"
"""Where the part of a prompt begins that differs from call to call; what stands before it, a server can cache."""
FENCE = "~~~"
PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


def shipped(name: str) -> Path:
    """A folder or file that ships beside the code: inside the package when installed, at the top of a checkout."""
    inside = PACKAGE / name
    return inside if inside.exists() else PACKAGE.parent / name


def load_prompt(name: str) -> str:
    """The prompt called `name`: the user's own from `prompts/` beside their configuration, else the shipped one."""
    for folder in (user_config().parent / "prompts", shipped("prompts")):
        path = folder / f"{name}.md"
        try:
            return path.read_text("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise BadInput(f"{path} cannot be read: {reason}; correct or remove it") from error
    raise BadInput(f"there is no prompt {name!r}; reinstall infinimem")


def fill(prompt: str, values: Mapping[str, str]) -> str:
    """The prompt with each `{{name}}` replaced; in one pass, so that no value is read as a placeholder."""
    return PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), prompt)


def prompt_for(step: str, values: Mapping[str, str]) -> tuple[str, str]:
    """A step's prompt as system and user message."""
    rules, mark, given = load_prompt(step).partition(INPUT)
    if not mark:  # a user's own prompt may have no such heading
        return "", fill(rules, values)
    return fill(rules, values).strip(), fill(given, values).strip()


def harmless(text: str) -> str:
    """Stored text that cannot close the fence which marks it as data."""
    return text.replace(FENCE, "~ ~ ~")
