"""A person accepts some queries until a day with the DAG; it reports a mistake in one line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from nexmark.store import open_store
from tests.airflow_site import Airflow
from tests.site import ENGINE, Site
from tests.story.signing_off import DAG_ID as SIGN_OFF
from tests.story.signing_off import SignOff

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.extended]


def accept(airflow: Airflow, site: Site, run: str, **conf: Any) -> tuple[str, list[str]]:
    """Run the DAG; the state that it ends in, and what it told."""
    progress = site.home.parent / "progress.txt"
    before = len(progress.read_text()) if progress.exists() else 0
    given = {"run": f"{SIGN_OFF}/{run}", "reason": "meant", **conf}
    state = airflow.run("nexmark_accept", given)
    return state, progress.read_text()[before:].splitlines()


def test_a_night_is_the_baseline_of_its_queries_from_then_on(
    airflow: Airflow, site: Site, asked: SignOff, results: str
) -> None:
    state, told = accept(
        airflow, site, asked.run, queries="q0", expires="30d", link="https://issues/1"
    )
    assert state == "success"
    (line,) = told
    assert line.startswith(f"{SIGN_OFF}/{asked.run} is now the baseline of q0 until 20")
    with open_store(results) as store:
        row = store.accepted(ENGINE, "tiny", "local", datetime.now(UTC))["q0"]
    assert (row.query, row.who, row.reason) == ("q0", "admin", "meant")
    assert (row.night_id, row.link) == (f"{SIGN_OFF}/{asked.run}", "https://issues/1")
    assert row.expires is not None
    assert timedelta(days=29) < row.expires - datetime.now(UTC) < timedelta(days=30)


@pytest.mark.parametrize(
    ("conf", "says"),
    [
        ({"queries": ["q55"]}, "has no query 'q55'; known: q0"),
        ({"expires": "2020-01-01"}, "until 2020-01-01 00:00 is over already; give a later day"),
        ({"expires": "soon"}, "expires: 'soon' is neither a day (2027-01-31) nor a number"),
        ({"reason": "  "}, "needs a reason"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_accepted(
    airflow: Airflow, site: Site, asked: SignOff, results: str, conf: dict[str, Any], says: str
) -> None:
    with open_store(results) as store:
        before = len(store.acceptances())
    state, told = accept(airflow, site, asked.run, by="ada", **conf)
    assert state == "failed"
    (line,) = told
    assert line.startswith("accept: failed: ")
    assert says in line
    with open_store(results) as store:
        assert len(store.acceptances()) == before
