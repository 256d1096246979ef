"""The one Jinja2 environment: every page and file is a template here, over a model of ``evidence``.

Everything is escaped, and what looks like a secret is blanked out wherever it stands. A template
with the layout ``base.html`` is a page of the server (``web``); with ``alone.html`` it is a file
that asks nobody for anything: no link, no script, its charts drawn as SVG.
"""

import base64
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nexmark.attribution.explained import words
from nexmark.evidence.night_list import legend, look
from nexmark.report.plain import plain, plain_verdict
from nexmark.report.vega_lite import Chart
from nexmark.secrets import without_any_secret, without_secrets
from nexmark.verdict.measured_night import possible

WIDTH, MARGIN = 180, 6  # of the drawing of an interval
LEAST, MOST = math.log(1.1), math.log(2.0)  # how far from 1 a scale goes: at least and at most


@dataclass(frozen=True)
class Scale:
    """A logarithmic scale with 1 in its middle, so that twice as slow and twice as fast look alike.

    ``reach`` is the log of the greatest ratio on it.
    """

    reach: float

    def x(self, ratio: float) -> float:
        """Return where a ratio is, cut off at the ends."""
        share = max(-1.0, min(1.0, math.log(ratio) / self.reach))
        return round(WIDTH / 2 + share * (WIDTH / 2 - MARGIN), 1)

    @property
    def ends(self) -> tuple[float, float]:
        """The ratios at both ends."""
        return math.exp(-self.reach), math.exp(self.reach)


def scale_of(ratios: Iterable[float | None]) -> Scale:
    """Return a common log scale for these ratios, capped at ``MOST``."""
    logs = [abs(math.log(x)) for x in ratios if possible(x)]
    return Scale(min(MOST, max([LEAST, *logs]) * 1.05))


NONE = "–"
BUILD = 12  # characters of a build's name that are shown where there is little room
_UNITS = ("B", "kB", "MB", "GB", "TB")
_SHORT = 3  # a text of this length is no secret


def standalone(template: str, *, draw: bool = True, **content: Any) -> str:
    """Return a template as a file of its own; without ``draw`` it has its numbers in tables."""
    found, page = environment().get_template(template), {"layout": "alone.html", "alone": True}
    return found.render(**page, draw=draw, night_url=lambda *_: "", **content)


@cache
def environment() -> Environment:
    """Return the templates, compiled once."""
    made = Environment(
        loader=PackageLoader("nexmark.report", "templates"),
        autoescape=lambda name: name is None or not name.endswith(".md"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_public,
    )
    made.filters.update(FILTERS)
    made.globals.update(
        **{"legend": legend, "look": look, "css": _css},
        scale_of=lambda rows: scale_of(x for row in rows for x in (row.ratio, row.lo, row.hi)),
    )
    made.tests["possible"] = possible
    return made


def count(value: int | None, one: str, many: str = "") -> str:
    """Return ``1 pair``, ``5 pairs``."""
    return f"{value or 0:,} {one if value == 1 else many or one + 's'}"


def _size(value: float) -> str:
    unit = 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.{1 if unit else 0}f} {_UNITS[unit]}"


def moment(value: datetime | None, form: str = "%Y-%m-%d %H:%M") -> str:
    """Return a moment in UTC: ``2026-11-21 04:00``."""
    return NONE if value is None else value.astimezone(UTC).strftime(form)


def part(text: str) -> str:
    """Return a text as one part of a URL's path."""
    return quote(text, safe="+:~@")


def cell(value: Any) -> str:
    """Return anything as the text of a cell."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {one}" for name, one in value.items())
    return "" if value is None else str(value)


def as_json(value: Any) -> str:
    """Return anything as indented JSON without secrets."""
    return json.dumps(without_any_secret(plain(value)), indent=1, ensure_ascii=False, default=str)


def diff_lines(unified: Sequence[str]) -> list[tuple[str, str]]:
    """Return the lines of a unified difference with their sign: +, -, @ or none."""
    return [
        (line[:1], line if line[:1] == "@" else line[1:]) if line[:1] in "+-@" else ("", line[1:])
        for line in unified[2:]
    ]


def picture(path: Path) -> Markup | None:
    """Return an SVG file as the address of a picture in which nothing can run; None for none."""
    try:
        content = base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError:
        return None
    return Markup("data:image/svg+xml;base64,") + content


def drawn(chart: Chart) -> Markup:
    """Return a chart as SVG; where it cannot be drawn, a sentence that says why."""
    try:
        return Markup(chart.svg(without_any_secret))
    except Exception as error:  # any failure of the library: the page has the numbers in a table
        said = " ".join(str(error).split())[:200]
        return Markup("<p>cannot be drawn ({}: {})</p>").format(type(error).__name__, said)


def _public(value: Any) -> Any:
    return without_secrets(value) if type(value) is str and len(value) > _SHORT else value


@cache
def _css() -> Markup:
    return Markup(resources.files("nexmark.report").joinpath("static/page.css").read_text("utf-8"))


def _known(shown: Callable[..., str]) -> Callable[..., str]:
    """Return a filter that shows a dash for None."""
    return lambda value, *more: NONE if value is None else shown(value, *more)


FILTERS: Mapping[str, Callable[..., Any]] = {
    "ratio": _known("{:.3f}".format),
    "change": _known(lambda ratio: f"{100 * (ratio - 1):+.1f} %".replace("-", "−")),
    "percent": _known(lambda share: f"{100 * share:.1f} %"),
    "number": _known(lambda value, digits=2: f"{value:,.{digits}f}"),
    "size": _known(_size),
    "short": lambda build: (build or NONE)[:BUILD],
    "field": lambda row, name: (
        row.get(name) if isinstance(row, Mapping) else getattr(row, name, None)
    ),
    **{"count": count, "moment": moment},
    **{"day": partial(moment, form="%Y-%m-%d"), "monthday": partial(moment, form="%m-%d")},
    **{"part": part, "public": without_secrets, "without_secrets": without_any_secret},
    **{"cell": cell, "as_json": as_json, "diff_lines": diff_lines},
    "plain_verdict": plain_verdict,
    **{"picture": picture, "drawn": drawn, "words": words},
}
"""By the name that they have in the templates."""
