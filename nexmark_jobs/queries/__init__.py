"""The Nexmark queries, one module each, and formulations of one's own beside theirs."""

import importlib.util
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from nexmark_jobs.errors import UsageError
from nexmark_jobs.queries.formulation import Formulation, Query, Source, Streams, queries_of

__all__ = ["QUERIES", "Formulation", "Query", "Source", "Streams", "add_formulations"]

QUERIES = queries_of(__name__, __path__)
"""Every query by its name."""

_NAME = "FORMULATIONS"


def add_formulations(file: Path) -> None:
    """Add the formulations of a Python file to the queries of this process, to try a change.

    The file has `FORMULATIONS`: the name of a query -> a tuple of `Formulation`. Raises UsageError
    if the file is missing, fails, or has no `FORMULATIONS`.
    """
    for name, formulations in _read(file).items():
        if name not in QUERIES:
            raise UsageError(f"{file}: {_NAME}: no query {name!r}; use one of {', '.join(QUERIES)}")
        known = QUERIES[name].formulations
        QUERIES[name] = replace(QUERIES[name], formulations=known + tuple(formulations))


def _read(file: Path) -> Mapping[str, tuple[Formulation, ...]]:
    if not file.is_file():
        raise UsageError(f"{file}: there is no such file; give a Python file with {_NAME}")
    spec = importlib.util.spec_from_file_location("extra_formulations", file)
    if spec is None or spec.loader is None:
        raise UsageError(f"{file}: is not a Python file; give one that ends with .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{file}: {type(error).__name__}: {error}; correct the file") from None
    formulations = getattr(module, _NAME, None)
    if not isinstance(formulations, Mapping):
        raise UsageError(f"{file}: has no {_NAME}; it is a dict: query name -> (Formulation, ...)")
    return formulations
