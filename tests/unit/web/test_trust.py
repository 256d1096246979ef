"""How far a night can be trusted: one figure of the canary, and verdicts by their own words."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from nexmark.config.load import load_gate
from nexmark.evidence.gate_health import gate_health, hosts_of
from nexmark.evidence.night_rows import night_rows
from nexmark.model import Value
from nexmark.report.charts import verdicts_chart
from nexmark.store import BuildRecord, Store
from nexmark.store.table_rows import CanaryRow
from nexmark.verdict.eligibility import grade
from tests.unit.store.store_builder import DAG, STARTED
from tests.unit.web import web_nights
from tests.unit.web.pages import at, shown

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def readings(metric: str, before: list[float], after: list[float], **more: str) -> list[CanaryRow]:
    """Readings of one timing around a group on the host n09."""
    return [
        CanaryRow(
            **{"host": "n09", "group": "q5", "metric": metric, "taken": STARTED, **more},
            **{"moment": moment, "value": value},
        )
        for moment, values in (("before", before), ("after", after))
        for value in values
    ]


def unsteady() -> list[CanaryRow]:
    """Readings whose means are not apart, while their medians are; the grade compares medians."""
    return readings("cpu_s", [1.0, 1.0, 1.5], [1.158, 1.158, 0.9])


@pytest.fixture
def run(store: Store) -> str:
    """A night on a host that the canary found unsteady around q5, and steady around q0."""
    run = web_nights.record(store)
    quiet = readings("cpu_s", [1.0] * 9, [1.0] * 9, group="q0")
    moved = readings("cpu_memory_s", [1.0], [1.3])  # it moves at rest, and the grade allows it
    store.record_canary(run, [*unsteady(), *quiet, *moved])
    graded = grade(store.paired_night(run).canary, load_gate())
    store.record_grade(run, graded.steadiness.name.lower(), graded.reason)
    return run


def test_the_canary_of_a_host_is_the_figure_that_the_grade_names(
    browser: TestClient, store: Store, run: str
) -> None:
    text = shown(browser, at(run))
    reason = store.night(run).grade_reason or ""
    said = re.search(r"canary cpu_s on n09: before and after are ([0-9.]+)% apart", reason)
    assert said is not None, reason
    (host,) = (
        row
        for row in hosts_of(night_rows(store, store.night(run)).canaries, reason)
        if row.name == "n09"
    )
    assert f"{100 * (host.apart or 0):.1f}" == said[1] == "15.8"
    assert f"canary {said[1]} % apart" in re.sub(r"<[^>]+>", "", text)


def test_a_host_that_the_grade_does_not_name_has_its_largest_drift() -> None:
    faster = readings("cpu_s", [2.0], [1.0], group="q7")
    (host,) = hosts_of([*unsteady(), *faster, *readings("fsync_s", [1.0], [9.0])])
    assert (host.timing, host.drift, host.apart) == ("cpu_s", 0.5, 1.0)
    (host,) = hosts_of(readings("fsync_s", [1.0], [9.0]), "canary fsync_s on n09: before and ...")
    assert (host.timing, host.apart) == ("fsync_s", 8.0)


def test_queries_of_which_as_much_can_be_seen_are_in_the_order_of_their_numbers(
    browser: TestClient, store: Store
) -> None:
    """Else q10 comes before q2; the queries of the night are in another order."""
    run = web_nights.record(store, 1, dict.fromkeys(("q10", "q2", "q11", "q20", "q1"), Value.OK))
    sizes = {"q20": 0.2}
    verdicts = [replace(each, mde=sizes.get(each.query, 0.07)) for each in store.verdicts(run)]
    store.record_verdicts(run, verdicts)
    table = shown(browser, "/gate").partition('<table class="seen">')[2].partition("</table>")[0]
    order = re.findall(r'<th scope="row">(q\d+)</th>', table)
    assert order == ["q20", "q1", "q2", "q10", "q11"]


def test_the_legend_of_gate_health_has_the_words_of_the_verdicts(store: Store) -> None:
    values = dict(web_nights.ALL_VALUES)
    web_nights.record(store, 1, values)
    chart = verdicts_chart(gate_health(store, [DAG]))
    assert chart is not None
    color, opacity = (chart.spec["encoding"][name] for name in ("color", "opacity"))
    assert color["field"] == opacity["field"] == "verdict"
    assert set(color["scale"]["domain"]) == set(Value)
    looks = list(zip(color["scale"]["range"], opacity["scale"]["range"], strict=True))
    assert len(set(looks)) == len(Value)
    drawing = chart.svg()
    assert all(f">{value}</text>" in drawing for value in Value)


def test_the_facts_name_the_confs_of_a_trial_and_each_baseline_in_a_line_of_its_own(
    browser: TestClient, store: Store
) -> None:
    """Else a trial of a conf looks like a build compared with itself."""
    other = BuildRecord("sha-third", "4.2.9", "pypi:4.2.9")
    run = web_nights.record(
        store,
        1,
        candidate_conf={"spark.sql.shuffle.partitions": "16"},
        baselines={"q0": web_nights.OLD.id, "q5": other.id},
        baseline_builds=[web_nights.OLD, other],
    )
    facts = shown(browser, at(run)).partition('<dl class="facts">')[2].partition("</dl>")[0]
    assert "alone</span> had spark.sql.shuffle.partitions=16</dd>" in facts
    assert facts.count("<br>") == 1
    assert "two</a> <span" in facts
