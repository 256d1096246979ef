"""Progress while it runs: what the driver tells, with its place in the night."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nexmark.config import load
from nexmark.model import Arm
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import MOMENTARY, PROGRESS_VARIABLE, Watch, duration
from nexmark.night.night_runs import first_runs
from nexmark.night.run_directory import ApplicationSpan, Run
from nexmark_jobs.progress_lines import (
    QUERY_ENDED,
    ProgressReporter,
    ReportedProgress,
    read_progress,
)
from tests.unit.tasks.submissions import of_label

START = datetime(2026, 11, 21, tzinfo=UTC)


@dataclass(frozen=True)
class Batch:
    id: int
    input_rows: int = 100
    ends_after: float = 1.0
    phase: str = "data"
    duration_ms: int = 1000

    @property
    def end(self) -> datetime:
        return START + timedelta(seconds=self.ends_after)


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    """Pairs of q0 and q5, three of each; the gate is tested by q5."""
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    params = {"workload": "nightly", "cluster": "local", "queries": "q0,q5", "repetitions": 3}
    made = make_night(load(), "spark-4.3.0", "nexmark_spark_4_3_0", "run 1", params)
    source = made.candidate
    rules = {"order_seed": None, "rounds": (3, 4), "pursue_z": (1.0,)}
    gate = made.gate.model_copy(update=rules)
    changes = {
        "mode": "paired",
        "gate": gate,
        "against": {"q0": source, "q5": source},
        "self_test": {Arm.CONTROL: "q5"},
    }
    made = made.model_copy(update=changes)
    made.write()
    return made


class TestProgressReporter:
    def test_tells_at_most_every_five_seconds_but_of_the_first_and_the_end(self) -> None:
        reporter = ProgressReporter(1000)
        lines = [reporter.line(Batch(number, ends_after=number + 1)) for number in range(10)]
        assert [number for number, line in enumerate(lines) if line] == [0, 5, 9]
        assert lines[0] == "batch 0  100 of 1,000 events  10 %  100 events/s  ETA 0:09"
        assert lines[9] == "batch 9  1,000 of 1,000 events  100 %  100 events/s  ETA 0:00"

    def test_what_comes_after_the_data_is_reported_as_rarely(self) -> None:
        reporter = ProgressReporter(100)
        assert reporter.line(Batch(0, ends_after=1)) is not None
        assert reporter.line(Batch(1, ends_after=2, phase="end_of_input")) is None
        line = reporter.line(Batch(2, ends_after=9, phase="end_of_input"))
        assert line == "batch 2  end of input  1.0 s"

    def test_a_line_is_read_as_it_was_written(self) -> None:
        line = ProgressReporter(10_000_000).line(Batch(0, 1_234_567, duration_ms=1500))
        assert line is not None
        found = read_progress(f"  {line}\n")
        assert found == ReportedProgress(1_234_567, 10_000_000, 823_045, 10)
        assert found.share == pytest.approx(0.1234567)

    @pytest.mark.parametrize("line", ["", "batch", "WARN batch 1  end of input  1.0 s", "x" * 9999])
    def test_other_lines_are_none_of_its(self, line: str) -> None:
        assert read_progress(line) is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (31.9, "0:32"), (2470, "41:10"), (3900, "1:05:00")]
)
def test_durations_are_as_on_a_clock(seconds: float, text: str) -> None:
    assert duration(seconds) == text


class TestWatch:
    LINE = ReportedProgress(done=400, events=1000, speed=187_000, left_s=32)

    @pytest.mark.parametrize(
        ("label", "name"),
        [
            ("q0 verify", "[1/2] q0   verify"),
            ("q5 rep-2", "[2/2] q5   repetition 2 of 3 (candidate)"),
            ("q5 baseline-rep-3", "[2/2] q5   repetition 3 of 3 (baseline)"),
            ("q5 round-2-control-rep-1", "[2/2] q5   round 2, repetition 1 of 4 (control)"),
            ("dump_events", "dump_events"),
        ],
    )
    def test_says_which_query_and_repetition_it_is(
        self, night: Night, label: str, name: str
    ) -> None:
        text = Watch(night, of_label(night, label)).text(self.LINE)
        assert text.split("; night about")[0] == f"{name}: 40 %, 187,000 events/s, 0:32 left"

    def test_another_application_than_a_repetition_says_nothing_of_the_night(
        self, night: Night
    ) -> None:
        assert "night" not in Watch(night, of_label(night, "q0 verify")).text(self.LINE)

    def test_a_repetition_that_is_tried_again_counts_once(self, night: Night) -> None:
        texts = []
        for tries in ([(0, 60), (100, 200)], [(100, 200)]):
            (night.directory / "applications.jsonl").unlink(missing_ok=True)
            for start, end in tries:
                night.files.add_application(ApplicationSpan(label="q0 rep-1", start=start, end=end))
            texts.append(
                Watch(night, of_label(night, "q0 rep-2"), clock=lambda: 200).text(self.LINE)
            )
        assert texts[0] == texts[1]

    def test_a_later_round_counts_as_soon_as_it_is_planned(self, night: Night) -> None:
        runs = [Run(query="q5", number=number, stage=2) for number in (1, 2, 3)]
        night.files.group("round_2").write_runs(runs)
        night.files.add_application(ApplicationSpan(label="q5 round-2-rep-1", start=0, end=100))
        clock = iter((110.0, 178.0))
        text = Watch(night, of_label(night, "q5 round-2-rep-2"), clock=lambda: next(clock)).text(
            self.LINE
        )
        assert text.endswith(f"night about {duration(32 + 100 + 2)}")


#: Seconds of a verification, of a repetition of q0 and of q5, and between two applications.
VERIFY, LONG, GAP = 180.0, {"q0": 30.0, "q5": 60.0}, 12.0


def labels(night: Night) -> list[str]:
    return [f"{run.query} {run.name}" for query in ("q0", "q5") for run in first_runs(night, query)]


def ran(night: Night, begin: float, pace: float = 1.0) -> dict[str, tuple[float, float]]:
    """When the applications of a night ran, in their order."""
    found, now = {"verify": (begin, begin + VERIFY)}, begin + VERIFY
    for label in labels(night):
        found[label] = (now + GAP, now + GAP + pace * LONG[label[:2]])
        now = found[label][1]
    return found


class TestEnd:
    """The estimate of the night's end is right within a third from its first line on."""

    def estimates(self, night: Night, spans: dict[str, tuple[float, float]]) -> list[float]:
        """Estimate / truth, at 10 and at 70 % of each repetition of a night."""
        end, found = max(stop for _, stop in spans.values()), []
        for label, (start, stop) in spans.items():
            if label != "verify":
                for share in (0.1, 0.7):
                    now = start + share * (stop - start)
                    clock = iter((start, now))
                    watch = Watch(
                        night, of_label(night, label), clock=lambda clock=clock: next(clock)
                    )  # type: ignore[misc]
                    left = int(stop - now)
                    text = watch.text(ReportedProgress(int(1000 * share), 1000, 1, left))
                    minutes, seconds = text.rpartition("night about ")[2].split(":")
                    if end - now > 30:
                        found.append((60 * int(minutes) + int(seconds)) / (end - now))
            night.files.add_application(ApplicationSpan(label=label, start=start, end=stop))
        return found

    @pytest.mark.parametrize("pace", [0.8, 1.0, 1.3])
    def test_by_an_earlier_night(self, night: Night, pace: float) -> None:
        earlier = night.model_copy(update={"run_id": "run 0"})
        earlier.write()
        for label, (start, stop) in ran(night, 0).items():
            earlier.files.add_application(ApplicationSpan(label=label, start=start, end=stop))
        found = self.estimates(night, ran(night, 10_000, pace))
        assert len(found) > 20
        assert all(2 / 3 < each < 4 / 3 for each in found), found

    def test_by_an_earlier_night_whose_order_was_another_one(self, night: Night) -> None:
        """The seed of a night decides which arm of a pair is first."""
        earlier = night.model_copy(update={"run_id": "run 0"})
        earlier.write()
        spans = ran(night, 0)
        swapped = dict(zip(reversed(labels(night)), list(spans.values())[1:], strict=True))
        for label, (start, stop) in swapped.items():
            earlier.files.add_application(ApplicationSpan(label=label, start=start, end=stop))
        found = self.estimates(night, ran(night, 10_000))
        assert len(found) > 20
        assert all(0 < each < 3 for each in found), found

    def test_without_one_if_the_queries_are_alike(
        self, night: Night, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(LONG, "q5", 36.0)
        found = self.estimates(night, ran(night, 0))
        assert all(2 / 3 < each < 4 / 3 for each in found), found

    def test_a_night_of_another_workload_says_nothing(self, night: Night) -> None:
        other = night.workload.model_copy(update={"events": 7_000_000})
        earlier = night.model_copy(update={"run_id": "run 0", "workload": other})
        earlier.write()
        for label, (start, stop) in ran(night, 0, pace=100).items():
            earlier.files.add_application(ApplicationSpan(label=label, start=start, end=stop))
        assert max(self.estimates(night, ran(night, 0))[:2]) < 2


def test_a_verified_query_is_shown_where_a_person_waits(
    night: Night, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PROGRESS_VARIABLE, str(tmp_path / "shown"))
    line = QUERY_ENDED.format(3, 24, "q5", "ran to its end")
    assert Watch(night, of_label(night, "verify")).line(line) == line
    shown = (tmp_path / "shown").read_text()
    assert shown == f"{MOMENTARY}verify: 3 of 24 queries: q5 ran to its end\n"


def test_what_an_application_prints_shows_no_secret(night: Night) -> None:
    watch = Watch(night, of_label(night, "q5 rep-1"))
    given = [
        "cannot open jdbc:mysql://db/x?user=ada&password=hush",
        "batch failed: https://a:hush@x/",
    ]
    lines = [watch.line(line) for line in given]
    assert "hush" not in " ".join(lines)
    assert lines[0].startswith("cannot open jdbc:mysql://db/x?user=ada&password=***")
