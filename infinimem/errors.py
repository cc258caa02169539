"""Every way a request can fail, with the exit code that the command line gives it.

InfinimemError                1   never raised itself
├── NotFound                  1   nothing found / not in memory
├── BadInput                  2   usage, or input that cannot be understood
│   ├── NoLibrary             2   no library here; names `infinimem init`
│   ├── UnknownTopic          2
│   ├── UnknownSeq            2
│   ├── BadPattern            2   a regular expression that cannot be read
│   └── BadPlan               2   a plan file that does not parse, or is for another buffer
├── NeedsAttention            3   the library cannot be changed as it is; `check` says what
│   ├── ChangedOnDisk         3   a file changed between reading and writing; nothing was written
│   ├── Unreadable            3   a file that cannot be understood is never rewritten
│   └── StorageFailed         3   the disk refused (full, read-only, permissions); nothing was written
├── ModelFailed               4   the model failed; nothing is lost
│   └── BudgetSpent           4   the next call would exceed `budget.tokens` or the command's time
└── Interrupted             130   state before or after, never between

A message says what, where (`file:line`), and what to do next, on one line.
A problem inside a user's file is not an exception but a `model.Problem`.
"""

from __future__ import annotations


class InfinimemError(Exception):
    """A request that failed; `exit_code` is what the command line returns for it."""

    exit_code = 1


class NotFound(InfinimemError):
    """Nothing in memory matches."""


class BadInput(InfinimemError):
    """The request itself cannot be understood."""

    exit_code = 2


class NoLibrary(BadInput):
    """There is no library where one was looked for."""


class UnknownTopic(BadInput):
    """No document has this id."""


class UnknownSeq(BadInput):
    """No entry has this seq."""


class BadPattern(BadInput):
    """The regular expression cannot be read."""


class BadPlan(BadInput):
    """The plan does not parse, or was made for another buffer."""


class NeedsAttention(InfinimemError):
    """The library has to be looked at before this can be done."""

    exit_code = 3


class ChangedOnDisk(NeedsAttention):
    """A file changed between reading and writing; nothing was written."""


class Unreadable(NeedsAttention):
    """A file cannot be understood, so it is not rewritten."""


class StorageFailed(NeedsAttention):
    """The disk refused a write; the state is the one before."""


class ModelFailed(InfinimemError):
    """The model could not be reached or did not answer usefully; nothing is lost."""

    exit_code = 4


class BudgetSpent(ModelFailed):
    """The next call would exceed the budget of tokens, or the time that the command may take."""


class Interrupted(InfinimemError):
    """Stopped by the user; the state is the one before or the one after."""

    exit_code = 130
