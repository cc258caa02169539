"""The planner that needs no model: it groups, routes, splits, merges and names by the entries' own words."""

from infinimem.plan.lexical.place import Frequencies, is_odds, place, plan_sort, plan_union
from infinimem.plan.lexical.refer import Named, named_in, share_a_subject
from infinimem.plan.lexical.repeat import duplicates
from infinimem.plan.lexical.route import Candidate, plan_merge, route
from infinimem.plan.lexical.segment import is_talk, part, segment
from infinimem.plan.lexical.split import plan_promote, plan_split
from infinimem.plan.lexical.summary import pieces_of, summarise
from infinimem.plan.lexical.titled import (
    Titled,
    gather,
    homes_of,
    is_stream,
    is_titled,
    only_title,
    part_titled,
    pieces_of_stream,
)
from infinimem.plan.lexical.titles import heading_of, slug_of, title_of

__all__ = [
    "Candidate",
    "Frequencies",
    "Named",
    "Titled",
    "duplicates",
    "gather",
    "heading_of",
    "homes_of",
    "is_odds",
    "is_stream",
    "is_talk",
    "is_titled",
    "named_in",
    "only_title",
    "part",
    "part_titled",
    "pieces_of",
    "pieces_of_stream",
    "place",
    "plan_merge",
    "plan_promote",
    "plan_sort",
    "plan_split",
    "plan_union",
    "route",
    "segment",
    "share_a_subject",
    "slug_of",
    "summarise",
    "title_of",
]
