"""Repetitions of a soak workload: small batches, and what is held is measured between some.

The query waits while its task measures the JVMs, on this machine and on the hosts; that costs the
repetition neither batches nor their time.
"""

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, cast

from pydantic import JsonValue

from nexmark.config import Gate, Size
from nexmark.errors import NexmarkError
from nexmark.model import GROWTH
from nexmark.night.kinds.bounded import Bounded
from nexmark.night.kinds.night_kind import JobProgram, Ready
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import say
from nexmark.night.run_directory import ApplicationDirectory, Run
from nexmark.night.submission import Repetition
from nexmark.verdict.measured_night import Sample

if TYPE_CHECKING:
    from nexmark.cluster import SparkCluster
    from nexmark.kafka.topics import KafkaCluster

_POLL_S = 0.05
_KEPT_BATCHES = 200
_PARTS = ("classes", "thread_names", "file_places")


class Soaked(Bounded):
    """Nights whose repetitions run on, and are measured between batches."""

    is_judged_by_pairs_only = True
    has_flame_graphs = False
    has_slowed_arm = False  # it would have to leak
    has_short_starts = False
    runs_own_inputs = False  # they are not held between batches, and end by their own input

    def gate(self, gate: Gate) -> Gate:
        """Return the gate that judges growth, by pairs of few long repetitions."""
        rounds = gate.soak_rounds
        pursue = (0.0,) * (len(rounds) - 1)
        changes = {"metric": GROWTH, "rounds": rounds, "pursue_z": pursue, "self_test": 0.0}
        return gate.model_copy(update=changes)

    def least_pairs(self) -> int:
        """Return one: a repetition has an interval of its own."""
        return 1

    def program(self, night: Night, run: Run) -> JobProgram:
        """Return the query, which is held at the end of the warm-up, and from then on regularly."""
        usual = super().program(night, run)
        pauses = {
            "--pause-from": night.workload.warmup_batches,
            "--pause-every": night.workload.pause_every(run.query),
            "--pauses": night.files.application(run).pauses,
        }
        given = (str(word) for option in pauses.items() for word in option)
        return usual.model_copy(update={"arguments": (*usual.arguments, *given)})

    def directories(self, night: Night, run: Run) -> tuple[Path, ...]:
        """Return the directory of the file of a pause."""
        return (night.files.application(run).pauses,)

    def run(
        self,
        night: Night,
        submission: Repetition,
        ready: Ready,
        connect: Callable[[], "KafkaCluster"],
    ) -> None:
        """Run the application, and measure it in its pauses."""
        with measured_in_pauses(night, submission):
            super().run(night, submission, ready, connect)

    def figures(
        self, night: Night, directory: ApplicationDirectory, size: Size, read_rate: float
    ) -> dict[str, float]:
        """Return the growths; NexmarkError where a process was replaced, or little was measured."""
        from nexmark.verdict.growth import figures_of

        samples = directory.ageing()
        names = [sorted(jvm["name"] for jvm in each["processes"]) for each in samples]
        for sample, before, now in zip(samples[1:], names, names[1:], strict=False):
            if before != now:
                seen = f"{', '.join(before)} before and {', '.join(now)} after"
                problem = f"the processes changed before batch {sample['batch']}: {seen}"
                raise NexmarkError(f"{problem}; see the event log")
        figures = figures_of(samples, night.workload.warmup_batches, night.gate)
        if GROWTH not in figures:
            few = f"{len(samples)} samples, too few of them after the warm-up"
            raise NexmarkError(f"{few}; raise events or samples of workload {night.workload.name}")
        return figures

    def ageing(self, directory: ApplicationDirectory) -> tuple[Sample, ...] | None:
        """Return the samples, each with the median duration of the batches since the one before.

        Only those that are compared have what figures are made up of.
        """
        samples = _with_durations(directory.ageing(), directory.result())
        warmup = json.loads(directory.warmup_file.read_text()) if samples else 0
        after = [place for place, each in enumerate(samples) if each["batch"] >= warmup]
        whole = {after[0], after[-1]} if after else set()
        return tuple(
            each if place in whole else {**each, "processes": list(map(_slim, each["processes"]))}
            for place, each in enumerate(samples)
        )

    def shown_result(
        self, directory: ApplicationDirectory, result: Mapping[str, JsonValue]
    ) -> Mapping[str, JsonValue]:
        """Return the result with some of its batches, evenly spaced."""
        batches = result["batches"]
        assert isinstance(batches, list)
        step = max(1, len(batches) // _KEPT_BATCHES)
        return {**result, "batches": batches[::step]}


def _with_durations(
    samples: Sequence[Sample], result: Mapping[str, JsonValue] | None
) -> list[Sample]:
    """Return the samples with `batch_ms`, None where there is no result."""
    batches = cast("Sequence[Sample]", (result or {}).get("batches", ()))
    last, longer = -1, list[Sample]()
    for sample in samples:
        durations = [
            each["duration_ms"] for each in batches if last < each["id"] <= sample["batch"]
        ]
        longer.append({**sample, "batch_ms": median(durations) if durations else None})
        last = sample["batch"]
    return longer


def _slim(jvm: Sample) -> Sample:
    return {key: value for key, value in jvm.items() if key not in _PARTS}


@contextlib.contextmanager
def measured_in_pauses(night: Night, submission: Repetition) -> Iterator[None]:
    """Measure the application that the context runs, whenever it is held.

    If that fails, the application fails with the reason.
    """
    directory = submission.directory
    directory.warmup_file.write_text(json.dumps(night.workload.warmup_batches))
    ended = threading.Event()
    cluster = night.clusters[submission.application.arm]
    watcher = threading.Thread(target=_watch, args=(directory, submission, cluster, ended))
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


def _watch(
    directory: ApplicationDirectory,
    submission: Repetition,
    cluster: "SparkCluster",
    ended: threading.Event,
) -> None:
    """Take a sample for each pause, and end the pause, until the repetition has ended."""
    pause = directory.pauses / "pause.json"
    while not ended.wait(_POLL_S):
        if not pause.exists():
            continue
        try:
            sample = _sample(json.loads(pause.read_text()), directory, submission, cluster)
            with directory.ageing_file.open("a") as file:
                file.write(json.dumps(sample) + "\n")
        except Exception as error:  # else the query would wait for the end of the pause
            why = str(error) if isinstance(error, (NexmarkError, OSError)) else repr(error)
            (directory.pauses / "failed").write_text(f"it could not be measured: {why}")
        pause.unlink(missing_ok=True)


def _sample(
    paused: Sample, directory: ApplicationDirectory, submission: Repetition, cluster: "SparkCluster"
) -> Sample:
    """Return what the processes of a held application hold, and what is below its directories."""
    began = time.time()
    checkpoints = submission.application.confs["spark.sql.streaming.checkpointLocation"]
    places = {
        "checkpoint": checkpoints.removeprefix("file://"),
        "event log": str(directory.events),
    }
    held = cluster.hold(paused["application_id"], str(directory.result_file), places)
    processes: list[Sample] = []
    directories: dict[str, list[int]] = {}
    for host, answer in held.items():
        for jvm in answer["processes"]:
            is_driver = jvm["role"] == "driver"
            name = "driver" if is_driver else f"executor {jvm['name']} on {host}"
            processes.append({**jvm, "name": name})
        for place, counts in answer["directories"].items():
            sums = directories.setdefault(place, [0, 0])
            directories[place] = [each + more for each, more in zip(sums, counts, strict=True)]
    if not any(jvm["role"] == "driver" for jvm in processes):
        raise NexmarkError("no process of the driver is to be seen; see the log of the task")
    say(_line(paused["batch"], processes, time.time() - began))
    return {
        "batch": paused["batch"],
        "dropped": paused["dropped"],
        "at": [began, time.time()],
        "processes": processes,
        "directories": directories,
    }


def _line(batch: int, processes: Sequence[Sample], seconds: float) -> str:
    heaps = ", ".join(
        f"{jvm['name']} {jvm['heap_bytes'] / 1e6:.1f} MB, {jvm['threads']} threads, "
        f"{jvm['open_files']} open files"
        for jvm in processes
    )
    return f"after batch {batch}: {heaps} ({seconds:.1f} s)"
