"""The table of results: the columns that users of Nexmark know, then correctness and verdict."""

from collections import Counter
from collections.abc import Sequence

from nexmark.evidence.night_evidence import Report
from nexmark.evidence.rows import Row
from nexmark.model import CPU, METRICS, TASK_CPU, Basis, Metric, metric_of

HEADINGS = (
    "Query",
    "Events Num",
    "Cores",
    "Time(s)",
    "Cores * Time(s)",
    "Throughput/Cores",
    "Result",
    "CPU s/M events",
    "Baseline",
    "Ratio",
    "Verdict",
)
LEFT = frozenset({"Query", "Result", "Verdict"})
NONE = "-"
ACCEPTED = " (accepted)"
OTHER_BASIS = "*"
OTHER_METRIC = "^"
FOOTNOTES = {
    OTHER_BASIS: f"{OTHER_BASIS} over the whole life of the application, start-up included:"
    " the steady state is too short to be measured.",
    OTHER_METRIC: f"{OTHER_METRIC} all CPU time of the executors decides, not only the tasks'.",
}
UNITS = ("", " K", " M", " G")


def render_table(rows: Sequence[Row]) -> str:
    """Return the table with its total row; without ``tabled`` metrics it has at most 160 columns.

    The total row has the sums of events, time and CPU time, and the throughput per core that
    follows from these. It has no cores and no ratio, because these do not add up.
    """
    marks = [_mark(row, rows) for row in rows]
    width = max(map(len, marks), default=0)
    cells = [_cells(row, mark.ljust(width)) for row, mark in zip(rows, marks, strict=True)]
    measured = {name for row in rows for name, value in row.figures.items() if value is not None}
    more = [metric for name, metric in METRICS.items() if name in measured]
    headings = [*HEADINGS[:-1], *(metric.heading for metric in more), HEADINGS[-1]]
    deciding = _deciding(rows)
    if deciding.name == TASK_CPU:
        headings[HEADINGS.index(metric_of(CPU).heading)] = deciding.heading
    elif not deciding.bases:
        headings[HEADINGS.index("Baseline")] += f", {deciding.heading}"
    for row, line in zip(rows, cells, strict=True):
        line[-1:-1] = [metric.text(row.figures.get(metric.name)) for metric in more]
    total = _total(rows)
    total[-1:-1] = [NONE] * len(more)
    table = [headings, *cells, total]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    rule = "+".join(["", *("-" * (width + 2) for width in widths), ""])
    lines = [f"| {' | '.join(map(_padded, line, widths, headings))} |" for line in table]
    lines = [rule, lines[0], rule, *lines[1:-1], rule, lines[-1], rule]
    lines += [text for mark, text in FOOTNOTES.items() if any(mark in each for each in marks)]
    return "\n".join(lines)


def report_text(report: Report) -> str:
    """Return the report for people: a heading, the table, and the lines below it."""
    return "\n".join([report.heading(), render_table(report.rows), *report.text_lines])


def throughput(value: float | None) -> str:
    """Return events per second with K, M or G and two decimals, as ``155.02 K/s``."""
    if value is None:
        return NONE
    unit = 0
    while round(value, 2) >= 1000 and unit < len(UNITS) - 1:
        value /= 1000
        unit += 1
    return f"{value:,.2f}{UNITS[unit]}/s"


def number(value: float | None, decimals: int = 3) -> str:
    """Return a number with thousands separators; ``-`` for None."""
    return NONE if value is None else f"{value:,.{decimals}f}"


def _deciding(rows: Sequence[Row]) -> Metric:
    """Return the metric that decides most rows."""
    counted = Counter(row.metric for row in rows).most_common(1)
    return metric_of(counted[0][0] if counted else CPU)


def _mark(row: Row, rows: Sequence[Row]) -> str:
    """Return what marks the figure of a row as another one than its column says."""
    other = row.metric == CPU and _deciding(rows).name == TASK_CPU
    return OTHER_BASIS * (row.basis == Basis.APPLICATION) + OTHER_METRIC * other


def _cells(row: Row, mark: str) -> list[str]:
    return [
        row.query,
        number(row.events, 0),
        number(row.cores, 2),
        number(row.wall_s),
        number(row.cpu_s),
        throughput(row.throughput_per_core),
        row.result,
        number(row.figure) + mark,
        number(row.verdict.baseline if row.verdict else None),
        _ratio(row),
        f"{row.value or NONE}{ACCEPTED if row.accepted else ''}",
    ]


def _ratio(row: Row) -> str:
    """Return the ratio, with its interval if it has one: ``1.082 (1.051-1.114)``."""
    if row.lo is None or row.hi is None:
        return number(row.ratio)
    return f"{number(row.ratio)} ({row.lo:.3f}-{row.hi:.3f})"


def _padded(cell: str, width: int, heading: str) -> str:
    return cell.ljust(width) if heading in LEFT else cell.rjust(width)


def _total(rows: Sequence[Row]) -> list[str]:
    measured = [row for row in rows if row.cpu_s and row.wall_s and row.events]
    events = sum(row.events or 0 for row in measured)
    cpu_s = sum(row.cpu_s or 0 for row in measured)
    right = sum(row.result == "right" for row in rows)
    agree = sum(row.result == "agrees" for row in rows)
    cells = dict.fromkeys(HEADINGS, NONE)
    cells["Query"] = "Total"
    cells["Result"] = f"{right}/{len(rows)} right" + (f", {agree} agree" if agree else "")
    if measured:
        cells["Events Num"] = number(events, 0)
        cells["Time(s)"] = number(sum(row.wall_s or 0 for row in measured))
        cells["Cores * Time(s)"] = number(cpu_s)
        cells["Throughput/Cores"] = throughput(events / cpu_s)
    return list(cells.values())
