"""Queries that only experiments run: each asks the same in several ways.

`include/conf/experiments.yaml` says which ways are compared. `run_query.py` runs them as it runs
the Nexmark queries; nights do not.
"""

from nexmark_jobs.own_jobs import own_query
from nexmark_jobs.queries import QUERIES, Query
from nexmark_jobs.queries.formulation import queries_of

EXPERIMENT_QUERIES = queries_of(__name__, __path__)
"""Every query of the experiments by its name."""


def query_named(name: str) -> Query:
    """Return a query of the nights, of the experiments or of a person; KeyError for no name."""
    known = QUERIES | EXPERIMENT_QUERIES
    return known[name] if name in known else own_query(name)
