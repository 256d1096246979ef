"""The figure of what releases cost has the last figure that counts of each query, and no other."""

from __future__ import annotations

from bench.releases_figure import PANELS, estimates_of, figure


def test_each_query_with_a_figure_that_counts_is_a_line_of_its_panel() -> None:
    estimates = {panel.title: list(estimates_of(panel)) for panel in PANELS}
    of_two_releases = {one.query: one for one in estimates["4.3.0 / 3.5.9"]}
    assert list(of_two_releases) == [f"q{number}" for number in range(24)]
    assert of_two_releases["q0"].value == "REGRESSION"  # by the longer nights, not by three pairs
    assert of_two_releases["q0"].lo > 1.1
    assert of_two_releases["q20"].ratio < 1.1  # not 1.157: the host was not steady in that night
    of_a_night = [one.query for one in estimates["4.3.0 / 4.2.1"]]
    assert of_a_night == [f"q{number}" for number in range(24) if number != 12]  # not comparable
    svg = figure(estimates).svg()
    assert all(title in svg for title in estimates)
