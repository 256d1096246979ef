"""A samples file is read whole or refused by name and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexmark.measure.cpu import tree_cpu
from nexmark.measure.host_samples import MeasurementError, parse_samples, read_samples
from tests.unit.measure.sample_builder import header, proc, samples, tick

LINES = [json.dumps(x) + "\n" for x in (header(), proc(3, "executor"), tick(0, (3, 2, 5, 0)))]


def test_a_last_line_cut_short_is_left_out() -> None:
    host = parse_samples([*LINES, '{"kind":"tick","wall":1'], "f")
    assert len(host.ticks) == 1


def test_damage_before_the_end_is_an_error_naming_file_and_line() -> None:
    with pytest.raises(MeasurementError, match=r"^f:2: not JSON"):
        parse_samples([LINES[0], "{\x00\n", *LINES[1:]], "f")


@pytest.mark.parametrize("line", ["[]\n", "{}\n", "3\n"])
def test_json_that_is_no_sample_is_an_error(line: str) -> None:
    with pytest.raises(MeasurementError, match=r"^f:4: not a sample line"):
        parse_samples([*LINES, line, LINES[2]], "f")


@pytest.mark.parametrize("lines", [[], [LINES[0][:20]], ["\n"]])
def test_an_empty_file_is_an_error(lines: list[str]) -> None:
    with pytest.raises(MeasurementError, match="no samples in it"):
        parse_samples(lines, "f")


def test_samples_without_a_reading_are_an_error() -> None:
    with pytest.raises(MeasurementError, match="ended before its first reading"):
        parse_samples(LINES[:1], "f")


def test_another_format_is_an_error() -> None:
    with pytest.raises(MeasurementError, match="not samples of format 1"):
        samples(tick(0), format=2)


def test_a_missing_field_is_an_error() -> None:
    with pytest.raises(MeasurementError, match="KeyError\\('clk_tck'\\)"):
        parse_samples([LINES[0].replace("clk_tck", "ticks"), *LINES[1:]], "f")


def test_a_missing_file_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match=r"gone.jsonl: No such file.*see the log"):
        read_samples(tmp_path / "gone.jsonl")


def test_a_process_that_was_never_introduced_is_damage() -> None:
    with pytest.raises(MeasurementError, match="process 3 has no proc line"):
        tree_cpu(samples(tick(0, (3, 2, 5, 0))))


def test_the_cost_of_the_sampler_is_read_from_its_last_line() -> None:
    host = samples(tick(0), {"kind": "end", "self_cpu_s": 0.02, "elapsed_s": 10.0})
    assert (host.sampler_cpu_s, host.elapsed_s) == (0.02, 10.0)
