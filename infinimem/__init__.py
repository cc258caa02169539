"""Memory that lasts: a folder of plain text that tidies itself and answers with its sources.

from infinimem import Library

library = Library.open("memory", create=True)
library.write("Maya joined Nordlys.", source="user", time="2026-05-01")

What `__all__` names is public and stays; docs/api.md describes it. Every other module may change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from infinimem.ask import Answer, Evidence, Round
    from infinimem.check import Finding
    from infinimem.consolidate.extract import Extracted
    from infinimem.consolidate.run import Report
    from infinimem.errors import (
        BadInput,
        BadPattern,
        BadPlan,
        BudgetSpent,
        ChangedOnDisk,
        InfinimemError,
        Interrupted,
        ModelFailed,
        NeedsAttention,
        NoLibrary,
        NotFound,
        StorageFailed,
        UnknownSeq,
        UnknownTopic,
        Unreadable,
    )
    from infinimem.evolve.interpretation import Strayed, Version
    from infinimem.evolve.reconsolidate import Learned
    from infinimem.evolve.review import Edit, Review
    from infinimem.evolve.timeline import Held
    from infinimem.exchange.export.load import Loaded
    from infinimem.exchange.export.run import Exported
    from infinimem.exchange.run import Imported
    from infinimem.forgetting.forget import Forgotten
    from infinimem.git.chronicle import Row
    from infinimem.git.history import Comparison
    from infinimem.grep import Match
    from infinimem.library import Library
    from infinimem.llm.port import Call, Message, Model, Reply, Request, Tool
    from infinimem.llm.replay import Scripted
    from infinimem.model import (
        CURRENT,
        Block,
        Create,
        Divide,
        Document,
        Entry,
        Extend,
        Filter,
        Header,
        Hit,
        Join,
        Link,
        Merge,
        Outcome,
        Part,
        Problem,
        Retire,
        Signature,
        Span,
        Split,
        Summarise,
        Unit,
        Usage,
    )
    from infinimem.plan.paper import Plan
    from infinimem.readers.evidence import Switches
    from infinimem.reading import Page, Status, Trace
    from infinimem.search.index import CatalogRow
    from infinimem.stats import Spent, Stats
    from infinimem.store.append import Appended
    from infinimem.text.document import parse, render

__version__ = "0.1.0"
_HOMES = {
    "library": "Library",
    "text.document": "parse render",
    "model": "CURRENT Document Header Block Entry Signature Span Problem Unit Hit Filter Usage Outcome "
    "Create Extend Join Retire Split Part Merge Summarise Link Divide",
    "ask": "Answer Evidence Round",
    "reading": "Page Trace Status",
    "search.index": "CatalogRow",
    "grep": "Match",
    "store.append": "Appended",
    "consolidate.run": "Report",
    "consolidate.extract": "Extracted",
    "plan.paper": "Plan",
    "check": "Finding",
    "stats": "Stats Spent",
    "evolve.review": "Review Edit",
    "evolve.timeline": "Held",
    "evolve.interpretation": "Strayed Version",
    "evolve.reconsolidate": "Learned",
    "git.chronicle": "Row",
    "git.history": "Comparison",
    "exchange.run": "Imported",
    "exchange.export.run": "Exported",
    "exchange.export.load": "Loaded",
    "forgetting.forget": "Forgotten",
    "readers.evidence": "Switches",
    "llm.port": "Model Request Reply Message Tool Call",
    "llm.replay": "Scripted",
    "errors": "InfinimemError NotFound BadInput NoLibrary UnknownTopic UnknownSeq BadPattern BadPlan NeedsAttention "
    "ChangedOnDisk Unreadable StorageFailed ModelFailed BudgetSpent Interrupted",
}
"""Where each public name is at home. It is loaded when it is first asked for, so that importing does nothing."""
__all__ = [
    "CURRENT",
    "Answer",
    "Appended",
    "BadInput",
    "BadPattern",
    "BadPlan",
    "Block",
    "BudgetSpent",
    "Call",
    "CatalogRow",
    "ChangedOnDisk",
    "Comparison",
    "Create",
    "Divide",
    "Document",
    "Edit",
    "Entry",
    "Evidence",
    "Exported",
    "Extend",
    "Extracted",
    "Filter",
    "Finding",
    "Forgotten",
    "Header",
    "Held",
    "Hit",
    "Imported",
    "InfinimemError",
    "Interrupted",
    "Join",
    "Learned",
    "Library",
    "Link",
    "Loaded",
    "Match",
    "Merge",
    "Message",
    "Model",
    "ModelFailed",
    "NeedsAttention",
    "NoLibrary",
    "NotFound",
    "Outcome",
    "Page",
    "Part",
    "Plan",
    "Problem",
    "Reply",
    "Report",
    "Request",
    "Retire",
    "Review",
    "Round",
    "Row",
    "Scripted",
    "Signature",
    "Span",
    "Spent",
    "Split",
    "Stats",
    "Status",
    "StorageFailed",
    "Strayed",
    "Summarise",
    "Switches",
    "Tool",
    "Trace",
    "Unit",
    "UnknownSeq",
    "UnknownTopic",
    "Unreadable",
    "Usage",
    "Version",
    "__version__",
    "parse",
    "render",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for."""
    home = next((module for module, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value  # found without this function from now on
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
