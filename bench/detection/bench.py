"""Run the nights of the benchmark through the real DAG, in a home of their own, and keep them.

    <home>/detection/settings.json   the settings that all its nights share
    <home>/detection/nights.json     by the purpose of a night: its run and how long it took
    <home>/detection/home            its builds, runs, results.db
    <home>/detection/judging         the configuration of nights that the gate judges
    <home>/detection/measuring       the configuration of nights that have one round only

No night is measured twice: an interrupted benchmark continues where it stopped. A night whose query
is INVALID, as on an unsteady host, says nothing about the gate: it is run again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.detection.causes import Cause
from bench.detection.learning_nights import teach
from nexmark.config import Engine, load, paths
from nexmark.config.load import load_gate
from nexmark.errors import NexmarkError
from nexmark.home import write_text
from nexmark.interrupts import signalled_with_parent, undisturbed
from nexmark.model import Mode, Value
from nexmark.store import Store, open_store
from nexmark.terminal import show_line
from nexmark.verdict.order import rounds_from

WORKLOAD = "detection"
#: Seven batches of about a second; five of them count. Only the quick compiler runs, because
#: a steady state with the other compiler takes minutes, and this benchmark tests the gate.
SIZE = {
    "events": 350_000,
    "tps": 10_000,
    "rows_per_batch": 50_000,
    "warmup_batches": 2,
    "conf_profile": "quick",
    "sampling_interval_s": 0.25,
}
VERIFY = {"events": 50_000, "tps": 1_000, "rows_per_batch": 25_000}
JUDGING, MEASURING = "judging", "measuring"
#: The largest number of runs of a night whose query is INVALID each time.
ATTEMPTS = 3
#: The variables of the user's databases: the nights of the benchmark go to none of them.
_DATABASES = ("NEXMARK_DB", "NEXMARK_AIRFLOW_DB")


@dataclass(frozen=True)
class Settings:
    """The settings that all nights share; other settings make another benchmark.

    Attributes:
        workload: The name of a workload of workloads.yaml; "" for the benchmark's own.
        pairs: The number of first pairs of each night.
        nights: The number of nights from which the gate learns the noise; 0 for none, so that each
            night is judged as a first night.
    """

    workload: str
    pairs: int
    nights: int


@dataclass(frozen=True)
class Done:
    """A night that was measured.

    Attributes:
        run: The name of the night in the results database.
        minutes: The time of all its attempts, in minutes.
    """

    run: str
    minutes: float


class Bench:
    """A benchmark in a directory, with the nights that were measured so far."""

    def __init__(self, directory: Path, settings: Settings) -> None:
        """Begin or continue a benchmark; NexmarkError if it was begun with other settings."""
        self.directory, self.settings = directory, settings
        kept = directory / "settings.json"
        if kept.exists() and (before := json.loads(kept.read_text())) != asdict(settings):
            settled = ", ".join(f"{name} {value or WORKLOAD}" for name, value in before.items())
            raise NexmarkError(
                f"{directory}: begun with {settled}; give these again, or --fresh to start over"
            )
        self._configure(directory / JUDGING, _rules_for_judging(settings.pairs))
        self._configure(directory / MEASURING, _rules_for_measuring(settings.pairs))
        for name in (JUDGING, MEASURING):
            load_gate(directory / name / "gate.yaml")  # a bad file fails now, not after hours
        kept.write_text(json.dumps(asdict(settings)))

    @property
    def workload(self) -> str:
        """Return the name of the workload of all nights."""
        return self.settings.workload or WORKLOAD

    @property
    def engine(self) -> Engine:
        """Return the engine of all nights, which is the newest one."""
        return load().newest

    def store(self) -> Store:
        """Open the results database of the benchmark."""
        return open_store(f"sqlite:///{self.directory / 'home' / 'results.db'}")

    def learn(self, queries: Sequence[str]) -> dict[str, Done]:
        """Return for each query the night that teaches the gate; measure the missing ones.

        It is a night of the build against itself, and the accepted baseline. If the gate learns
        from no nights, nothing is measured or returned.
        """
        if not self.settings.nights:
            return {}
        new = [query for query in queries if not self._known(f"learn {query}")]
        if new:
            build = str(self.engine.build)
            count = self.settings.nights * self.settings.pairs
            options = ["--build", build, "--against", build, "--repetitions", str(count)]
            done = self._run("build", new, options, MEASURING)
            self._teach(done.run, new)
            for query in new:
                self._keep(f"learn {query}", Done(done.run, done.minutes / len(new)))
        return {query: known for query in queries if (known := self._known(f"learn {query}"))}

    def _teach(self, run: str, queries: Sequence[str]) -> None:
        """Accept a night as the baseline of queries, and cut it into nights that teach."""
        gate = load_gate(self.directory / JUDGING / "gate.yaml")
        name = f"learned {' '.join(queries)}"
        with self.store() as store:
            store.accept(run, "bench-detection", "the baseline of all causes", queries)
            teach(store, run, self.engine.dag_id, name, self.settings.pairs, gate)

    def silent(self, query: str, number: int) -> Done:
        """Return a judged night of the build against itself, the `number`-th of a query."""
        key = f"silent {number}: {query}"
        verb, options = ("run", []) if self.settings.nights else ("build", self._build(""))
        return self._valid(key, query, lambda: self._run(verb, [query], options, JUDGING))

    def judged(self, cause: Cause) -> Done:
        """Return the night of a cause that the gate judges with all its rounds."""
        return self._valid(cause.name, cause.query, lambda: self._of(cause, [], JUDGING))

    def _valid(self, key: str, query: str, measure: Callable[[], Done]) -> Done:
        """Return a night that is not INVALID: a known one, or one that `measure` runs now.

        If all attempts are INVALID, return the last one. It is not kept, so the same command runs
        the night again.

        Args:
            key: The purpose of the night.
            query: Its query.
            measure: Runs the night.
        """
        if known := self._known(key):
            return known
        minutes = 0.0
        for attempt in range(1, ATTEMPTS + 1):
            done = measure()
            minutes += done.minutes
            done = Done(done.run, minutes)
            reason = self._invalid(done.run, query)
            if reason is None:
                return self._keep(key, done)
            show_line(f"{key}: INVALID, attempt {attempt} of {ATTEMPTS}: {reason}")
        return done

    def _invalid(self, run: str, query: str) -> str | None:
        """Return why the query of a night is INVALID; None if it is not."""
        with self.store() as store:
            deciding = [row for row in store.verdicts(run) if row.query == query and row.decides]
        return next((row.reason for row in deciding if row.value == Value.INVALID), None)

    def more(self, cause: Cause, pairs: int) -> Done:
        """Return a night with `pairs` more pairs of a cause, in one round only."""
        key = f"{cause.name}: {pairs} more"
        options = ["--repetitions", str(pairs)]
        return self._known(key) or self._keep(key, self._of(cause, options, MEASURING))

    def _of(self, cause: Cause, options: Sequence[str], conf: str) -> Done:
        given = [*self._build(cause.build), *cause.options, *options]
        return self._run("build", [cause.query], given, conf)

    def _build(self, candidate: str) -> list[str]:
        """Return the options of `nexmark build` that name both builds.

        Args:
            candidate: The candidate's build; "" for the build of the engine, as the baseline is.
        """
        against = [] if self.settings.nights else ["--against", str(self.engine.build)]
        return ["--build", candidate or str(self.engine.build), *against]

    def _run(self, verb: str, queries: Sequence[str], options: Sequence[str], conf: str) -> Done:
        """Run a night; NexmarkError with the end of its output if it was not judged.

        Args:
            verb: The verb of `nexmark`.
            queries: The queries.
            options: More options of the verb.
            conf: The name of the configuration, JUDGING or MEASURING.
        """
        begin = time.monotonic()
        command = [
            sys.executable,
            "-m",
            "nexmark.cli",
            verb,
            "--workload",
            self.workload,
            "--mode",
            Mode.PAIRED,
        ]
        command += ["--queries", ",".join(queries), *options]
        of_bench = {
            "NEXMARK_HOME": str(self.directory / "home"),
            "NEXMARK_CONF": str(self.directory / conf),
        }
        outside = {name: value for name, value in os.environ.items() if name not in _DATABASES}
        output = output_of(command, {**outside, **of_bench})
        name = re.search(r"\. Run (\S+/\S+)$", output, re.MULTILINE)
        if name is None:
            last_lines = " | ".join(output.strip().splitlines()[-5:])
            raise NexmarkError(f"a night ended before it was judged: {last_lines}")
        return Done(name[1], (time.monotonic() - begin) / 60)

    def _configure(self, conf: Path, changes: Mapping[str, object]) -> None:
        """Copy the configuration to `conf`, with our workload, and with changes of gate.yaml."""
        shutil.rmtree(conf, ignore_errors=True)
        shutil.copytree(paths.conf_dir(), conf)
        gate = {"self_test": 0, "flame_graphs": False, **changes}
        _edit(conf / "gate.yaml", None, gate)
        if not self.settings.workload:
            _edit(conf / "workloads.yaml", "workloads", {WORKLOAD: {**SIZE, "verify": VERIFY}})

    def _nights(self) -> dict[str, Any]:
        try:
            kept: dict[str, Any] = json.loads((self.directory / "nights.json").read_text())
        except FileNotFoundError:
            return {}
        return kept

    def _known(self, key: str) -> Done | None:
        kept = self._nights().get(key)
        return Done(**kept) if kept else None

    def _keep(self, key: str, done: Done) -> Done:
        kept = json.dumps({**self._nights(), key: asdict(done)}, indent=1)
        write_text(self.directory / "nights.json", kept)
        return done


def _rules_for_judging(pairs: int) -> dict[str, object]:
    """Return changes of the gate's rules: rounds in proportion to the number of first pairs."""
    nights = load_gate()
    comparison = nights.comparison.model_dump(mode="json")
    rounds = rounds_from(pairs, nights.for_comparison())
    return {
        "rounds": list(rounds_from(pairs, nights)),
        "comparison": {**comparison, "rounds": list(rounds)},
    }


def _rules_for_measuring(pairs: int) -> dict[str, object]:
    """Return changes of the gate's rules: one round only."""
    one_round: dict[str, object] = {"rounds": [pairs], "pursue_z": []}
    return {**one_round, "comparison": one_round}


def output_of(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Run a command that runs a night; return what it prints.

    When this process is interrupted, it sends SIGTERM and waits until the command has ended its
    night. `subprocess.run` would kill the command, and the processes of the night would go on.
    """
    night = subprocess.Popen(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # Ctrl-C reaches only this process, which ends the command
        preexec_fn=signalled_with_parent(signal.SIGTERM),
    )
    try:
        return night.communicate()[0]
    finally:
        with undisturbed():
            if night.poll() is None:
                night.terminate()
                night.communicate()


def _edit(path: Path, section: str | None, changes: Mapping[str, object]) -> None:
    """Change keys of a YAML file, or of a section of it."""
    content = yaml.safe_load(path.read_text())
    (content[section] if section else content).update(changes)
    path.write_text(yaml.safe_dump(content))
