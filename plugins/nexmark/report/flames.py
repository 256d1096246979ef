"""The flame graphs of a query in its evidence: as plain data, and as HTML."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nexmark.flames import flames_of
from nexmark.report.html import folded, image, lines, section, table
from nexmark.store.models import Night

_GRAPHS = {
    "difference": "What changed: the candidate against the baseline",
    "baseline": "The baseline",
    "candidate": "The candidate",
}


def flames_json(night: Night, query: str) -> dict[str, Any] | None:
    """Return what was recorded of a query, ready for JSON; None where nothing was."""
    found = flames_of(Path(night.directory), query)
    if found is None:
        return None
    return {
        "problem": found.problem,
        "basis": found.basis,
        "cpu_s_per_mevent": dict(found.cpu_s_per_mevent),
        "samples": dict(found.samples),
        "changes": [change.as_json() for change in found.changes],
        "files": {name: str(path) for name, path in found.files.items()},
    }


def render_flames(flames: Mapping[str, Any] | None) -> str:
    """Return the section with the flame graphs in it; "" where nothing was recorded."""
    if flames is None:
        return ""
    if flames["problem"]:
        return section("Flame graphs", lines([f"There are none: {flames['problem']}"]))
    changes, files = flames["changes"], flames["files"]
    first, *others = (image(Path(files[name]), caption) for name, caption in _GRAPHS.items())
    return section(
        "Flame graphs",
        first,
        table(changes, list(changes[0])) if changes else lines(["No method changed."]),
        folded("Each arm by itself", "\n".join(others)),
    )


__all__ = ["flames_json", "render_flames"]
