"""The figure of docs/how-the-gate-decides.md: `nexmark bench gate-figure`.

Judges a simulated first night of 23 queries round by round with the shipped gate, and draws where
the intervals of three of them stand after each round: one that is unchanged, one that is 10 %
slower, and one that is unchanged but three times as noisy as the others.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.arguments import Parser, given, whole
from nexmark.config import Gate, paths
from nexmark.config.load import load_gate
from nexmark.model import Value
from nexmark.report.vega_lite import Chart, field, layer, ratio_axis
from nexmark.terminal import columns, run_command
from nexmark.verdict.measured_night import Measured, MeasuredNight, Pair
from nexmark.verdict.nightly import going_on, judge_night

QUERIES = tuple(f"q{number}" for number in range(23))
CV = 0.05
"""Of the log ratio of a pair."""


_NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
"""A chart on a page of ours has none; a file of its own needs them."""


class ShownQuery(NamedTuple):
    """A query of the figure: what it is, its true ratio, and how noisy it is beside the others."""

    title: str
    ratio: float
    noise: float


SHOWN: Mapping[str, ShownQuery] = {
    "q0": ShownQuery("unchanged", 1.0, 1.0),
    "q1": ShownQuery("10 % slower", 1.1, 1.0),
    "q2": ShownQuery("unchanged, noisy", 1.0, 3.0),
}


class StandingOfRound(NamedTuple):
    """Where a query stands after a round."""

    query: str
    pairs: int
    ratio: float
    lo: float
    hi: float
    value: Value


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the figure and print its table."""
    parser = Parser(prog="nexmark bench gate-figure", description=(__doc__ or "").split("\n")[0])
    place = paths.repository() / "docs" / "images" / "rounds.svg"
    parser.add_argument("--out", type=given, default=place, help="the SVG file")
    parser.add_argument("--seed", type=whole(0, 10**9), default=1)
    return run_command(partial(_run, parser.parse_args(arguments)))


def _run(options: argparse.Namespace) -> int:
    rules = load_gate()
    standings = list(standings_of(rules, options.seed))
    heads = ("query", "pairs", "ratio", "95 % interval", "so far")
    rows = [
        (SHOWN[one.query].title, str(one.pairs), f"{one.ratio:.3f}", _interval(one), str(one.value))
        for one in standings
    ]
    print(columns(heads, rows))
    write_svg(figure(standings, rules), Path(options.out))
    return 0


def write_svg(chart: Chart, path: Path) -> None:
    """Write a chart as a file of its own, and print the path."""
    svg = chart.svg().replace("<svg ", f"<svg {_NAMESPACES} ", 1)
    path.write_text(svg + "\n", encoding="utf-8")
    print(path)


def _interval(standing: StandingOfRound) -> str:
    return f"{standing.lo:.3f} to {standing.hi:.3f}"


def standings_of(rules: Gate, seed: int) -> Iterator[StandingOfRound]:
    """Yield where each query of the figure stands after each round in which it was measured."""
    rng = np.random.default_rng(seed)
    rounds: dict[str, list[tuple[Pair, ...]]] = {query: [] for query in QUERIES}
    going: Sequence[str] = QUERIES
    for number, pairs in enumerate(rules.rounds, start=1):
        for query in QUERIES:
            _, ratio, noise = SHOWN.get(query, ShownQuery("", 1.0, 1.0))
            logs = rng.normal(np.log(ratio), CV * noise, pairs)
            drawn = tuple(
                Pair(pair, float(np.exp(log)), 1.0) for pair, log in enumerate(logs, start=1)
            )
            rounds[query].append(drawn if query in going else ())
        night = MeasuredNight(
            "night",
            tuple(
                Measured(query, rules.metric, first, tuple(later))
                for query, (first, *later) in rounds.items()
            ),
        )
        for verdict in judge_night(night, [], rules):
            if verdict.query in SHOWN and verdict.query in going:
                assert verdict.ratio is not None
                assert verdict.lo is not None
                assert verdict.hi is not None
                measured = sum(map(len, rounds[verdict.query]))
                yield StandingOfRound(
                    verdict.query, measured, verdict.ratio, verdict.lo, verdict.hi, verdict.value
                )
        if number < len(rules.rounds):
            going = going_on(night, [], rules, number + 1)


def figure(standings: Sequence[StandingOfRound], rules: Gate) -> Chart:
    """Return the intervals of each query beside each other, with the slowdown that matters."""
    bounds = [{"at": 1.0}, {"at": 1 + rules.matters}]
    parts = []
    for query, shown in SHOWN.items():
        points = [one._asdict() for one in standings if one.query == query]
        pairs = field("pairs:O", title="pairs", axis={"labelAngle": 0})
        interval = {"x": pairs, "y": ratio_axis("lo"), "y2": {"field": "hi"}}
        ratio = {"x": pairs, "y": ratio_axis("ratio")}
        parts.append(
            {
                "title": f"{shown.title}: {points[-1]['value']}",
                "width": 150,
                "height": 220,
                "layer": [
                    layer("rule", {"y": ratio_axis("at")}, bounds, color="muted"),
                    layer("rule", interval, points, color="candidate", strokeWidth=2),
                    layer("point", ratio, points, color="candidate", filled=True, size=50),
                ],
            }
        )
    rows = tuple(
        (SHOWN[one.query].title, one.pairs, one.ratio, one.lo, one.hi) for one in standings
    )
    spec = {"background": "white", "hconcat": parts, "resolve": {"scale": {"y": "shared"}}}
    names = ("query", "pairs", "ratio", "lo", "hi")
    return Chart("Rounds", "Intervals after each round.", spec, names, rows)


if __name__ == "__main__":
    sys.exit(main())
