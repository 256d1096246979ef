"""The names of the queries, known without importing Spark.

A test holds this list equal to the registry in `nexmark_jobs.queries`.
"""

from __future__ import annotations

#: The queries of a night unless a workload names its own: the classic q0 to q22, and q23.
STANDARD_QUERIES: tuple[str, ...] = tuple(f"q{number}" for number in range(24))

#: Named variants, by the query that they stand behind.
_VARIANTS: dict[str, tuple[str, ...]] = {"q14": ("q14_python_udf",)}

#: Every query that may be named, in the order in which they are run.
KNOWN_QUERIES: tuple[str, ...] = tuple(
    name for query in STANDARD_QUERIES for name in (query, *_VARIANTS.get(query, ()))
)

__all__ = ["KNOWN_QUERIES", "STANDARD_QUERIES"]
