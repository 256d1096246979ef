"""The figures of a sample have names in `nights.csv`, and make a sample again."""

from __future__ import annotations

import math

from nexmark.verdict.aged_rows import named_figures, sample_of
from nexmark.verdict.growth import lines_of

JVM = {"heap_bytes": 5e6, "threads": 9, "open_files": 7, "cpu_s": [1.0, 2.0]}
SAMPLE = {
    "batch": 60,
    "dropped": 0,
    "processes": [
        {"role": "driver", "name": "driver", **JVM},
        {"role": "executor", "name": "executor 0 on a", **JVM},
        {"role": "executor", "name": "executor 1 on b", **JVM, "threads": None},
    ],
    "directories": {"checkpoint": [1, 2]},
}


def test_executors_count_together_and_what_one_does_not_say_is_not_there() -> None:
    figures = dict(named_figures(SAMPLE))
    assert figures["driver heap_bytes"] == 5e6
    assert figures["executor heap_bytes"] == 10e6
    assert "executor threads" not in figures
    assert (figures["executor cpu_s before"], figures["executor cpu_s after"]) == (2.0, 4.0)


def test_a_role_without_figures_has_no_line() -> None:
    again = sample_of(60, {"driver threads": 9.0})
    assert [jvm["role"] for jvm in again["processes"]] == ["driver"]
    assert [line.name for line in lines_of([again, again])][:1] == ["threads of the driver"]
    (driver,) = again["processes"]
    assert all(map(math.isnan, driver["cpu_s"]))  # it was not measured, so it did not grow
