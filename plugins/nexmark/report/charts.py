"""Charts of the evidence as inline SVG, drawn by Vega-Lite.

They need no script and no network. Text and axes have the colour of the page, so that light and
dark both fit; what is told apart by colour has a shape of its own as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from nexmark.report.pairs import ARMS

COLOURS = {"candidate": "#d9480f", "baseline": "#1c7ed6"}
"""Both are told from white and from black (contrast at least 3)."""
RED, PLAIN = "#e03131", "#868e96"
_WIDTH = 480
_INK = "currentColor"
_CONFIG: Mapping[str, Any] = {
    "background": "transparent",
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        **dict.fromkeys(("labelColor", "titleColor", "domainColor", "tickColor"), _INK),
        **dict.fromkeys(("labelFontSize", "titleFontSize"), 12),
        "gridColor": "#8884",
        "titleFontWeight": "normal",
    },
    "legend": {
        "labelFontSize": 12,
        "labelColor": _INK,
        "titleColor": _INK,
        "orient": "top",
        "title": None,
    },
    "header": {"labelColor": _INK, "titleColor": _INK, "title": None},
    "title": {"color": _INK},
}
_OF_ARM = {
    "color": {
        "field": "arm",
        "scale": {"domain": list(COLOURS), "range": list(COLOURS.values())},
    },
    "shape": {"field": "arm", "scale": {"domain": list(COLOURS), "range": ["circle", "square"]}},
}
_MARK = {1: "", 2: "f"}
_numbers = count()


def night_chart(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the ratio of every query with its interval, the largest first; "" without any."""
    values = [
        {"query": x["query"], "ratio": x["ratio"], "lo": x["lo"], "hi": x["hi"], "red": x["red"]}
        for x in sorted(rows, key=lambda x: -(x["ratio"] or 0))
        if x["ratio"]
    ]
    y = {"field": "query", "sort": None, "title": None}
    return draw(
        {
            "height": {"step": 18},
            "data": {"values": values},
            "layer": [_one("x"), *_estimate("x", "y", y, _size("x", _ratios(values)))],
        },
        values,
    )


def pairs_chart(pairs: Sequence[Mapping[str, Any]]) -> str:
    """Return both arms of every pair, joined by a line; "" without any."""
    names = [f"{_MARK[pair['stage']]}{pair['number']}" for pair in pairs]
    values = [
        {"pair": name, "arm": arm, "figure": pair[f"{arm}_figure"]}
        for name, pair in zip(names, pairs, strict=True)
        for arm in ARMS
        if pair[f"{arm}_figure"] is not None
    ]
    x = {
        "field": "pair",
        "type": "nominal",
        "sort": names,
        "title": "pair (f: fresh, of the confirmation)",
        "axis": {"labelAngle": 0, "grid": False},
    }
    y = {
        "field": "figure",
        "type": "quantitative",
        "title": "CPU-s per million events",
        "scale": {"zero": False},
    }
    joined = {"x": x, "y": y, "detail": {"field": "pair"}}
    layers = [
        {"mark": {"type": "line", "color": PLAIN}, "encoding": joined},
        {
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {"x": x, "y": y, **_OF_ARM},
        },
    ]
    return draw({"height": 200, "data": {"values": values}, "layer": layers}, values)


def history_chart(
    history: Sequence[Mapping[str, Any]], changes: Sequence[Mapping[str, Any]]
) -> str:
    """Return the ratio of every night with its interval, and where it changed; "" without any."""
    last = len(history) - 1
    values = [
        {
            "night": place - last,
            **{name: night[name] for name in ("ratio", "lo", "hi")},
            "red": night["value"] in ("REGRESSION", "SUSPECT"),
        }
        for place, night in enumerate(history)
        if night["ratio"]
    ]
    places = {night["night"]: place - last for place, night in enumerate(history)}
    x = {
        "field": "night",
        "type": "quantitative",
        "title": "nights ago",
        "axis": {"tickMinStep": 1, "labelExpr": "-datum.value", "grid": False},
        "scale": {"domain": [min([-1, *(v["night"] for v in values)]) - 0.5, 0.5], "nice": False},
    }
    changed = {
        "data": {"values": [{"night": places[change["night"]]} for change in changes]},
        "mark": {"type": "rule", "strokeDash": [4, 3], "color": _INK, "opacity": 0.7},
        "encoding": {"x": x},
    }
    layers = [_one("y"), *([changed] if changes else [])]
    layers += _estimate("y", "x", x, _size("y", _ratios(values)))
    return draw({"height": 180, "data": {"values": values}, "layer": layers}, values)


def over_time_chart(cpu: Sequence[Mapping[str, Any]], batches: Sequence[Mapping[str, Any]]) -> str:
    """Return the cores in use on each host, and time and state by micro-batch; "" without any.

    ``batches`` are medians over the repetitions (``pairs.batch_medians``).
    """
    views = []
    for host in dict.fromkeys(one["host"] for one in cpu):
        values = [
            {"x": second, "y": cores, "arm": one["arm"]}
            for one in cpu
            if one["host"] == host
            for second, cores in zip(one["seconds"], one["cores"], strict=True)
        ]
        views.append(_lines(values, f"cores on {host}", "s since the start of the query"))
    for field, title in (("duration_ms", "ms of the batch"), ("state_bytes", "bytes of state")):
        values = [{"x": x["id"], "y": x[field], "arm": x["arm"]} for x in batches]
        if any(value["y"] for value in values):
            views.append(_lines(values, title, "micro-batch"))
    return draw({"vconcat": views}, views)


def _lines(values: Sequence[Mapping[str, Any]], y: str, x: str) -> dict[str, Any]:
    dashes = {"domain": list(COLOURS), "range": [[1, 0], [5, 3]]}
    return {
        "width": _WIDTH,
        "height": 110,
        "data": {"values": values},
        "mark": {"type": "line", "strokeWidth": 1.5},
        "encoding": {
            "x": {"field": "x", "type": "quantitative", "title": x, "axis": {"tickMinStep": 1}},
            "y": {"field": "y", "type": "quantitative", "title": y, "axis": {"tickCount": 4}},
            "color": _OF_ARM["color"],
            "strokeDash": {"field": "arm", "scale": dashes},
        },
    }


def draw(spec: Mapping[str, Any], values: Sequence[Any]) -> str:
    """Return the SVG of a Vega-Lite specification; "" where there is nothing to draw."""
    if not values:
        return ""
    import vl_convert

    width = {} if "vconcat" in spec else {"width": _WIDTH}
    whole = {"config": _CONFIG, **width, **spec}
    svg = vl_convert.vegalite_to_svg(whole, allowed_base_urls=[])
    return _for_a_page(svg, next(_numbers))


def _for_a_page(svg: str, number: int) -> str:
    """Return it without the namespaces HTML does not need, and with ids of its own."""
    svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg, count=2)
    svg = re.sub(r'id="(clip\d+)"', rf'id="chart{number}-\1"', svg)
    return re.sub(r"url\(#(clip\d+)\)", rf"url(#chart{number}-\1)", svg)


def _one(axis: str) -> dict[str, Any]:
    """Return the line where both arms are the same."""
    return {
        "data": {"values": [{"one": 1}]},
        "mark": {"type": "rule", "color": _INK, "opacity": 0.6},
        "encoding": {axis: {"field": "one", "type": "quantitative"}},
    }


def _estimate(
    value: str, other: str, place: Mapping[str, Any], size: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the layers of an estimate (on the axis ``value``) with its interval."""
    colour = {"condition": {"test": "datum.red", "value": RED}, "value": PLAIN}
    shape = {"condition": {"test": "datum.red", "value": "triangle-up"}, "value": "circle"}
    interval = {**size, "field": "lo"}
    return [
        {
            "mark": {"type": "rule", "strokeWidth": 2},
            "transform": [{"filter": "datum.lo != null && datum.hi != null"}],
            "encoding": {
                other: place,
                value: interval,
                f"{value}2": {"field": "hi"},
                "color": colour,
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "encoding": {other: place, value: size, "color": colour, "shape": shape},
        },
    ]


def _size(axis: str, ratios: Sequence[float]) -> dict[str, Any]:
    """Return the encoding of ratios: a logarithmic axis on which 2 and 1/2 are as far from 1."""
    low, high = min([0.98, *ratios]), max([1.02, *ratios])
    return {
        "field": "ratio",
        "type": "quantitative",
        "title": "candidate / baseline, CPU",
        "axis": {"format": ".3~g", "tickCount": 6},
        "scale": {"type": "log", "domain": [low * 0.99, high * 1.01], "nice": False},
    }


def _ratios(values: Sequence[Mapping[str, Any]]) -> list[float]:
    found = [value[name] for value in values for name in ("ratio", "lo", "hi")]
    return [float(x) for x in found if x is not None and x > 0]


__all__ = ["draw", "history_chart", "night_chart", "over_time_chart", "pairs_chart"]
