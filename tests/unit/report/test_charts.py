"""Charts as SVG: they take the colours of the page and share nothing."""

from __future__ import annotations

import json
import re

import pytest

from nexmark.evidence.night_evidence import night_evidence
from nexmark.evidence.query_evidence import query_evidence
from nexmark.model import Value
from nexmark.report.charts import Chart, night_charts, query_charts, time_charts
from nexmark.store import Store
from tests.unit.web import web_nights


@pytest.fixture
def charts(store: Store) -> list[Chart]:
    """All charts of a red night and of its red query."""
    run = web_nights.record(store, 1, {"q0": Value.OK, "q5": Value.REGRESSION})
    night = store.night(run)
    query = query_evidence(store, night, "q5")
    return [*night_charts(night_evidence(store, night)), *query_charts(query), *time_charts(query)]


def test_one_specification_is_drawn_by_a_page_and_as_svg(charts: list[Chart]) -> None:
    assert len(charts) == 8
    for chart in charts:
        json.dumps(chart.spec, allow_nan=False)
        assert chart.rows
        svg = chart.svg()
        assert 'fill="currentColor"' in svg
        assert not re.search(r'fill="(black|#000|white|#fff|candidate|bad|band)"', svg)
        assert "xmlns" not in svg


def test_two_on_a_page_share_no_id() -> None:
    spec = {
        "data": {"values": [{"x": 1, "y": 1}, {"x": 9, "y": 9}]},
        "mark": {"type": "line", "clip": True},
        "encoding": {name: {"field": name, "type": "quantitative"} for name in "xy"},
    }
    drawn = [Chart("", "", spec, (), ()).svg() for _ in range(2)]
    first, second = (set(re.findall(r'id="([^"]+)"', svg)) for svg in drawn)
    assert first
    assert first.isdisjoint(second)
    assert set(re.findall(r"url\(#([^)]+)\)", drawn[0])) == first


def test_a_text_that_is_named_like_a_colour_stays_a_text() -> None:
    spec = {
        "data": {"values": [{"color": "bad"}]},
        "mark": {"type": "text", "color": "bad"},
        "encoding": {"text": {"field": "color"}},
    }
    svg = Chart("", "", spec, (), ()).svg()
    assert ">bad<" in svg
    assert 'fill="#e03131"' in svg


def test_nothing_to_draw_is_no_chart(store: Store) -> None:
    made = web_nights.paired_night(1)
    web_nights.start(store, made)
    night = store.night(made.run)
    query = query_evidence(store, night, "q5")
    assert (night_charts(night_evidence(store, night)), query_charts(query)) == ([], [])
    assert time_charts(query) == []
