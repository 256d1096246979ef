"""The only Jinja2 environment: every page and every HTML file is a template over the evidence.

All values are escaped, and texts that look like secrets are hidden wherever they are. With the
layout ``base.html``, a template is a page of the server (``web``). With ``alone.html``, it is a
file that needs no other file: it has no link and no script, and its charts are drawn as SVG.
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
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from nexmark.attribution.explained import words
from nexmark.evidence.night_list import legend, look
from nexmark.evidence.rows import Row
from nexmark.report.plain import plain, plain_verdict
from nexmark.report.vega_lite import Chart
from nexmark.secrets import without_any_secret, without_secrets
from nexmark.verdict.measured_night import possible
from nexmark.verdict.verdict import Verdict

WIDTH, MARGIN = 180, 6
"""The width of the drawing of an interval and the margins at its ends, in pixels."""
LEAST, MOST = math.log(1.1), math.log(2.0)
"""The smallest and the largest reach of a scale, as logarithms of a ratio."""


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


NONE = "–"
BUILD = 12
"""The number of characters of a build's id that are shown where there is little room."""
_UNITS = ("B", "kB", "MB", "GB", "TB")
_SHORT = 3
"""A text of at most this length is not a secret."""


def standalone(template: str, *, draw: bool = True, **content: object) -> str:
    """Return the HTML of a file that needs no other file.

    Args:
        template: The name of the template.
        draw: Whether charts are drawn; if not, the file has their numbers in tables.
        content: The variables of the template.
    """
    return (
        environment()
        .get_template(template)
        .render(layout="alone.html", alone=True, draw=draw, night_url=lambda *_: "", **content)
    )


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
    templates.globals.update(legend=legend, look=look, css=_css, scale_of=_scale_of_rows)
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


def moment(value: datetime | None, form: str = "%Y-%m-%d %H:%M") -> str:
    """Return a moment in UTC: ``2026-11-21 04:00``."""
    return NONE if value is None else value.astimezone(UTC).strftime(form)


def part(text: str) -> str:
    """Return a text as one part of a URL's path."""
    return quote(text, safe="+:~@")


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
    "part": part,
    "public": without_secrets,
    "without_secrets": without_any_secret,
    "cell": cell,
    "as_json": as_json,
    "diff_lines": diff_lines,
    "plain_verdict": plain_verdict,
    "picture": picture,
    "drawn": drawn,
    "words": words,
}
"""The filters of the templates, by name."""
