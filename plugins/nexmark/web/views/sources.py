"""What a query means and how it is written for Spark: the texts of this package."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from nexmark.config import KNOWN_QUERIES, paths
from nexmark.expectations.reference import reference_sql


@dataclass(frozen=True)
class Source:
    """The reference SQL, and the file with our formulation."""

    reference: str
    formulation: str
    name: str
    title: str


@cache
def source_of(query: str) -> Source | None:
    """Return the texts of a query; None for one that this package does not know."""
    number = re.match(r"q(\d+)", query)
    if query not in KNOWN_QUERIES or number is None:
        return None
    directory = paths.repository() / "nexmark_jobs" / "queries"
    found = sorted(directory.glob(f"q{int(number[1]):02d}_*.py"))
    if not found:
        return None
    text = found[0].read_text(encoding="utf-8")
    first = text.strip('"').partition("\n")[0].rstrip('".')
    return Source(
        reference_sql(query),
        text,
        f"nexmark_jobs/queries/{found[0].name}",
        first.removeprefix(query).strip(),
    )


__all__ = ["Source", "source_of"]
