"""The figures of the brokers' benchmark as a person reads them, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from nexmark.kafka.benchmark import RATIOS, TESTS, BenchRow, RateRatio, ratio
from nexmark.terminal import columns

_HEADS = ("test", "records/s", "MB/s", "clients CPU-s", "brokers CPU-s", "the text", "what")
_RATIO_HEADS = ("ratio", "here", "the text", "what it says")


def table(rows: Sequence[BenchRow], *, is_shared: bool) -> str:
    """Tests and ratios; `is_shared`: brokers and clients are on one machine."""
    tests = columns(_HEADS, [_line(row) for row in rows])
    found = [_ratio(each, value, is_shared) for each, value in _ratios(rows)]
    return f"{tests}\n\n{columns(_RATIO_HEADS, found)}" if found else tests


def as_json(rows: Sequence[BenchRow], *, is_shared: bool) -> dict[str, Any]:
    """The same, to be kept."""
    found = []
    for each, value in _ratios(rows):
        name, _, _, says = _ratio(each, value, is_shared)
        found.append({"ratio": name, "value": value, "text": each.text, "says": says})
    tests = [asdict(row) | {"text": TESTS[row.id.split()[0]].text} for row in rows]
    what = {row.id: TESTS[row.id.split()[0]].what for row in rows}
    return {"is_shared": is_shared, "tests": tests, "what": what, "ratios": found}


def _ratios(rows: Sequence[BenchRow]) -> list[tuple[RateRatio, float]]:
    found = ((each, ratio(each, list(rows))) for each in RATIOS)
    return [(each, value) for each, value in found if value is not None]


def _line(row: BenchRow) -> list[str]:
    test = TESTS[row.id.split()[0]]
    brokers = "" if row.brokers_cpu_s is None else f"{row.brokers_cpu_s:.1f}"
    if row.latencies is not None:
        x = row.latencies
        measured = [f"p50 {x.p50} ms", f"p99 {x.p99} ms", "2 and 3 ms"]
        what = f"{test.what}; p99.9 {x.p999} ms, the text 14 ms"
    else:
        assert row.records is not None
        assert row.megabytes is not None
        rate = row.records
        spread = "" if rate.low == rate.high else f" ({rate.low:,.0f}-{rate.high:,.0f})"
        text = "" if test.text is None else f"{test.text:,.0f}"
        measured = [f"{rate.median:,.0f}{spread}", f"{row.megabytes:,.1f}", text]
        what = test.what
    return [row.id, *measured[:2], f"{row.clients_cpu_s:.1f}", brokers, measured[2], what]


def _ratio(found: RateRatio, value: float, is_shared: bool) -> list[str]:
    shared = f"; {found.shared}" if is_shared and found.shared else ""
    name = f"{found.over}/{found.under}"
    return [name, f"{value:.2f}", f"{found.text:.2f}", f"{found.meaning}{shared}"]
