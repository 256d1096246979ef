"""Stored nights of mode history, which is gone, have all pages."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from nexmark.store import Store
from tests.unit.store.history_nights import SLOWER, record_history
from tests.unit.web import web_nights
from tests.unit.web.pages import EVERYWHERE, at, shown

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside nights of pairs"])
def test_a_night_of_mode_history_has_all_pages(
    browser: TestClient, store: Store, beside: bool
) -> None:
    runs = [record_history(store, number) for number in (1, 2)]
    if beside:
        web_nights.record(store, 5)
    for path in EVERYWHERE:
        shown(browser, path)
    for run in runs:
        assert "mode history" in shown(browser, at(run))
        for query in ("q0", "q5"):
            shown(browser, at(run, "query", query))
    assert SLOWER in shown(browser, at(runs[-1], "query", "q5"))
