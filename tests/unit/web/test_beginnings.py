"""The tables of many nights name a build as the beginning of a red only if the build was new."""

from __future__ import annotations

import html
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from nexmark.evidence.alarms import alarm_groups, since_of
from nexmark.evidence.night_list import overview
from nexmark.model import SUITE, Value
from nexmark.store import BuildRecord, RepetitionRecord, Store
from tests.unit.store.night_builder import OK, judged, measurement, paired
from tests.unit.store.store_builder import DAG, STARTED, statements
from tests.unit.web.pages import shown

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

OLD, NEW = BuildRecord("sha-430", "4.3.0", "pypi:4.3.0"), BuildRecord("sha-431", "4.3.1", "pypi:x")
SLOW = replace(OK, value=Value.REGRESSION, ratio=1.12, reason="slower")
PARTITIONS = "spark.sql.shuffle.partitions"
BUILD, CONF = "build 4.3.1 pypi:x sha-431", f"conf {PARTITIONS} 2 -> 60"
SAME = "the same build 4.3.0 pypi sha-430, confs and workload as the night before"


def recorded(store: Store, number: int, *verdicts: Any, partitions: int = 2, **night: Any) -> str:
    """A judged night whose candidate ran with a number of partitions."""
    run = judged(store, number, *verdicts, **night)
    for repetition in (1, 2):
        confs = {PARTITIONS: str(partitions), "spark.of.repetition": str(repetition + number)}
        made = RepetitionRecord(
            run, "q0", repetition, measurement=measurement(), result={"confs": confs}
        )
        store.record_repetition(made)
        store.record_repetition(replace(made, query="q5"))
    return run


def since(store: Store, run: str) -> str:
    """The beginning of the only red of a night on the night's own page, without the night."""
    (group,) = alarm_groups(store, store.night(run), store.verdicts(run))
    return since_of(store, group).removeprefix("since ").partition(" (night ")[0]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"build": NEW}, BUILD),
        ({"partitions": 60}, CONF),
        ({"build": NEW, "partitions": 60}, f"{BUILD} and {CONF}"),
        ({"workload": "small"}, "workload smoke -> small"),
        (
            {"workload_spec": {"events": 7, "seed": 1, "repetitions": 9}},
            "workload smoke, events 100000 -> 7",
        ),
    ],
)
@pytest.mark.parametrize("query", ["q5", SUITE])
def test_the_tables_name_what_was_new_as_the_page_of_the_night_does(
    store: Store, browser: TestClient, changed: dict[str, Any], words: str, query: str
) -> None:
    """Red nights after the first one do not change what the red began with."""
    slow = replace(SLOW, query=query)
    recorded(store, 1, replace(OK, query=query), build=OLD)
    run = recorded(store, 2, slow, **{"build": OLD, **changed})
    assert since(store, run) == words
    recorded(store, 3, slow, **{"build": OLD, **changed, "partitions": 7})
    (issue,) = overview(store, [DAG]).issues
    assert issue.since == words
    reds = html.unescape(shown(browser, "/")).partition('id="reds"')[2]
    assert f"<td>{words}</td>" in reds
    page = html.unescape(shown(browser, f"/query/{query}"))
    assert f"</a>, with {words}, in 2 nights" in page
    assert f"<td>{words}</td>" in page


def test_a_build_that_ran_the_night_before_is_not_blamed(store: Store, browser: TestClient) -> None:
    """Nor is a night between them that was not judged, or that a person started."""
    recorded(store, 1, OK, build=OLD)
    recorded(store, 2, SLOW, build=NEW, teaches=False)
    store.record_night(paired(3, run_id="n3", started=STARTED + timedelta(days=3), build=NEW))
    recorded(store, 4, SLOW, build=OLD)
    assert SAME in shown(browser, "/")
    assert f"with {SAME}, in 1 night" in shown(browser, "/query/q5")


def test_confs_that_nobody_recorded_are_not_said_to_be_the_same(store: Store) -> None:
    judged(store, 1, OK, build=OLD)
    run = recorded(store, 2, SLOW, build=OLD)
    (issue,) = overview(store, [DAG]).issues
    assert issue.since == "the same build 4.3.0 pypi sha-430 and workload as the night before"
    (group,) = alarm_groups(store, store.night(run), store.verdicts(run))
    assert since_of(store, group) == f"since night {run}, with {issue.since}"


def test_the_first_night_of_all_names_its_build(store: Store) -> None:
    recorded(store, 1, SLOW, build=NEW)
    (issue,) = overview(store, [DAG]).issues
    assert issue.since == BUILD


def test_no_build_is_blamed_where_a_person_chose_what_to_compare(
    store: Store, browser: TestClient
) -> None:
    """A place without a nightly night: its page shows what was tried there."""
    recorded(store, 1, OK, build=OLD, teaches=False)
    recorded(store, 2, SLOW, build=NEW, partitions=60, teaches=False)
    assert "with what a person tried, in 1 night" in shown(browser, "/query/q5")


def test_a_hundred_reds_take_as_few_statements_as_one(store: Store) -> None:
    """The first page has a limit of its time."""
    recorded(store, 1, SLOW, build=OLD)
    recorded(store, 2, OK, build=OLD)
    with statements(store) as of_one:
        overview(store, [DAG])
    for number in range(3, 40):
        recorded(store, number, SLOW if number % 2 else OK, build=(OLD, NEW)[number % 2])
    with statements(store) as of_many:
        assert len(overview(store, [DAG]).issues) == 20
    assert len(of_many) == len(of_one)
