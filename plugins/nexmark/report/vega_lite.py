"""Charts as Vega-Lite specifications, each with a table of the same numbers, and their pieces.

A chart has one specification. On a page of the server, the script of the page draws it; in a file,
``Chart.svg`` does. The colours in a specification are names. The script replaces them by the
colours of the style sheet, ``svg`` by colours that have contrast with a light and with a dark page.
Marks that differ in colour differ in shape or dash as well.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count as counting
from typing import Any, NamedTuple

from nexmark.model import ARMS

Spec = dict[str, Any]
"""A specification of Vega-Lite, or a part of one: JSON."""
Points = Sequence[Mapping[str, Any]]
"""The data of a chart: JSON objects whose keys are the fields of the specification."""

HEIGHT, _WIDTH = 220, 480
"""The size of a chart in pixels."""
_TICKS = 12
"""Up to this number of batches, each batch has a tick."""
_PALETTE = {
    "candidate": "#1c7ed6",
    "baseline": "#d9480f",
    "good": "#2f9e44",
    "warn": "#e8590c",
    "bad": "#e03131",
    "calm": "#868e96",
    "muted": "#868e96",
    "band": "#8884",
    "uncompared": "#7950f2",
    "text": "currentColor",
}
_INK = "currentColor"
_CONFIG: Mapping[str, object] = {
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
    """A chart: its title, a sentence on what it shows, its specification, and its table."""

    title: str
    description: str
    spec: Spec
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def svg(self, clean: Callable[[Spec], Spec] = lambda spec: spec) -> str:
        """Return the chart as SVG for a page, without a script.

        ``clean`` is applied to the specification first, to hide what must not be shown.
        """
        import vl_convert

        width = {} if "width" in self.spec else {"width": _WIDTH}
        colored = {name: _colored(value, name) for name, value in clean(self.spec).items()}
        whole = {"config": _CONFIG, **width, **colored}
        svg = vl_convert.vegalite_to_svg(whole, allowed_base_urls=[])
        number = next(_numbers)  # so that the ids of the charts on one page differ
        svg = re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg, count=2)
        svg = re.sub(r'id="([^"]+)"', rf'id="chart{number}-\1"', svg)
        return re.sub(r"url\(#([^)]+)\)", rf"url(#chart{number}-\1)", svg)


class Axis(NamedTuple):
    """An axis of a chart: the field that it shows, and its title."""

    field: str
    title: str


def field(shorthand: str, **more: object) -> Spec:
    """Return how a field is drawn; ``shorthand`` is its name and type, as ``ratio:Q``."""
    name, _, kind = shorthand.partition(":")
    return {"field": name, "type": _TYPES[kind], **more}


def layer(mark: str, encoding: Spec, rows: Points | None = None, **style: object) -> Spec:
    """Return a layer with one kind of marks.

    Args:
        mark: The kind, as ``point``.
        encoding: How the fields are drawn.
        rows: The data of the layer; None if it shows the data of the chart.
        style: Properties of the marks.
    """
    data = {} if rows is None else {"data": {"values": rows}}
    return {**data, "mark": {"type": mark, **style}, "encoding": encoding}


def layered(rows: Points, layers: Sequence[Spec]) -> Spec:
    """Return the specification of a chart of several layers over the same data."""
    return {"data": {"values": rows}, "height": HEIGHT, "layer": layers}


def ratio_axis(name: str) -> Spec:
    """Return how a ratio is drawn: on a log scale, where 2 and 1/2 are equally far from 1."""
    axis = {"format": ".3~f", "tickCount": 6}
    return field(f"{name}:Q", title="candidate / baseline", scale=LOG, axis=axis)


def one(axis: str) -> Spec:
    """Return the layer with the line at 1, where both arms are equal."""
    return layer("rule", {axis: field("one:Q", scale=LOG)}, [{"one": 1}], color="muted")


def estimate(axis: str, place: Spec, tips: Sequence[Spec]) -> list[Spec]:
    """Return the layers of a ratio with its interval.

    The data have ``ratio``, ``lo``, ``hi``, and ``tone`` for the colour.

    Args:
        axis: The axis of the ratio: x or y.
        place: The other axis.
        tips: The lines of the tooltip before the ratio.
    """
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
    """Return the layers of moments: a dashed line at each, with a word.

    Args:
        rows: The moments, each with a label for its tooltip; without any, there is no layer.
        word: The word at each line.
        color: The name of the colour.
        dash: The lengths of a dash and of the gap after it, in pixels.
        time: How the moment is drawn on the horizontal axis.
    """
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


def lines(points: Points, horizontal: Axis, vertical: Axis, *, dots: bool = False) -> Spec:
    """Return the specification of a line for each arm.

    Args:
        points: The points, each with its arm.
        horizontal: The horizontal axis.
        vertical: The vertical axis.
        dots: Whether each point has a dot.
    """
    is_batch = horizontal.field == "batch"
    batches = sorted({point[horizontal.field] for point in points}) if is_batch else []
    axis: Spec = {"values": batches} if 0 < len(batches) <= _TICKS else {}
    legend = LEGEND if len({point["arm"] for point in points}) > 1 else None
    encoding = {
        "x": field(f"{horizontal.field}:Q", title=horizontal.title, axis=axis),
        "y": field(f"{vertical.field}:Q", title=vertical.title),
        "color": arms_by(COLORS, legend),
        "strokeDash": arms_by(_DASHES, legend),
        **({"shape": arms_by(SHAPES, legend)} if dots else {}),
        "tooltip": [tip("arm", "arm"), tip(*horizontal, ".4~g"), tip(*vertical, ".3~f")],
    }
    point = {"filled": True, "size": 40} if dots else False
    return layer("line", encoding, points, point=point) | {"height": HEIGHT}


def arms_by(values: Sequence[object], legend: Spec | None = LEGEND) -> Spec:
    """Return a channel with one value for each arm, in the order of ``ARMS``."""
    return by("arm", dict(zip(ARMS, values, strict=True)), legend)


def by(
    name: str, values: Mapping[str, object], legend: Spec | None = None, *, ordered: bool = False
) -> Spec:
    """Return a channel whose value depends on a field.

    Args:
        name: The field.
        values: The value of the channel by value of the field.
        legend: The legend; None for none.
        ordered: Whether the values of the field have an order, as an opacity needs it.
    """
    scale = {"domain": list(values), "range": list(values.values())}
    return field(f"{name}:{'O' if ordered else 'N'}", scale=scale, legend=legend)


def tip(name: str, title: str, form: str = "") -> Spec:
    """Return a line of a tooltip: a field under a title; ``form`` is the format of its number."""
    return {"field": name, "title": title, **({"format": form} if form else {})}


def _colored(value: object, key: str) -> object:
    """Return the value of a key of a specification, with colours in place of their names.

    Data do not change.
    """
    if key in ("values", "domain"):
        return value
    if isinstance(value, list | tuple):
        return [_colored(one, key) for one in value]
    if isinstance(value, Mapping):
        return {name: _colored(one, name) for name, one in value.items()}
    if key in ("color", "range") and isinstance(value, str):
        return _PALETTE.get(value, value)
    return value
