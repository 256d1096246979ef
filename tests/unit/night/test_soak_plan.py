"""A soak night: its repetitions are held after fixed numbers of batches, and measured meanwhile."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from nexmark.cluster import ClusterError
from nexmark.cluster.local import LocalCluster
from nexmark.config import load
from nexmark.errors import NexmarkError
from nexmark.model import GROWTH, HEAP_GROWTH
from nexmark.night.applications import repetition_submission
from nexmark.night.kinds import kind_of
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import Run
from nexmark.night.submission import Repetition
from tests.unit.night.deployed import deployed

RUN = Run(query="q5", number=1)


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))
    params = {"workload": "soak", "cluster": "local", "against": "pypi:4.2.1"}
    return make_night(load(), "spark-4.3.0", "nexmark_spark_4_3_0", "run 1", params)


@pytest.fixture
def repetition(night: Night, tmp_path: Path) -> Repetition:
    made = repetition_submission(night, deployed(tmp_path, night.queries), RUN)
    for directory in made.directories:
        directory.mkdir(parents=True, exist_ok=True)
    return made


def held(heap: int, *, executor: str = "0") -> dict[str, dict[str, Any]]:
    jvm = {
        "cpu_s": [heap / 1e6, heap / 1e6],
        "heap_bytes": heap,
        "classes": {"byte[]": heap},
        "thread_names": {"task": 9},
        "file_places": {"socket": 9},
        "metaspace_bytes": None,
        "code_cache_bytes": None,
        "other_memory_bytes": None,
        "outside_heap_bytes": None,
        "threads": 9,
        "open_files": 9,
    }
    processes = [{"role": "driver", "name": "driver", **jvm}]
    processes.append({"role": "executor", "name": executor, **jvm})
    return {"here": {"processes": processes, "directories": {"checkpoint": [7, 4096]}}}


def run_with_pauses(
    night: Night,
    repetition: Repetition,
    monkeypatch: pytest.MonkeyPatch,
    answers: Sequence[Mapping[str, Any] | Exception],
) -> None:
    """Run a repetition whose query is held once for each answer of the cluster."""
    left = list(answers)

    def hold(*_: object) -> Mapping[str, Any]:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(LocalCluster, "hold", hold)
    directory = repetition.directory

    def ready(arguments: Sequence[str], confs: Mapping[str, str]) -> Callable[[], object]:
        def run() -> None:
            for number in range(1, len(answers) + 1):
                pause = directory.pauses / "pause.json"
                pause.write_text(
                    json.dumps({"batch": number * 60, "dropped": 0, "application_id": "app-1"})
                )
                while pause.exists():
                    time.sleep(0.005)
            if (directory.pauses / "failed").exists():
                raise NexmarkError((directory.pauses / "failed").read_text())

        return run

    kind_of(night.workload).run(night, repetition, ready, lambda: pytest.fail("no Kafka"))


def test_a_repetition_is_held_nine_times_from_the_end_of_its_warm_up_on(
    night: Night, repetition: Repetition
) -> None:
    arguments = repetition.application.arguments
    assert arguments[arguments.index("--pause-from") + 1] == "240"
    assert arguments[arguments.index("--pause-every") + 1] == "59"  # of 720
    assert arguments[arguments.index("--pauses") + 1] == str(repetition.directory.pauses)
    assert repetition.directory.pauses in repetition.directories
    assert (night.gate.metric, night.gate.pairs, night.gate.self_test) == (GROWTH, 1, 0.0)
    assert night.workload.repetitions == 1


def test_every_pause_is_measured_and_ended(
    night: Night, repetition: Repetition, monkeypatch: pytest.MonkeyPatch
) -> None:
    heaps = [40_000_000 + 300_000 * number for number in range(20)]
    run_with_pauses(night, repetition, monkeypatch, [held(heap) for heap in heaps])
    kind, directory = kind_of(night.workload), repetition.directory
    figures = kind.figures(night, directory, night.workload, 1.0)
    assert figures[HEAP_GROWTH] == pytest.approx(5.0)  # 0.3 MB in 60 batches
    assert figures[GROWTH] == pytest.approx(2.5)
    batches = [{"id": number, "duration_ms": 100 + number // 60} for number in range(1201)]
    directory.write_result({"batches": batches})
    samples = kind.ageing(directory) or ()
    assert [sample["batch_ms"] for sample in samples] == list(range(100, 120))
    assert [sample["batch"] for sample in samples] == [60 * number for number in range(1, 21)]
    with_classes = [
        sample["batch"]
        for sample in samples
        if "classes" in sample["processes"][0]  # type: ignore[index]
    ]
    assert with_classes == [240, 1200]  # the first after the warm-up, and the last


def test_a_process_that_does_not_answer_fails_the_query_with_the_reason(
    night: Night, repetition: Repetition, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NexmarkError, match="it could not be measured: JVM 7 does not answer"):
        run_with_pauses(
            night, repetition, monkeypatch, [ClusterError("JVM 7 does not answer: refused")]
        )


def test_a_driver_that_is_not_seen_fails_the_query(
    night: Night, repetition: Repetition, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = {"here": {"processes": [], "directories": {}}}
    with pytest.raises(NexmarkError, match="no process of the driver"):
        run_with_pauses(night, repetition, monkeypatch, [nobody])


def test_a_repetition_with_a_replaced_executor_does_not_count(
    night: Night, repetition: Repetition, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [held(40_000_000, executor=name) for name in ("0", "0", "1")]
    run_with_pauses(night, repetition, monkeypatch, answers)
    with pytest.raises(NexmarkError, match=r"processes changed before batch 180: .*executor 1 on"):
        kind_of(night.workload).figures(night, repetition.directory, night.workload, 1.0)


def test_a_repetition_with_too_few_samples_does_not_count(
    night: Night, repetition: Repetition, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_with_pauses(night, repetition, monkeypatch, [held(40_000_000)] * 6)
    with pytest.raises(NexmarkError, match="6 samples, too few of them after the warm-up"):
        kind_of(night.workload).figures(night, repetition.directory, night.workload, 1.0)


def test_the_pages_keep_some_of_the_batches(night: Night, repetition: Repetition) -> None:
    result = {"batches": [{"id": number} for number in range(1200)]}
    shown = kind_of(night.workload).shown_result(repetition.directory, result)["batches"]
    assert [each["id"] for each in shown[:3]] == [0, 6, 12]  # type: ignore[index,call-overload]
