"""The figures of the brokers' benchmark, as the table that is printed and as JSON."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from nexmark.labs.broker_benchmark import RATIOS, TESTS, BenchRow, ratio
from nexmark.terminal import columns

_HEADS = ("test", "records/s", "MB/s", "clients CPU-s", "brokers CPU-s", "the text", "what")
_RATIO_HEADS = ("ratio", "here", "the text", "what it says")


def broker_figures(rows: Sequence[BenchRow], *, is_shared: bool) -> dict[str, Any]:
    """Return the figures of tests and ratios as the results database keeps them.

    `is_shared` says that brokers and clients are on one machine.
    """
    tests = [asdict(row) | {"text": TESTS[row.id.split()[0]].text} for row in rows]
    what = {row.id: TESTS[row.id.split()[0]].what for row in rows}
    ratios = _ratios(rows, is_shared)
    return {"is_shared": is_shared, "tests": tests, "what": what, "ratios": ratios}


def broker_table(rows: Sequence[BenchRow], *, is_shared: bool) -> str:
    """Return the table of the tests, and below it the table of their ratios.

    `is_shared` says that brokers and clients are on one machine.
    """
    tests = columns(_HEADS, [_line(row) for row in rows])
    ratios = [
        [each["ratio"], f"{each['value']:.2f}", f"{each['text']:.2f}", each["says"]]
        for each in _ratios(rows, is_shared)
    ]
    return f"{tests}\n\n{columns(_RATIO_HEADS, ratios)}" if ratios else tests


def _ratios(rows: Sequence[BenchRow], is_shared: bool) -> list[dict[str, Any]]:
    ratios = []
    for each in RATIOS:
        if (value := ratio(each, list(rows))) is not None:
            says = each.meaning + (f"; {each.shared}" if is_shared and each.shared else "")
            name = f"{each.over}/{each.under}"
            ratios.append({"ratio": name, "value": value, "text": each.text, "says": says})
    return ratios


def _line(row: BenchRow) -> list[str]:
    test = TESTS[row.id.split()[0]]
    brokers = "" if row.brokers_cpu_s is None else f"{row.brokers_cpu_s:.1f}"
    if row.latencies is not None:
        latencies = row.latencies
        measured = [f"p50 {latencies.p50} ms", f"p99 {latencies.p99} ms", "2 and 3 ms"]
        what = f"{test.what}; p99.9 {latencies.p999} ms, the text 14 ms"
    else:
        assert row.records is not None
        assert row.megabytes is not None
        rate = row.records
        spread = "" if rate.low == rate.high else f" ({rate.low:,.0f}-{rate.high:,.0f})"
        text = "" if test.text is None else f"{test.text:,.0f}"
        measured = [f"{rate.median:,.0f}{spread}", f"{row.megabytes:,.1f}", text]
        what = test.what
    return [row.id, *measured[:2], f"{row.clients_cpu_s:.1f}", brokers, measured[2], what]
