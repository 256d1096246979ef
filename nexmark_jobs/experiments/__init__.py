"""Queries that only experiments run: each asks the same in several ways.

`include/conf/experiments.yaml` says which ways are compared. `run_query.py` runs them as it runs
the Nexmark queries; nights do not.
"""

from nexmark_jobs.experiments import (
    aligned_keys,
    joined_counts,
    json_parsing,
    long_window,
    reused_view,
)
from nexmark_jobs.queries import QUERIES, Query

__all__ = ["EXPERIMENT_QUERIES", "query_named"]

EXPERIMENT_QUERIES: dict[str, Query] = {
    query.name: query
    for query in (
        long_window.QUERY,
        reused_view.QUERY,
        aligned_keys.DISTINCT_BIDDERS,
        aligned_keys.NEW_SELLERS,
        joined_counts.QUERY,
        json_parsing.ALL_FIELDS,
        json_parsing.TWO_FIELDS,
    )
}
"""Every query of the experiments by its name."""


def query_named(name: str) -> Query:
    """A query of the nights or of the experiments; KeyError for an unknown name."""
    return QUERIES[name] if name in QUERIES else EXPERIMENT_QUERIES[name]
