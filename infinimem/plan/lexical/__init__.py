"""The planner that needs no model: it groups, routes, splits, merges and names by the entries' own words."""

from infinimem.plan.lexical.repeat import duplicates
from infinimem.plan.lexical.route import Candidate, plan_merge, route
from infinimem.plan.lexical.segment import segment
from infinimem.plan.lexical.split import plan_promote, plan_split
from infinimem.plan.lexical.summary import summarise
from infinimem.plan.lexical.titles import heading_of, slug_of, title_of

__all__ = [
    "Candidate",
    "duplicates",
    "heading_of",
    "plan_merge",
    "plan_promote",
    "plan_split",
    "route",
    "segment",
    "slug_of",
    "summarise",
    "title_of",
]
