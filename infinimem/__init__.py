"""Memory that lasts: a folder of plain text that tidies itself and answers with its sources.

from infinimem import Library

library = Library.open("memory", create=True)
library.write("Maya joined Nordlys.", source="user", time="2026-05-01")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from infinimem.library import Library

__version__ = "0.1.0"
__all__ = ["Library", "__version__"]


def __getattr__(name: str) -> Any:
    """Load `Library` only when it is asked for: importing the package does nothing."""
    if name == "Library":
        from infinimem.library import Library

        return Library
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
