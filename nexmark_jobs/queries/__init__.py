"""The Nexmark queries, one module each."""

from __future__ import annotations

from nexmark_jobs.queries.base import Formulation, Query, Source, Streams
from nexmark_jobs.queries.q00_pass_through import QUERY as Q0

__all__ = ["QUERIES", "Formulation", "Query", "Source", "Streams"]

QUERIES: dict[str, Query] = {query.name: query for query in (Q0,)}
"""Every query by its name."""
