"""Charts as Vega-Lite specifications, each with a table of the same numbers, and their pieces.

One specification for both: the script of a page draws it, or ``Chart.svg`` for a file. Colours are
names; the script replaces them by the colours of the page's style, ``svg`` by colours that stand
out on a light and on a dark page. What differs in colour differs in shape or dash as well.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count as counting
from typing import Any

from nexmark.model import ARMS

Spec = dict[str, Any]
Points = Sequence[Mapping[str, Any]]

HEIGHT, _WIDTH = 220, 480
_TICKS = 12  # up to this number of batches, each batch has a tick
#: Contrast of at least 3 with white and with black.
_PALETTE = {
    **{"candidate": "#1c7ed6", "baseline": "#d9480f", "good": "#2f9e44", "warn": "#e8590c"},
    **{"bad": "#e03131", "calm": "#868e96", "muted": "#868e96", "band": "#8884"},
    "uncompared": "#7950f2",
    "text": "currentColor",
}
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
    "legend": {"labelFontSize": 12, "labelColor": _INK, "titleColor": _INK},
}
LOG = {"type": "log", "nice": False}
LEGEND = {"title": None, "orient": "top"}
COLORS, SHAPES, _DASHES = ("candidate", "baseline"), ("circle", "square"), ([1, 0], [5, 3])
_TYPES = {"N": "nominal", "O": "ordinal", "Q": "quantitative", "T": "temporal"}
_TONE_COLORS = {"calm": "candidate", "bad": "bad", "good": "good"}
_TONE_SHAPES = {"calm": "circle", "bad": "triangle-up", "good": "square"}
_numbers = counting()


@dataclass(frozen=True)
class Chart:
    """A chart: what it shows, its specification, and its table."""

    title: str
    description: str
    spec: Spec
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def svg(self, clean: Callable[[Any], Any] = lambda spec: spec) -> str:
        """Return it as SVG for a page, without a script; ``clean`` is applied to all its texts."""
        import vl_convert

        width = {} if "width" in self.spec else {"width": _WIDTH}
        whole = {"config": _CONFIG, **width, **_dyed(clean(self.spec))}
        svg = vl_convert.vegalite_to_svg(whole, allowed_base_urls=[])
        own = next(_numbers)  # the ids of charts on one page differ
        svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg, count=2)
        svg = re.sub(r'id="([^"]+)"', rf'id="chart{own}-\1"', svg)
        return re.sub(r"url\(#([^)]+)\)", rf"url(#chart{own}-\1)", svg)


def field(shorthand: str, **more: Any) -> Spec:
    """Return how a field is drawn; ``shorthand`` is its name and type, as ``ratio:Q``."""
    name, _, kind = shorthand.partition(":")
    return {"field": name, "type": _TYPES[kind], **more}


def layer(mark: str, encoding: Spec, rows: Points | None = None, **style: Any) -> Spec:
    """Return one kind of marks; without ``rows`` of its own it shows what its chart has."""
    data = {} if rows is None else {"data": {"values": rows}}
    return {**data, "mark": {"type": mark, **style}, "encoding": encoding}


def layered(rows: Points, layers: Sequence[Spec]) -> Spec:
    """Return a chart of several layers."""
    return {"data": {"values": rows}, "height": HEIGHT, "layer": layers}


def ratio_axis(name: str) -> Spec:
    """Return how a ratio is drawn: on a log scale, so that twice and half are as far from 1."""
    axis = {"format": ".3~f", "tickCount": 6}
    return field(f"{name}:Q", title="candidate / baseline", scale=LOG, axis=axis)


def one(axis: str) -> Spec:
    """Return the line where both arms are the same."""
    return layer("rule", {axis: field("one:Q", scale=LOG)}, [{"one": 1}], color="muted")


def estimate(axis: str, place: Spec, tips: Sequence[Spec]) -> list[Spec]:
    """Return the layers of a ratio on an axis, with its interval; ``tone`` is its colour."""
    interval = {**place, axis: ratio_axis("lo"), f"{axis}2": {"field": "hi"}}
    ratio = {
        **place,
        axis: ratio_axis("ratio"),
        "color": by("tone", _TONE_COLORS),
        "shape": by("tone", _TONE_SHAPES),
        "tooltip": [*tips, tip("ratio", "ratio", ".3f")],
    }
    return [
        layer("rule", interval, color="candidate", opacity=0.6, strokeWidth=1.4)
        | {"transform": [{"filter": "datum.lo != null && datum.hi != null"}]},
        layer("point", ratio, filled=True, size=34, opacity=1),
    ]


def marks(rows: Points, word: str, color: str, dash: list[int], time: Spec) -> list[Spec]:
    """Return the layers of moments: a dashed line at each, with a word."""
    if not rows:
        return []
    line = {"x": time, "tooltip": [tip("label", word)]}
    text = {"x": time, "text": {"field": "word"}}
    named = [{**row, "word": word} for row in rows]
    place = {"align": "left", "baseline": "top", "dx": 4, "y": 2 if word == "change" else 16}
    return [
        layer("rule", line, rows, color=color, strokeDash=dash, strokeWidth=1.5),
        layer("text", text, named, color=color, **place),
    ]


def lines(points: Points, x: str, x_title: str, y: str, y_title: str, dots: bool = False) -> Spec:
    """Return a line for each arm, with ``dots`` where there are few points."""
    batches = sorted({point[x] for point in points}) if x == "batch" else []
    axis: Spec = {"values": batches} if 0 < len(batches) <= _TICKS else {}
    legend = LEGEND if len({point["arm"] for point in points}) > 1 else None
    encoding = {
        "x": field(f"{x}:Q", title=x_title, axis=axis),
        "y": field(f"{y}:Q", title=y_title),
        "color": arms_by(COLORS, legend),
        "strokeDash": arms_by(_DASHES, legend),
        **({"shape": arms_by(SHAPES, legend)} if dots else {}),
        "tooltip": [tip("arm", "arm"), tip(x, x_title, ".4~g"), tip(y, y_title, ".3~f")],
    }
    point = {"filled": True, "size": 40} if dots else False
    return layer("line", encoding, points, point=point) | {"height": HEIGHT}


def arms_by(values: Sequence[Any], legend: Spec | None = LEGEND) -> Spec:
    """Return a channel that tells the arms apart."""
    return by("arm", dict(zip(ARMS, values, strict=True)), legend)


def by(name: str, values: Mapping[str, Any], legend: Spec | None = None) -> Spec:
    """Return a channel that has a value of its own for each value of a field."""
    scale = {"domain": list(values), "range": list(values.values())}
    return field(f"{name}:N", scale=scale, legend=legend)


def tip(name: str, title: str, form: str = "") -> Spec:
    """Return a line of a tooltip."""
    return {"field": name, "title": title, **({"format": form} if form else {})}


def _dyed(value: Any, key: str = "") -> Any:
    """Return a specification with colours in place of their names; data are left as they are."""
    if key in ("values", "domain"):
        return value
    if isinstance(value, list | tuple):
        return [_dyed(one, key) for one in value]
    if isinstance(value, Mapping):
        return {name: _dyed(one, name) for name, one in value.items()}
    named = key in ("color", "range") and isinstance(value, str)
    return _PALETTE.get(value, value) if named else value
