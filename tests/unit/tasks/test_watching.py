"""Progress while it runs: what the driver tells, with its place in the night."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nexmark.config import load
from nexmark.tasks.checks import make_night
from nexmark.tasks.night import Night
from nexmark.tasks.operators import NexmarkSubmitOperator, note_application
from nexmark.tasks.progress import MOMENTARY
from nexmark.tasks.runs import CONTROL, FRESH, Run, plan_confirmation
from nexmark.tasks.watching import Watch, duration
from nexmark_jobs import narrator
from nexmark_jobs.narrator import Narrator

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
    gate = made.gate.model_copy(update={"order_seed": None})
    changes = {
        "mode": "paired",
        "gate": gate,
        "against": {"q0": source, "q5": source},
        "self_test": {CONTROL: "q5"},
    }
    made = made.model_copy(update=changes)
    made.write()
    return made


class TestNarrator:
    def test_tells_at_most_every_five_seconds_but_of_the_first_and_the_end(self) -> None:
        told = Narrator(1000)
        lines = [told.line(Batch(number, ends_after=number + 1)) for number in range(10)]
        assert [number for number, line in enumerate(lines) if line] == [0, 5, 9]
        assert lines[0] == "batch 0  100 of 1,000 events  10 %  100 events/s  ETA 0:09"
        assert lines[9] == "batch 9  1,000 of 1,000 events  100 %  100 events/s  ETA 0:00"

    def test_what_comes_after_the_data_is_told_as_rarely(self) -> None:
        told = Narrator(100)
        assert told.line(Batch(0, ends_after=1)) is not None
        assert told.line(Batch(1, ends_after=2, phase="end_of_input")) is None
        line = told.line(Batch(2, ends_after=9, phase="end_of_input"))
        assert line == "batch 2  end of input  1.0 s"

    def test_a_line_is_read_as_it_was_written(self) -> None:
        line = Narrator(10_000_000).line(Batch(0, 1_234_567, duration_ms=1500))
        assert line is not None
        found = narrator.read(f"  {line}\n")
        assert found == narrator.Told(1_234_567, 10_000_000, 823_045, 10)
        assert found.share == pytest.approx(0.1234567)

    @pytest.mark.parametrize("line", ["", "batch", "WARN batch 1  end of input  1.0 s", "x" * 9999])
    def test_other_lines_are_none_of_its(self, line: str) -> None:
        assert narrator.read(line) is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (31.9, "0:32"), (2470, "41:10"), (3900, "1:05:00")]
)
def test_durations_are_as_on_a_clock(seconds: float, text: str) -> None:
    assert duration(seconds) == text


class TestWatch:
    LINE = narrator.Told(done=400, events=1000, speed=187_000, left_s=32)

    @pytest.mark.parametrize(
        ("label", "name"),
        [
            ("q0 verify", "[1/2] q0   verify"),
            ("q5 rep-2", "[2/2] q5   repetition 2 of 3 (candidate)"),
            ("q5 baseline-rep-3", "[2/2] q5   repetition 3 of 3 (baseline)"),
            ("q5 fresh-control-rep-1", "[2/2] q5   fresh repetition 1 (control)"),
            ("dump_events", "dump_events"),
        ],
    )
    def test_says_which_query_and_repetition_it_is(
        self, night: Night, label: str, name: str
    ) -> None:
        text = Watch(night, label).text(self.LINE)
        assert text == f"{name}: 40 %, 187,000 events/s, 0:32 left"

    def test_tells_the_time_left_of_the_night(self, night: Night) -> None:
        """Of 15 repetitions 5.4 are done after 540 s: 9.6 more take 960 s."""
        note_application(night.directory, "dump_events", 0, 100)
        note_application(night.directory, "q0 verify", 100, 130)
        for number in range(5):
            note_application(night.directory, f"q0 x-rep-{number}", 200, 300)
        text = Watch(night, "q5 rep-1", clock=lambda: 640).text(self.LINE)
        assert text.endswith("0:32 left; night about 16:00")

    def test_a_repetition_that_is_tried_again_counts_once(self, night: Night) -> None:
        note_application(night.directory, "q0 rep-1", 0, 60)
        watch = Watch(night, "q0 rep-1", clock=lambda: 100)
        assert watch.text(self.LINE).endswith(f"night about {duration(14.6 / 0.4 * 100)}")

    def test_fresh_repetitions_count_as_soon_as_they_are_planned(self, night: Night) -> None:
        for number in range(15):
            note_application(night.directory, f"q0 x-rep-{number}", 0, 100)
        runs = [Run(query="q5", number=number, stage=FRESH) for number in (1, 2, 3)]
        plan_confirmation(night, runs)
        text = Watch(night, "q5 fresh-rep-1", clock=lambda: 154).text(self.LINE)
        assert text.endswith("night about 0:26")

    def test_nobody_knows_before_anything_has_run(self, night: Night) -> None:
        note_application(night.directory, "q0 verify", 100, 130)
        told = narrator.Told(done=1, events=1000, speed=1, left_s=999)
        assert "night" not in Watch(night, "q0 rep-1", clock=lambda: 200).text(told)


def test_the_task_log_and_the_terminal_show_it(
    night: Night,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress = tmp_path / "progress.txt"
    monkeypatch.setenv("NEXMARK_PROGRESS", str(progress))
    connection = {"conn_type": "spark", "host": "spark://127.0.0.1", "port": 7077}
    monkeypatch.setenv("AIRFLOW_CONN_NEXMARK_LOCAL", json.dumps(connection))
    operator = NexmarkSubmitOperator(
        task_id="repetition", submission={}, application="x.py", conn_id="nexmark_local"
    )
    operator._watch = Watch(night, "q5 rep-2")
    line = Narrator(1000).line(Batch(0))
    operator._get_hook()._process_spark_submit_log(iter(["WARN something", f"{line}\n"]))
    told = "[2/2] q5   repetition 2 of 3 (candidate): 10 %, 100 events/s, 0:09 left"
    first, second = capsys.readouterr().out.splitlines()[-2:]
    assert "WARN something" in first
    assert told in second
    assert progress.read_text() == f"{MOMENTARY}{told}\n"
