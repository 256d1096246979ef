"""The names of the queries, known without importing Spark.

A test holds this list equal to the registry in `nexmark_jobs.queries`.
"""

from __future__ import annotations

#: The queries of a night unless a workload names its own: the classic q0 to q22, and q23.
STANDARD_QUERIES: tuple[str, ...] = tuple(f"q{number}" for number in range(24))

#: Every query that may be named: the standard ones and the named variants.
KNOWN_QUERIES: tuple[str, ...] = (*STANDARD_QUERIES, "q14_python_udf")

__all__ = ["KNOWN_QUERIES", "STANDARD_QUERIES"]
