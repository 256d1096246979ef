"""The figure of docs/spark-releases.md: `nexmark bench releases-figure`.

Judges the measured pairs of two releases again, and draws the ratio of each query with its
interval: 4.3.0 by 3.5.9, and 4.3.0 by 4.2.1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from bench.arguments import Parser, given
from bench.gate_figure import write_svg
from nexmark.config import Gate, paths
from nexmark.config.load import load_gate
from nexmark.model import Value
from nexmark.report.vega_lite import Chart, field, layer, ratio_axis
from nexmark.terminal import columns, run_command
from nexmark.verdict.measured_night import MeasuredNight
from nexmark.verdict.nightly import replay
from nexmark.verdict.stored_nights import read_nights
from nexmark.verdict.verdict import Verdict


class Panel(NamedTuple):
    """A part of the figure: its title, its files of pairs, and the two builds by their ids.

    A query that is in several files has the figure of the last one of them.
    """

    title: str
    files: tuple[str, ...]
    candidate: str
    baseline: str


PANELS = (
    Panel("4.3.0 / 3.5.9", ("upgrade.csv", "releases.csv"), "190d4599466ce465", "4764c6da2daf95d6"),
    Panel("4.3.0 / 4.2.1", ("whole_night.csv",), "190d4599466ce465", "21874bc82b7b2d95"),
)


class Estimate(NamedTuple):
    """The ratio of a query with its 95 % interval, by its last night with a figure that counts."""

    query: str
    ratio: float
    lo: float
    hi: float
    value: Value


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the figure and print its table."""
    parser = Parser(
        prog="nexmark bench releases-figure", description=(__doc__ or "").split("\n")[0]
    )
    place = paths.repository() / "docs" / "images" / "releases.svg"
    parser.add_argument("--out", type=given, default=place, help="the SVG file")
    return run_command(partial(_run, parser.parse_args(arguments)))


def _run(options: argparse.Namespace) -> int:
    estimates = {panel.title: list(estimates_of(panel)) for panel in PANELS}
    rows = [
        (title, one.query, f"{one.ratio:.3f}", f"{one.lo:.3f} to {one.hi:.3f}", str(one.value))
        for title, of_panel in estimates.items()
        for one in of_panel
    ]
    print(columns(("releases", "query", "ratio", "95 % interval", "verdict"), rows))
    write_svg(figure(estimates), Path(options.out))
    return 0


def estimates_of(panel: Panel) -> Iterator[Estimate]:
    """Yield the estimate of each query of a panel, in the order of their numbers."""
    rules = load_gate()
    last: dict[str, Estimate] = {}
    for night, verdicts in chain.from_iterable(_judged(name, rules) for name in panel.files):
        if night.candidate != panel.candidate:
            continue
        for one in verdicts:
            if not one.decides or night.baseline.get(one.query) != panel.baseline:
                continue
            if one.value != Value.INVALID and one.ratio and one.lo and one.hi:
                last[one.query] = Estimate(one.query, one.ratio, one.lo, one.hi, one.value)
    yield from sorted(last.values(), key=lambda one: int(one.query[1:]))


def _judged(name: str, rules: Gate) -> Iterator[tuple[MeasuredNight, list[Verdict]]]:
    """Yield the nights of a file of pairs, each with its verdicts."""
    path = paths.repository() / "bench" / "figures" / name
    with path.open(encoding="utf-8", newline="") as lines:
        nights = list(read_nights(lines))
    yield from zip(nights, replay(nights, rules), strict=True)


def figure(estimates: Mapping[str, Sequence[Estimate]]) -> Chart:
    """Return the panels beside each other; one line of each is a query."""
    panels = []
    for title, of_panel in estimates.items():
        points = [one._asdict() for one in of_panel]
        query = field("query:N", title=None, sort=[one.query for one in of_panel])
        interval = {"y": query, "x": ratio_axis("lo"), "x2": {"field": "hi"}}
        ratio = {"y": query, "x": ratio_axis("ratio")}
        panels.append(
            {
                "title": f"CPU time of tasks, {title}",
                "width": 300,
                "height": 18 * len(points),
                "layer": [
                    layer("rule", {"x": ratio_axis("at")}, [{"at": 1.0}], color="muted"),
                    layer("rule", interval, points, color="candidate", strokeWidth=2),
                    layer("point", ratio, points, color="candidate", filled=True, size=50),
                ],
            }
        )
    rows = tuple((title, *one) for title, of_panel in estimates.items() for one in of_panel)
    spec = {"background": "white", "hconcat": panels, "resolve": {"scale": {"x": "shared"}}}
    names = ("releases", "query", "ratio", "lo", "hi", "verdict")
    return Chart("Releases", "The ratio of each query.", spec, names, rows)


if __name__ == "__main__":
    sys.exit(main())
