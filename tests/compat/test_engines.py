"""Every stateful query of a running job survives the upgrade, and the way back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nexmark.compatibility.cases import Case, Input, Side
from nexmark.compatibility.check import check
from nexmark.compatibility.results import UpgradeClass, matrix
from nexmark.engines import Build
from nexmark_jobs.queries import QUERIES
from tests.conftest import ENGINES

STATEFUL = 16


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("engine", [ENGINES[0], ENGINES[-1]])
def test_every_stateful_query_goes_on(engine: str, engine_build: Callable[[str], Build]) -> None:
    first, second = Side(engine_build(engine)), Side(engine_build(ENGINES[0]))
    cases = []
    for query in QUERIES.values():
        name = query.formulation(first.build.version).name
        cases.append(Case(query.name, name, name))
    found = check(first, second, cases, Input(), print, only_stateful=True)
    print(matrix(found))
    assert [
        (each.case.query, each.reason) for each in found if each.class_ != UpgradeClass.SAME
    ] == []
    assert len(found) == STATEFUL
