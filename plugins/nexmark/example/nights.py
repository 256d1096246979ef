"""Measure the example nights by a simulation, judge them as every night is judged, record them.

The gate looks at the pairs after each round, and says which queries the next round measures. What
it said of earlier nights is what it remembers.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

from nexmark.acceptance.known_verdicts import covered
from nexmark.config import SIGNOFF_DAG_ID, Config, paths
from nexmark.evidence.night_evidence import night_evidence
from nexmark.evidence.signoffs import SignOffDecision
from nexmark.example.figures import SimulatedRun, canary_rows
from nexmark.example.noise import log_times, random_numbers
from nexmark.example.story import (
    CV,
    ENGINES,
    FIGURES,
    NIGHTS,
    SIGNED_OFF,
    SIGNOFF_BUILD,
    Acceptance,
    ExampleEngine,
)
from nexmark.model import CPU, TASK_CPU, WALL, Arm, Basis, Mode, Say, build_name
from nexmark.night.run_directory import RunDirectory
from nexmark.report.evidence_files import write_bundle, write_night
from nexmark.store import NightRecord, RepetitionRecord, Store, ValidationRecord, WholeNight
from nexmark.store.table_rows import CanaryRow, SelfTestRow
from nexmark.verdict.baseline_chain import Lineage
from nexmark.verdict.eligibility import grade
from nexmark.verdict.left_open import LeftOpen
from nexmark.verdict.measured_night import (
    Canary,
    Measured,
    MeasuredNight,
    canaries_of,
    rounds_of,
)
from nexmark.verdict.nightly import going_on, judge_night
from nexmark.verdict.verdict import Verdict

if TYPE_CHECKING:
    import numpy as np

WORKLOAD, CLUSTER = "nightly", "nexmark"
RUN_ID = "example__{:%Y-%m-%dT%H:%M:%S}+00:00"
"""The name of an example night: it is the same in every table, link and file."""
DEEP = 3
"""The number of newest nights whose repetitions have all details."""
JUDGED = timedelta(hours=4)
"""How long after its start a night is judged."""
_SELF_TESTS: Mapping[Arm, tuple[str, float]] = {Arm.CONTROL: ("q1", 1.0), Arm.SLOWED: ("q0", 1.2)}
"""The arms by which the gate tests itself: the query, and how much slower it is made."""


@dataclass
class Remembered:
    """What the gate knows of the earlier nights of an engine."""

    taught: list[Sequence[Verdict]] = field(default_factory=list)
    lineage: Lineage = field(default_factory=Lineage)
    left_open: LeftOpen = field(default_factory=LeftOpen)


@dataclass
class Simulation:
    """One example night while it is measured.

    ``runs`` are its repetitions so far. ``number`` is the number of the night, ``build`` the number
    of the build that it tests.
    """

    config: Config
    engine: ExampleEngine
    number: int
    build: int
    record: NightRecord
    rng: "np.random.Generator"
    runs: list[SimulatedRun] = field(default_factory=list)

    def measure(self, arms: Mapping[str, Sequence[str]], stage: int, pairs: int) -> None:
        """Measure pairs of queries; ``arms`` are by query those beside the baseline."""
        for query, others in arms.items():
            draws = [log_times(CV, pairs, self.rng) for _ in others]
            columns = [draws[0][:, 0], *(draw[:, 1] for draw in draws)]
            for arm, noise in zip((Arm.BASELINE, *others), columns, strict=True):
                for pair in range(pairs):
                    self.runs.append(self._run(query, arm, stage, pair + 1, float(noise[pair])))

    def _run(self, query: str, arm: str, stage: int, pair: int, noise: float) -> SimulatedRun:
        """Return a repetition.

        Args:
            query: The query.
            arm: The arm.
            stage: The round.
            pair: The number of the pair in its round.
            noise: By how much it is off its level (log).
        """
        engine, baseline = self.engine, (self.record.baselines or {})[query]
        number = self.build if arm == Arm.CANDIDATE else engine.number(baseline)
        ratio = engine.ratio(query, number, self.number)
        against = engine.ratio(query, engine.number(baseline), self.number)
        ratio *= _SELF_TESTS[Arm.SLOWED][1] if arm == Arm.SLOWED else 1
        traced = arm == Arm.CANDIDATE and query == engine.traced and ratio > against
        return SimulatedRun(
            run=self.record.run,
            query=query,
            arm=arm,
            stage=stage,
            number=pair,
            build=engine.build(number),
            figure=FIGURES[query] * ratio * math.exp(noise),
            started=self.record.started,
            deep=self.number >= NIGHTS - DEEP or query in self._changed,
            traced=ratio / against if traced else 1.0,
        )

    @property
    def _changed(self) -> set[str]:
        """The queries with which something happens to the build of this night."""
        levels = {level.query for level in self.engine.levels if level.build == self.build}
        return levels | {self.engine.cut_short.get(self.number, "")}

    def measured(self, arm: str, queries: Sequence[str], wrong: str) -> MeasuredNight:
        """Return what the gate gets of an arm; the result of the query ``wrong`` is not right."""
        return MeasuredNight(
            self.record.run,
            tuple(each for query in queries for each in self._metrics(arm, query)),
            self.canary,
            expected=tuple(queries),
            asked=self.config.gate.pairs,
            invalid={wrong: _WRONG} if wrong in queries else {},
            baseline=dict(self.record.baselines or {}),
            groups={query: query for query in queries},
            teaches=self.record.teaches,
            candidate=self.record.build.id if arm == Arm.CANDIDATE else "",
        )

    @cached_property
    def readings(self) -> list[CanaryRow]:
        """The readings of the canary."""
        broken = self.engine.broken.get(self.number)
        return canary_rows(self.record.queries, self.record.started, broken)

    @cached_property
    def canary(self) -> tuple[Canary, ...]:
        """The same readings as the gate gets them."""
        return canaries_of(
            (row.metric, row.host, row.group, row.moment, float(row.value or 0))
            for row in self.readings
        )

    def _metrics(self, arm: str, query: str) -> Iterator[Measured]:
        """Yield the pairs of a query, by the CPU times and by wall-clock time."""
        arms = (arm, Arm.BASELINE)
        runs = [run for run in self.runs if run.query == query and run.arm in arms]
        for metric, basis, figure in (
            (TASK_CPU, Basis.STEADY, attrgetter("task_figure")),
            (CPU, Basis.STEADY, attrgetter("figure")),
            (WALL, None, attrgetter("wall_s")),
        ):
            figures = [(run.stage, run.number, run.arm, figure(run)) for run in runs]
            first, *later = rounds_of(figures, arms)
            yield Measured(query, metric, first, tuple(later), basis)

    def records(self) -> Iterator[RepetitionRecord]:
        """Yield the repetitions as they are recorded, in the order in which they ran."""
        positions = Counter[tuple[str, int]]()
        for place, run in enumerate(self.runs):
            positions[run.query, run.stage] += 1
            yield run.record(positions[run.query, run.stage], place)


_WRONG = "the result is wrong: 12 rows differ from the reference, the first is (1007, 'OR')"


def make_nights(store: Store, config: Config, say: Say) -> None:
    """Record all example nights in an empty database, and write their evidence.

    Args:
        store: The empty results database.
        config: The configuration that the package came with.
        say: Says what is made.
    """
    for engine in ENGINES:
        say(f"{NIGHTS} example nights of {engine.name}")
        remembered = Remembered(lineage=Lineage(names=_names(engine)))
        for number in range(NIGHTS):
            simulation = _night(store, config, engine, number)
            _record(store, simulation, remembered)
            for acceptance in engine.acceptances:
                if acceptance.night == number:
                    _accept(store, simulation, acceptance)
            if number == NIGHTS - 1:
                _write_evidence(store, simulation.record)
    say(f"a sign-off of {SIGNED_OFF.name}")
    _sign_off(store, config)


def _night(
    store: Store, config: Config, engine: ExampleEngine, number: int, signoff: bool = False
) -> Simulation:
    """Return a night that is not measured yet.

    Args:
        store: The results database, which knows what is accepted.
        config: The configuration.
        engine: The engine.
        number: The number of the night.
        signoff: Whether it is the night of the sign-off.
    """
    configured = config.engine(engine.name)
    started = engine.started(number) + (timedelta(hours=7) if signoff else timedelta())
    build = SIGNOFF_BUILD if signoff else engine.build_of(number)
    accepted = store.accepted(engine.name, WORKLOAD, CLUSTER, started)
    first = engine.build(0)
    baselines = {
        query: accepted[query].build_id or first.id if query in accepted else first.id
        for query in FIGURES
    }
    dag_id = SIGNOFF_DAG_ID if signoff else configured.dag_id
    run_id = RUN_ID.format(started)
    record = NightRecord(
        dag_id=dag_id,
        run_id=run_id,
        engine=engine.name,
        workload=WORKLOAD,
        cluster=CLUSTER,
        build=engine.build(build),
        jobs="e" * 16,
        workload_spec=config.workloads[WORKLOAD].model_dump(mode="json"),
        cluster_spec=config.clusters[CLUSTER].model_dump(mode="json"),
        queries=tuple(FIGURES),
        repetitions=config.gate.pairs,
        directory=RunDirectory.of(dag_id, run_id).path,
        started=started,
        mode=Mode.PAIRED,
        baselines=baselines,
        seed=number,
        gate_spec=config.gate.model_dump(mode="json"),
        teaches=not signoff,
        baseline_builds=[engine.build(engine.number(each)) for each in set(baselines.values())],
    )
    rng = random_numbers(ENGINES.index(engine), number, signoff)
    return Simulation(config, engine, number, build, record, rng)


def _record(store: Store, night: Simulation, remembered: Remembered) -> None:
    """Measure a night, judge it and record it; remember what was said of it."""
    gate, queries = night.config.gate, night.record.queries
    wrong = night.engine.wrong.get(night.number, "")
    arms: dict[str, list[str]] = {query: [Arm.CANDIDATE] for query in queries}
    for arm, (query, _) in _SELF_TESTS.items():
        arms[query].append(arm)
    night.measure(arms, 1, gate.pairs)
    for number in range(2, len(gate.rounds) + 1):
        again = _going_on(night, remembered, number)
        if not again:
            break
        night.measure(again, number, gate.rounds[number - 1])
    measured = remembered.left_open.added_to(night.measured(Arm.CANDIDATE, queries, wrong))
    verdicts = judge_night(measured, remembered.taught, gate, remembered.lineage)
    self_tests = [_self_test(night, arm, remembered) for arm in _SELF_TESTS]
    interrupted = night.number in night.engine.interrupted and night.record.teaches
    if not interrupted and night.record.teaches:
        remembered.left_open.add(measured, verdicts)
        day = night.record.started.date().isoformat()
        remembered.lineage.add(verdicts, gate, night.record.teaches, day)
        remembered.taught.append(verdicts)
    hosts = grade(measured.canary, gate)
    store.record_whole_night(
        WholeNight(
            night.record,
            night.record.started + JUDGED,
            list(night.records()),
            [] if interrupted else [_validation(night.record.run, each, wrong) for each in queries],
            night.readings,
            [] if interrupted else self_tests,
            [] if interrupted else verdicts,
            None if interrupted else hosts.steadiness.name.lower(),
            hosts.reason,
        )
    )


def _going_on(night: Simulation, remembered: Remembered, number: int) -> dict[str, list[str]]:
    """Return by query the arms that a round measures beside the baseline."""
    gate, arms = night.config.gate, dict[str, list[str]]()
    measured = remembered.left_open.added_to(
        night.measured(
            Arm.CANDIDATE, night.record.queries, night.engine.wrong.get(night.number, "")
        )
    )
    for query in going_on(measured, remembered.taught, gate, number):
        if query != night.engine.cut_short.get(night.number):
            arms[query] = [Arm.CANDIDATE]
    for arm, (query, _) in _SELF_TESTS.items():
        if going_on(night.measured(arm, [query], ""), remembered.taught, gate, number):
            arms.setdefault(query, []).append(arm)
    return arms


def _names(engine: ExampleEngine) -> dict[str, str]:
    """Return the names of the builds of an engine, by their ids."""
    builds = (engine.build(number) for number in range(NIGHTS))
    return {build.id: build_name(build.version, build.source, build.id) for build in builds}


def _self_test(night: Simulation, arm: Arm, remembered: Remembered) -> SelfTestRow:
    """Return what the gate says of an arm whose truth is known."""
    gate, (query, size) = night.config.gate, _SELF_TESTS[arm]
    tested = night.measured(arm, [query], "")
    judged = judge_night(tested, remembered.taught, gate, Lineage())
    verdict = next(one for one in judged if one.query == query and one.decides)
    return SelfTestRow(
        kind="slowdown" if arm == Arm.SLOWED else "aa",
        query=query,
        size=size,
        value=verdict.value,
        ratio=verdict.ratio,
        lo=verdict.lo,
        hi=verdict.hi,
        gate_version=gate.version,
    )


def _validation(run: str, query: str, wrong: str) -> ValidationRecord:
    failures = [_WRONG] if query == wrong else []
    return ValidationRecord(run, query, not failures, failures, 14, {"rows": 100_000})


def _accept(store: Store, night: Simulation, acceptance: Acceptance) -> None:
    """Accept queries of a night as a person did; judge what is red there as known."""
    moment = night.record.started + timedelta(hours=acceptance.hours)
    expires = None if acceptance.days is None else moment + timedelta(days=acceptance.days)
    run = night.record.run
    store.accept(
        run,
        acceptance.who,
        acceptance.reason,
        acceptance.queries or None,
        expires=expires,
        link=acceptance.link,
        at=moment,
    )
    if acceptance.withdrawn:
        number = store.acceptances()[-1].id
        later = moment + timedelta(hours=3)
        store.withdraw(number, acceptance.who, acceptance.withdrawn, at=later)
    verdicts = store.verdicts(run)
    if known := covered(store, run, verdicts):
        store.record_verdicts(
            run,
            [
                replace(one, acceptance=known.get(one.query)) if one.decides else one
                for one in verdicts
            ],
        )


def _write_evidence(store: Store, night: NightRecord) -> None:
    """Write the report and the evidence of a night, as its task `report` does."""
    write_night(RunDirectory(night.directory).report, store, night.run)


def _sign_off(store: Store, config: Config) -> None:
    """Measure the build that is signed off in a night of its own, and seal the decision."""
    night = _night(store, config, SIGNED_OFF, SIGNOFF_BUILD * 2 + 1, signoff=True)
    _record(store, night, Remembered(lineage=Lineage(names=_names(SIGNED_OFF))))
    _write_evidence(store, night.record)
    moment: datetime = night.record.started + timedelta(hours=9)
    decision = SignOffDecision(
        choice="approved",
        who="grace",
        when=moment.isoformat(),
        reason="no query is slower, and every result is right",
        signed_off=True,
    )
    evidence = replace(night_evidence(store, store.night(night.record.run)), decision=decision)
    files = RunDirectory(night.record.directory)
    kept = paths.home() / "signoffs" / paths.safe_name(night.record.run)
    write_bundle(files.signoff, kept, evidence, store)
