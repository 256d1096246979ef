"""The only Jinja2 environment: every page and every HTML file is a template over the evidence.

All values are escaped, and texts that look like secrets are hidden wherever they are. With the
layout ``base.html``, a template is a page of the server (``web``). With ``alone.html``, it is a
file that needs no other file: it has no link and no script, and its charts are drawn as SVG.
"""

import base64
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from importlib import resources
from pathlib import Path
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from nexmark.attribution.explained import words
from nexmark.config import paths
from nexmark.evidence.alarms import together
from nexmark.evidence.night_list import legend, look, look_of
from nexmark.evidence.rows import Row
from nexmark.model import Metric, origin_of
from nexmark.report.host_paths import with_short_paths
from nexmark.report.plain import plain, plain_verdict
from nexmark.report.vega_lite import Chart
from nexmark.secrets import without_any_secret, without_secrets
from nexmark.store.accepting import candidate_alone
from nexmark.store.history import AnyNight
from nexmark.store.list_filter import ListFilter
from nexmark.store.place_history import Place
from nexmark.store.query_history import RatioPoint
from nexmark.store.table_rows import BuildRow
from nexmark.verdict.measured_night import possible
from nexmark.verdict.verdict import Verdict

WIDTH, MARGIN = 180, 6
"""The width of the drawing of an interval and the margins at its ends, in pixels."""
LEAST, MOST = math.log(1.1), math.log(2.0)
"""The smallest and the largest reach of a scale, as logarithms of a ratio."""
LARGE = math.log(1.25)
"""The logarithm of the ratio at which the bar of a change has its full width."""


@dataclass(frozen=True)
class Scale:
    """A logarithmic scale with the ratio 1 in its middle.

    Twice as slow and twice as fast are equally far from the middle. ``reach`` is the logarithm of
    the largest ratio on the scale.
    """

    reach: float

    def x(self, ratio: float) -> float:
        """Return the horizontal position of a ratio in pixels, between the ends of the scale."""
        share = max(-1.0, min(1.0, math.log(ratio) / self.reach))
        return round(WIDTH / 2 + share * (WIDTH / 2 - MARGIN), 1)

    @property
    def ends(self) -> tuple[float, float]:
        """The ratios at both ends of the scale."""
        return math.exp(-self.reach), math.exp(self.reach)


def scale_of(ratios: Iterable[float | None]) -> Scale:
    """Return a scale for some ratios, whose reach is between ``LEAST`` and ``MOST``."""
    logs = [abs(math.log(ratio)) for ratio in ratios if possible(ratio)]
    return Scale(min(MOST, max([LEAST, *logs]) * 1.05))


BAR_STEPS = 20
"""The largest width of a bar in the map, in half pixels; page.css has a rule for each width."""


def bar(ratio: float) -> str:
    """Return the CSS classes of the bar of a ratio: its side, and its width in half pixels.

    The scale is logarithmic and ends at ``LARGE``.
    """
    width = round(BAR_STEPS * min(1.0, abs(math.log(ratio)) / LARGE))
    return f"{'slower' if ratio > 1 else 'faster'} w{width}"


SPARK_WIDTH, SPARK_HEIGHT = 150, 30
"""The size of a sparkline, in pixels."""


@dataclass(frozen=True)
class Sparkline:
    """The drawing of ratios by night, without axes.

    ``path`` is the line through the nights that have a ratio, ``middle`` the height of the ratio 1.
    ``reds`` are the points of the nights that were red, at the height of the ratio 1 for a night
    without a ratio. ``last`` is the point of the newest night, None if it has no ratio. ``words``
    say what the drawing shows.
    """

    path: str
    middle: float
    reds: tuple[tuple[float, float], ...]
    last: tuple[float, float] | None
    words: str


def sparkline(points: Sequence[RatioPoint], scale: Scale) -> Sparkline:
    """Return the drawing of some nights, the oldest on the left; slower is higher."""
    half, step = SPARK_HEIGHT / 2, (SPARK_WIDTH - 8) / max(1, len(points) - 1)

    def height(ratio: float) -> float:
        share = max(-1.0, min(1.0, math.log(ratio) / scale.reach))
        return round(half - share * (half - 3), 1)

    drawn: list[str] = []
    reds: list[tuple[float, float]] = []
    ratios: list[float] = []
    start = "M"
    for number, point in enumerate(points):
        ratio, across, up = point.verdict.ratio, round(4 + number * step, 1), half
        if possible(ratio):
            up = height(ratio)
            drawn.append(f"{start}{across} {up}")
            ratios.append(ratio)
        start = "L" if possible(ratio) else "M"
        if point.verdict.bad:
            reds.append((across, up))
    last = (round(4 + (len(points) - 1) * step, 1), height(ratios[-1])) if start == "L" else None
    words = count(len(points), "night")
    if ratios:
        words += f", from {min(ratios):.3f} to {max(ratios):.3f}, the last {ratios[-1]:.3f}"
    words += f", {len(reds)} red" if reds else ""
    return Sparkline("".join(drawn), half, tuple(reds), last, words)


def sparkline_scale(lines: Iterable[Sequence[RatioPoint]]) -> Scale:
    """Return the scale that some sparklines have in common, so that their sizes compare."""
    return scale_of(point.verdict.ratio for points in lines for point in points)


NONE = "–"
REVISION = 10
"""The number of digits of a revision that are shown where there is little room."""
BUILD = 12
"""The number of characters of a build's id that are shown where there is little room."""
_UNITS = ("B", "kB", "MB", "GB", "TB")
_SHORT = 3
"""A text of at most this length is not a secret."""


def standalone(template: str, *, draw: bool = True, **content: object) -> str:
    """Return the HTML of a file that needs no other file, and can be sent to others.

    Args:
        template: The name of the template.
        draw: Whether charts are drawn; if not, the file has their numbers in tables.
        content: The variables of the template.
    """
    page = (
        environment()
        .get_template(template)
        .render(layout="alone.html", alone=True, draw=draw, night_url=lambda *_: "", **content)
    )
    return with_short_paths(page)


@cache
def environment() -> Environment:
    """Return the environment of all templates; they are compiled once."""
    templates = Environment(
        loader=PackageLoader("nexmark.report", "templates"),
        autoescape=lambda name: name is None or not name.endswith(".md"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_public,
    )
    templates.filters.update(FILTERS)
    templates.globals.update(
        legend=legend, look=look, look_of=look_of, css=_css, scale_of=_scale_of_rows
    )
    templates.globals.update(sparkline=sparkline, sparkline_scale=sparkline_scale)
    templates.globals["is_example"] = paths.is_example
    templates.tests["possible"] = possible
    return templates


def _scale_of_rows(rows: Iterable[Row | Verdict]) -> Scale:
    return scale_of(end for row in rows for end in (row.ratio, row.lo, row.hi))


def count(value: int | None, one: str, many: str = "") -> str:
    """Return a number with its noun: ``1 pair``, ``5 pairs``; ``many`` is an irregular plural."""
    return f"{value or 0:,} {one if value == 1 else many or one + 's'}"


def _size(value: float) -> str:
    unit = 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.{1 if unit else 0}f} {_UNITS[unit]}"


@lru_cache(maxsize=4096)
def moment(value: datetime | None, form: str = "%Y-%m-%d %H:%M") -> str:
    """Return a moment in UTC: ``2026-11-21 04:00``; kept, because pages repeat their nights."""
    return NONE if value is None else value.astimezone(UTC).strftime(form)


def part(text: str) -> str:
    """Return a text as one part of a URL's path."""
    return quote(text, safe="+:~@")


def _way(metric: Metric, ratio: float) -> str:
    """Return whether a change of a metric by a ratio is for the better or for the worse."""
    if metric.decides:
        return "slower" if ratio > 1 else "faster"
    return "worse" if metric.worse(math.log(ratio)) else "better"


def build_labels(builds: Sequence[BuildRow]) -> dict[str, str]:
    """Return short names of builds by their ids: the version and the revision, else the origin.

    Builds that would have the same name have the beginning of their ids, too.
    """
    names = {}
    for build in builds:
        version, origin = without_secrets(build.version), origin_of(without_secrets(build.source))
        names[build.id] = f"{version} {(build.revision or '')[:REVISION] or origin}"
    times = Counter(names.values())
    return {
        build: name if times[name] == 1 else f"{name} {build[:BUILD]}"
        for build, name in names.items()
    }


def parameters(wanted: ListFilter) -> str:
    """Return a filter as the parameters of an address: ``engine=spark-4.3.0&red=1``."""
    given = {"red": "1"} if wanted.red else {}
    texts = ("engine", "workload", "by", "search")
    given |= {name: text for name in texts if (text := getattr(wanted, name))}
    return urlencode(given)


def place_address(place: Place | AnyNight, query: str = "", **more: str) -> str:
    """Return the address of the page of a query over the nights of a place.

    Args:
        place: The place, or a night in it.
        query: The query; "" for the page of all queries.
        more: Further parameters of the address.
    """
    names = {"engine": place.engine, "workload": place.workload, "cluster": place.cluster}
    path = f"/query/{part(query)}" if query else "/queries"
    return f"{path}?{urlencode({**names, **more})}"


def cell(value: object) -> str:
    """Return any value as the text of a cell of a table."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {one}" for name, one in value.items())
    return "" if value is None else str(value)


def cells(row: Iterable[object]) -> Markup:
    """Return the values of a row as the cells of a table; without a loop in the template."""
    return Markup("".join(map(_cell, row)))


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f'<td class="number">{cell(value)}</td>'
    return f"<td>{NONE if value is None else escape(without_secrets(cell(value)))}</td>"


def as_json(value: object) -> str:
    """Return any value as indented JSON without secrets."""
    return json.dumps(without_any_secret(plain(value)), indent=1, ensure_ascii=False, default=str)


def diff_lines(unified: Sequence[str]) -> list[tuple[str, str]]:
    """Return the lines of a unified difference, each with its sign: +, -, @ or "".

    The first two lines, which name both sides, are left out.
    """
    return [
        (line[:1], line if line[:1] == "@" else line[1:]) if line[:1] in "+-@" else ("", line[1:])
        for line in unified[2:]
    ]


def picture(path: Path) -> Markup | None:
    """Return an SVG file as the address of a picture, in which no script can run.

    None if there is no such file.
    """
    try:
        content = base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError:
        return None
    return Markup("data:image/svg+xml;base64,") + content


def drawn(chart: Chart) -> Markup:
    """Return a chart as SVG; if it cannot be drawn, a sentence that says why."""
    try:
        return Markup(chart.svg(without_any_secret))
    except Exception as error:  # any failure of the library: the page has the numbers in a table
        message = " ".join(str(error).split())[:200]
        return Markup("<p>cannot be drawn ({}: {})</p>").format(type(error).__name__, message)


def _public(value: object) -> object:
    """Return the value of an expression in a template, with secrets in a text hidden."""
    return without_secrets(value) if type(value) is str and len(value) > _SHORT else value


@cache
def _css() -> Markup:
    return Markup(resources.files("nexmark.report").joinpath("static/page.css").read_text("utf-8"))


def _known(shown: Callable[..., str]) -> Callable[..., str]:
    """Return a filter that shows a dash for None, and other values as ``shown`` does."""
    return lambda value, *more: NONE if value is None else shown(value, *more)


FILTERS: Mapping[str, Callable[..., object]] = {
    "ratio": _known("{:.3f}".format),
    "change": _known(lambda ratio: f"{100 * (ratio - 1):+.1f} %".replace("-", "−")),
    "percent": _known(lambda share: f"{100 * share:.1f} %"),
    "number": _known(lambda value, digits=2: f"{value:,.{digits}f}"),
    "size": _known(_size),
    "short": lambda build: (build or NONE)[:BUILD],
    "count": count,
    "moment": moment,
    "day": partial(moment, form="%Y-%m-%d"),
    "monthday": partial(moment, form="%m-%d"),
    "bar": bar,
    "part": part,
    "parameters": parameters,
    "public": without_secrets,
    "candidate_alone": candidate_alone,
    "without_secrets": without_any_secret,
    "cell": cell,
    "cells": cells,
    "as_json": as_json,
    "diff_lines": diff_lines,
    "plain_verdict": plain_verdict,
    "picture": picture,
    "drawn": drawn,
    "words": words,
    "together": together,
    "way": _way,
}
"""The filters of the templates, by name."""
