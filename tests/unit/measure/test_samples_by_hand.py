"""Every field of a samples file, and when its readings were, on the clock of the driver."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nexmark.measure.host_samples import (
    HostSamples,
    MeasurementError,
    ProcessKey,
    Reading,
    SampledProgram,
    parse_samples,
    read_samples,
)
from nexmark.measure.shares import ProcessCpu
from tests.unit.measure.sample_builder import T0, header, proc, samples, tick

TICK = {
    "kind": "tick",
    "wall": T0 + 1,
    "mono": 5.0,
    "host_cpu": [1, 2, 3],
    "procs": [[7, 2, 99, 10, 20, 300, 400]],
}


def test_every_field_is_read() -> None:
    own = header(host="h1", clk_tck=250, cpus=3, interval_s=0.5, scope="all", boot=11.0, mono=4.0)
    introduced = proc(7, "executor", starttime=99, root=2, app_id="a", label="l", cmd="java")
    end = {"kind": "end", "self_cpu_s": 0.25, "elapsed_s": 9.0}
    lines = [json.dumps(x) + "\n" for x in (own, introduced, TICK, end)]
    found = parse_samples(lines, "f")
    assert (found.host, found.clk_tck, found.cpus, found.interval_s) == ("h1", 250, 3, 0.5)
    assert (found.scope, found.slept_s) == ("all", 7.0)
    assert (found.sampler_cpu_s, found.elapsed_s, found.clock_offset_s) == (0.25, 9.0, 0.0)
    key = ProcessKey(7, 99)
    assert found.programs == {key: SampledProgram("executor", 2, "java", "a", "l")}
    (only,) = found.ticks
    assert (only.wall, only.mono, only.host_cpu) == (T0 + 1, 5.0, (1, 2, 3))
    assert only.processes == {key: Reading(2, 30, 700)}


def test_a_sampler_that_was_killed_leaves_its_fields_out() -> None:
    found = samples(tick(0))
    assert (found.sampler_cpu_s, found.elapsed_s) == (None, None)


def test_the_last_that_is_known_of_a_process_counts() -> None:
    found = samples(proc(3, "other"), tick(0), proc(3, "executor"), tick(1))
    assert found.programs[ProcessKey(3, 3)].role == "executor"


@pytest.mark.parametrize("end", ["", "\n", "  \n\n", '{"kind"'])
def test_lines_at_the_end_that_are_not_whole_are_left_out(end: str) -> None:
    lines = [json.dumps(x) + "\n" for x in (header(), tick(0))]
    assert len(parse_samples([*lines, *end.splitlines(keepends=True)], "f").ticks) == 1


def test_the_first_line_is_a_header() -> None:
    lines = [json.dumps(x) + "\n" for x in (tick(0), tick(1))]
    with pytest.raises(MeasurementError, match="first line is no header of format 1"):
        parse_samples(lines, "f")


def test_a_file_has_the_offset_of_its_host(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text("".join(json.dumps(x) + "\n" for x in (header(), tick(3))))
    assert read_samples(path).times() == (T0 + 3,)
    assert read_samples(path, 0.25).times() == (T0 + 2.75,)


def test_letters_outside_ascii_are_read_and_damaged_bytes_at_the_end_left_out(
    tmp_path: Path,
) -> None:
    path = tmp_path / "samples.jsonl"
    lines = (header(host="rechner-\u00e4"), tick(3))
    text = "".join(json.dumps(x, ensure_ascii=False) + "\n" for x in lines)
    path.write_bytes(text.encode() + b'{"kind":"tick\xc3')
    assert read_samples(path).host == "rechner-\u00e4"


@pytest.mark.parametrize("text", ["", "nonsense\n"])
def test_a_file_that_is_refused_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_text(text)
    with pytest.raises(MeasurementError, match=f"^{path}:"):
        read_samples(path)


class TestTimes:
    def made(self, *steps: float) -> HostSamples:
        return samples(*(tick(second, step=step) for second, step in enumerate(steps)))

    def test_they_are_steady_though_the_wall_clock_is_disciplined(self) -> None:
        """The median of its distances."""
        found = self.made(0.0, 0.1, 0.4).times()
        assert found == pytest.approx([T0 + 0.1, T0 + 1.1, T0 + 2.1], abs=1e-6)

    def test_a_clock_that_was_set_is_refused(self) -> None:
        assert len(self.made(0.0, 0.5).times()) == 2
        assert len(self.made(0.0, -0.45).times()) == 2
        for step in (0.55, -0.55):
            with pytest.raises(MeasurementError, match=r"nexmark02 was moved by 0\.550 s"):
                self.made(0.0, step, 0.0).times()


class TestStarted:
    KEY = ProcessKey(3, 100_500)
    """In hundredths of a second since boot."""

    def started(self, slept_s: float, seen: int = 2) -> float:
        more = {"boot": 1000.0 + slept_s, "mono": 1000.0}
        return samples(*(tick(second) for second in range(10)), **more).started(self.KEY, seen)

    def test_a_process_started_before_it_was_first_seen(self) -> None:
        """Boot was 1000 s before the first tick, and the clock since boot is 4.5 s ahead."""
        assert self.started(4.5) == pytest.approx(T0 + 0.5)
        assert self.started(4.5, seen=3) == pytest.approx(T0 + 0.5)

    def test_never_after_it_was_first_seen(self) -> None:
        assert self.started(0.0) == pytest.approx(T0 + 2)


class TestQuiet:
    """A process read every second with a clock of 100 ticks per second."""

    def quiet(self, *used: float, start: float = 0.0, end: float = 99.0) -> list[object]:
        totals = [sum(used[:place]) for place in range(len(used) + 1)]
        times = tuple(float(second) for second in range(len(totals)))
        return [*ProcessCpu(times, tuple(totals), 0.01).quiet(start, end)]

    def test_spans_with_at_most_a_fiftieth_of_a_core_are_quiet(self) -> None:
        assert self.quiet(0.5, 0.019, 0.0, 0.021, 0.01) == [(1.0, 3.0), (4.0, 5.0)]
        assert self.quiet(0.02) == [(0.0, 1.0)]

    def test_only_readings_that_lie_in_the_period_count(self) -> None:
        assert self.quiet(0.0, 0.0, 0.0, 0.0, start=1.0, end=3.0) == [(1.0, 3.0)]
        assert self.quiet(0.0, 0.0, 0.0, 0.0, start=0.5, end=2.5) == [(1.0, 2.0)]

    def test_the_unit_of_the_kernel_is_no_work(self) -> None:
        found = ProcessCpu((0.0, 0.1, 0.2), (0.0, 0.01, 0.03), 0.01).quiet(0.0, 1.0)
        assert found == [(0.0, 0.1)]
