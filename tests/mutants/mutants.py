"""Near misses of the formulations: the source of a query with some text changed.

The changes are in ``mutants.yaml``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import yaml

from nexmark_jobs import queries
from nexmark_jobs.queries import QUERIES, Query


@dataclass(frozen=True)
class Mutant:
    """One near miss: replace text (old: new) in the module of a formulation.

    With `module` that is another one, whose text `change` is of; `change_too` is then of the
    query's own. `fails` is what a mutant says that fails instead of yielding wrong rows.
    """

    query: str
    wrong: str
    change: Mapping[str, str]
    change_too: Mapping[str, str] = field(default_factory=dict)
    module: str | None = None
    formulation: str | None = None
    fails: str | None = None

    def mutated(self) -> Query:
        """The query of the changed source."""
        own = QUERIES[self.query].formulations[0].build.__module__
        if self.module is None:
            return _query(self.query, _load(own, self.change))
        helper = _load(f"{queries.__name__}.{self.module}", self.change)
        with patch.dict(sys.modules, {helper.__name__: helper}):
            return _query(self.query, _load(own, self.change_too))

    def __str__(self) -> str:
        name = self.query if self.formulation is None else f"{self.query} ({self.formulation})"
        return f"{name} {self.wrong}"


def _load(name: str, change: Mapping[str, str]) -> ModuleType:
    """A module of its own, from the changed source of module `name`."""
    path = Path(sys.modules[name].__file__ or "")
    text = path.read_text(encoding="utf-8")
    for old, new in change.items():
        assert old in text, f"{path.name} does not hold '{old}'"
        text = text.replace(old, new)
    module = ModuleType(name)
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


def _query(name: str, module: ModuleType) -> Query:
    (query,) = (q for q in vars(module).values() if isinstance(q, Query) and q.name == name)
    return query


def _mutants() -> list[Mutant]:
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    return [
        Mutant(query, **entry)
        for query, entries in yaml.safe_load(text).items()
        for entry in entries
    ]


MUTANTS = _mutants()
