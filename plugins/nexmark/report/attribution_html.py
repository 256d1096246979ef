"""Where the time went, as HTML: the part of an alarm's page that explains it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nexmark.report.html import folded, lines, section, table

_SHOWN = 12
"""So many parts are seen at once; the others are folded away."""
_PARTS = (
    *("part", "stage", "in_the_plans", "baseline", "candidate", "difference", "share"),
    *("from", "to", "how_it_is_known"),
)
_MATCHES = {"both": "both", "added": "candidate only", "removed": "baseline only"}
_WAITS = ("name", "baseline_s", "candidate_s")


def render_attribution(attribution: Mapping[str, Any] | None) -> str:
    """Return the section on why a query changed (``report.attribution``); "" where none is known.

    The parts are in CPU-seconds per million events, ranked by what they contribute to the change.
    """
    if attribution is None:
        return ""
    rows = [_part(part) for part in attribution["parts"]]
    others, waits = rows[_SHOWN:], attribution["waits"]
    return section(
        f"Where the time went: {attribution['kind']}",
        lines([x for x in (attribution["words"], *attribution["notes"]) if x]),
        table(rows[:_SHOWN], _PARTS) if rows else lines(["No operators are known."]),
        folded(f"{len(others)} more parts", table(others, _PARTS)) if others else "",
        folded("Where it waited, seconds of a repetition", table(waits, _WAITS)) if waits else "",
    )


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    share = part["share"]
    return {
        "part": part["name"] if part["kind"] == "operator" else f"{part['name']} ({part['kind']})",
        "stage": part["stage"],
        "in_the_plans": _MATCHES[part["match"]] if part["kind"] == "operator" else None,
        "baseline": part["baseline"],
        "candidate": part["candidate"],
        "difference": part["contribution"],
        "share": None if share is None else f"{share:.0%}",
        "from": part["lo"],
        "to": part["hi"],
        "how_it_is_known": "estimated" if part["estimated"] else "measured",
    }


__all__ = ["render_attribution"]
