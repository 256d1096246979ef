"""Charts as Vega-Lite specifications, each with the table that says the same in numbers.

Colours are names that the script replaces by those of the page's style; the arms differ in shape
and dash as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nexmark.web.words import count

CANDIDATE, BASELINE = "candidate", "baseline"
ARMS = [CANDIDATE, BASELINE]
_HEIGHT = 220
#: So many batches have a tick each.
_TICKS = 12

Spec = dict[str, Any]


@dataclass(frozen=True)
class Chart:
    """A chart: what it shows, its specification, and its table."""

    title: str
    description: str
    spec: Spec
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def pairs_chart(pairs: Sequence[Mapping[str, Any]], low: float | None, high: float | None) -> Chart:
    """Return candidate / baseline of each pair; rows have pair, stage, ratio, both figures."""
    data = [row for row in pairs if row["ratio"] is not None]
    for place, row in enumerate(data, 1):
        row["place"] = place  # type: ignore[index]
    layers: list[Spec] = []
    if low is not None and high is not None:
        layers.append(
            {
                "data": {"values": [{"low": low, "high": high}]},
                "mark": {"type": "rect", "color": "band", "opacity": 0.5},
                "encoding": {
                    "y": {"field": "low", "type": "quantitative", "scale": _LOG},
                    "y2": {"field": "high"},
                },
            }
        )
    layers += [
        _one(),
        {
            "mark": {"type": "point", "size": 90, "filled": True, "opacity": 1},
            "encoding": {
                "x": {"field": "place", "type": "ordinal", "title": "pair, in order", **_FLAT},
                "y": _ratio_axis("ratio"),
                "color": _stages("color"),
                "shape": _stages("shape"),
                "tooltip": [_tip("label", "pair"), _tip("ratio", "ratio", ".3f")],
            },
        },
    ]
    table = tuple(
        (row["label"], row["candidate"], row["baseline"], row["ratio"], row["wall"])
        for row in pairs
    )
    return Chart(
        "Pairs",
        f"Candidate by baseline of {count(len(data), 'pair')}; "
        "the band is the 95 % interval of the verdict.",
        {"data": {"values": data}, "height": _HEIGHT, "layer": layers},
        ("pair", "candidate, CPU s/M events", "baseline", "ratio", "ratio of wall time"),
        table,
    )


def history_chart(
    points: Sequence[Mapping[str, Any]],
    changes: Sequence[Mapping[str, Any]],
    acks: Sequence[Mapping[str, Any]],
) -> Chart:
    """Return the ratio night by night, with change points and acceptances."""
    data = [row for row in points if row["ratio"] is not None]
    time = {
        **{"field": "night", "type": "temporal", "title": None, "scale": {"type": "utc"}},
        "axis": {"format": "%b %-d", "tickCount": {"interval": "day"} if len(data) < 9 else 8},
    }
    layers: list[Spec] = [
        _one(),
        {
            "mark": {"type": "rule", "color": "candidate", "opacity": 0.6, "strokeWidth": 1.4},
            "encoding": {"x": time, "y": _ratio_axis("lo"), "y2": {"field": "hi"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 34, "opacity": 1},
            "encoding": {
                "x": time,
                "y": _ratio_axis("ratio"),
                "color": _by("tone", {"calm": "candidate", "bad": "bad", "good": "good"}),
                "shape": _shapes(
                    "tone", {"calm": "circle", "bad": "triangle-up", "good": "square"}
                ),
                "tooltip": [
                    _tip("label", "night"),
                    _tip("verdict", "verdict"),
                    _tip("ratio", "ratio", ".3f"),
                ],
            },
        },
    ]
    layers += _marks(changes, "change", "warn", [4, 3], time)
    layers += _marks(acks, "accepted", "good", [1, 3], time)
    return Chart(
        "History of the paired ratio",
        f"Candidate by baseline in {count(len(data), 'night')}; "
        f"{count(len(changes), 'lasting change')}, {count(len(acks), 'acceptance')}.",
        {"data": {"values": data}, "height": _HEIGHT, "layer": layers},
        ("night", "verdict", "ratio", "from", "to"),
        tuple((x["label"], x["verdict"], x["ratio"], x["lo"], x["hi"]) for x in points[::-1]),
    )


def cpu_chart(host: str, points: Sequence[Mapping[str, Any]]) -> Chart:
    """Return the cores in use over time on one host, of one repetition of each arm."""
    spec = _lines(points, "seconds", "seconds from the start of the query", "cores", "cores")
    table = tuple((x["arm"], x["seconds"], x["cores"]) for x in _every(points, 40))
    return Chart(
        f"CPU on {host}",
        "Cores that executors and their Python workers used, of the repetition of each arm that is "
        "nearest to the median.",
        spec,
        ("arm", "seconds", "cores"),
        table,
    )


def batch_chart(points: Sequence[Mapping[str, Any]]) -> Chart:
    """Return the median duration of each batch by arm."""
    spec = _lines(points, "batch", "batch", "seconds", "seconds, median of the repetitions", True)
    return Chart(
        "Batch durations",
        "How long each micro-batch took, the median over the repetitions of an arm.",
        spec,
        ("arm", "batch", "seconds", "state rows", "state MB"),
        tuple((x["arm"], x["batch"], x["seconds"], x["rows"], x["megabytes"]) for x in points),
    )


def state_chart(points: Sequence[Mapping[str, Any]]) -> Chart:
    """Return the size of the state after each batch by arm."""
    spec = _lines(points, "batch", "batch", "megabytes", "state, MB", True)
    return Chart(
        "State growth",
        "Memory of the state store after each batch, the median over the repetitions of an arm.",
        spec,
        ("arm", "batch", "state MB", "state rows"),
        tuple((x["arm"], x["batch"], x["megabytes"], x["rows"]) for x in points),
    )


def verdicts_chart(counts: Sequence[Mapping[str, Any]]) -> Chart:
    """Return the number of verdicts by value, night by night."""
    order = ["bad", "warn", "calm", "good"]
    spec: Spec = {
        "data": {"values": list(counts)},
        "height": _HEIGHT,
        "mark": {"type": "bar", "width": {"band": 1}},
        "encoding": {
            "x": {"field": "place", "type": "ordinal", "title": "night", "axis": None},
            "y": {"field": "number", "type": "quantitative", "title": "queries", "stack": True},
            "color": {
                "field": "tone",
                "type": "nominal",
                "scale": {"domain": order, "range": order},
                "legend": {"title": None, "orient": "top"},
            },
            "order": {"field": "rank", "type": "quantitative"},
            "tooltip": [
                _tip("night", "night"),
                _tip("verdict", "verdict"),
                _tip("number", "queries"),
            ],
        },
    }
    return Chart(
        "Verdicts by night",
        "How many queries had which verdict, the oldest night on the left.",
        spec,
        ("night", "verdict", "queries"),
        tuple((x["night"], x["verdict"], x["number"]) for x in counts[::-1]),
    )


_LOG = {"type": "log", "nice": False}
_FLAT = {"axis": {"labelAngle": 0}}


def _ratio_axis(field: str) -> Spec:
    axis = {"format": ".3~f", "tickCount": 6}
    title = "candidate / baseline"
    return {"field": field, "type": "quantitative", "title": title, "scale": _LOG, "axis": axis}


def _one() -> Spec:
    return {
        "data": {"values": [{"one": 1}]},
        "mark": {"type": "rule", "color": "muted"},
        "encoding": {"y": {"field": "one", "type": "quantitative", "scale": _LOG}},
    }


def _marks(
    rows: Sequence[Mapping[str, Any]], word: str, color: str, dash: list[int], time: Spec
) -> list[Spec]:
    if not rows:
        return []
    return [
        {
            "data": {"values": list(rows)},
            "mark": {"type": "rule", "color": color, "strokeDash": dash, "strokeWidth": 1.5},
            "encoding": {"x": time, "tooltip": [_tip("label", word)]},
        },
        {
            "data": {"values": [{**row, "word": word} for row in rows]},
            "mark": {
                **{"type": "text", "align": "left", "baseline": "top", "dx": 4, "color": color},
                **{"y": 2 if word == "change" else 16},
            },
            "encoding": {"x": time, "text": {"field": "word"}},
        },
    ]


def _lines(
    points: Sequence[Mapping[str, Any]],
    x: str,
    x_title: str,
    y: str,
    y_title: str,
    dots: bool = False,
) -> Spec:
    batches = sorted({point[x] for point in points}) if x == "batch" else []
    axis: Spec = {"values": batches} if 0 < len(batches) <= _TICKS else {}
    both = len({point["arm"] for point in points}) > 1
    return {
        "data": {"values": list(points)},
        "height": _HEIGHT,
        "mark": {"type": "line", "point": {"filled": True, "size": 40} if dots else False},
        "encoding": {
            "x": {"field": x, "type": "quantitative", "title": x_title, "axis": axis},
            "y": {"field": y, "type": "quantitative", "title": y_title},
            "color": _arms(["candidate", "baseline"], both),
            "strokeDash": _arms([[1, 0], [5, 3]], both),
            **({"shape": _arms(["circle", "square"], both)} if dots else {}),
            "tooltip": [_tip("arm", "arm"), _tip(x, x_title, ".4~g"), _tip(y, y_title, ".3~f")],
        },
    }


def _arms(values: Sequence[Any], both: bool) -> Spec:
    return {
        "field": "arm",
        "type": "nominal",
        "scale": {"domain": ARMS, "range": list(values)},
        "legend": {"title": None, "orient": "top"} if both else None,
    }


def _stages(channel: str) -> Spec:
    values = ["candidate", "warn"] if channel == "color" else ["circle", "diamond"]
    return {
        "field": "stage",
        "type": "nominal",
        "scale": {"domain": ["first pairs", "fresh pairs"], "range": values},
        "legend": {"title": None, "orient": "top"},
    }


def _by(field: str, colors: Mapping[str, str]) -> Spec:
    scale = {"domain": list(colors), "range": list(colors.values())}
    return {"field": field, "type": "nominal", "scale": scale, "legend": None}


def _shapes(field: str, shapes: Mapping[str, str]) -> Spec:
    scale = {"domain": list(shapes), "range": list(shapes.values())}
    return {"field": field, "type": "nominal", "scale": scale, "legend": None}


def _tip(field: str, title: str, form: str = "") -> Spec:
    return {"field": field, "title": title, **({"format": form} if form else {})}


def _every(points: Iterable[Mapping[str, Any]], most: int) -> list[Mapping[str, Any]]:
    """Return so many of the points of each arm at most, evenly spread."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for point in points:
        found.setdefault(point["arm"], []).append(point)
    return [x for own in found.values() for x in own[:: max(1, -(-len(own) // most))]]


__all__ = [
    "BASELINE",
    "CANDIDATE",
    "Chart",
    "batch_chart",
    "cpu_chart",
    "history_chart",
    "pairs_chart",
    "state_chart",
    "verdicts_chart",
]
