"""The figure of how the gate decides shows what the shipped gate says of a simulated night."""

from __future__ import annotations

from bench.gate_figure import SHOWN, figure, standings_of
from nexmark.config.load import load_gate


def test_each_query_of_the_figure_has_the_end_that_the_page_describes() -> None:
    rules = load_gate()
    standings = list(standings_of(rules, 1))
    last = {one.query: one for one in standings}
    assert [last[query].value for query in SHOWN] == ["OK", "REGRESSION", "OK"]
    assert last["q2"].pairs > last["q1"].pairs > rules.rounds[0]
    assert "REGRESSION" in figure(standings, rules).svg()
