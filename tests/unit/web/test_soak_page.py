"""What a person sees of a soak night: what grows, since when, how sure, and no ratio of it."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from fastapi.testclient import TestClient

from bench.soak import NONE
from nexmark.cli.app import main
from nexmark.evidence.explaining import reproduce
from nexmark.evidence.night_evidence import make_report
from nexmark.evidence.night_rows import night_rows
from nexmark.evidence.query_evidence import query_evidence
from nexmark.report.evidence_json import query_json
from nexmark.report.gauges import gauges
from nexmark.store import Store
from tests.unit.store.soak_builder import LEAK, QUERY, soaked
from tests.unit.web.pages import at, shown


@pytest.fixture
def run(store: Store) -> str:
    """A soak night whose candidate leaks, after one in which nothing does."""
    soaked(store, 1, NONE)
    return soaked(store, 2, LEAK, LEAK)[0].night


def test_the_first_lines_say_what_grows_since_when_and_how_sure(store: Store, run: str) -> None:
    what, why, *_ = make_report(store, run).lines
    assert what.startswith("NIGHT FAILED: 1 growing (q5)")
    assert "live heap of the driver +10." in why
    assert re.search(r"per 1,000 batches since batch 300, baseline", why)
    assert re.search(r"baseline \+0\.[23]", why)


def test_the_page_has_a_line_for_each_figure_and_no_ratio(browser: TestClient, run: str) -> None:
    page = shown(browser, at(run, "query", QUERY))
    for text in ("Live heap of the driver", "Threads of the driver", "CPU time of a batch"):
        assert text in page
    assert "times its limit" in page
    assert "No pair is complete" not in page
    assert not re.search(r">\s*Pairs\s*<", page)  # growths have no ratio
    assert "No night has a ratio" not in page
    assert "CPU s/batch" in shown(browser, at(run))  # the fixed cost of a batch, in the table


def test_the_evidence_has_the_lines_of_both_arms_with_their_growth(store: Store, run: str) -> None:
    evidence: Any = query_json(query_evidence(store, store.night(run), QUERY))
    heap = [line for line in evidence["ageing"] if line["name"] == "live heap of the driver"]
    growth = {line["arm"]: line["growths"][-1][0] for line in heap}
    assert growth["candidate"] == pytest.approx(10.3, abs=0.2)
    assert growth["baseline"] == pytest.approx(0.3, abs=0.2)
    assert "batch_cpu_s" in {row["metric"] for row in evidence["verdicts"]}


def test_the_command_that_measures_it_again_is_a_soak_of_the_same_length(
    store: Store, run: str
) -> None:
    words = shlex.split(reproduce(store, night_rows(store, store.night(run)), QUERY))
    assert words[:2] == ["nexmark", "soak"]
    assert words[words.index("--batches") + 1] == "1200"
    assert words[words.index("--queries") + 1] == QUERY
    assert "--repetitions" not in words


def test_the_history_has_the_growth_of_each_night(
    store: Store, run: str, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["history", "--query", QUERY, "--workload", "soak", "--db", database]) == 0
    out = capsys.readouterr().out
    assert "times the limit" in out
    assert "REGRESSION" in out


def test_metrics_have_the_growth(store: Store, run: str) -> None:
    values = {gauge.name: gauge.value for gauge in gauges(make_report(store, run))}
    assert values["query.growth"] > 4
