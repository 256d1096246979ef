"""Possible reasons for a change: operators, plans, confs; and how to measure it again."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import TypeAlias

from nexmark.attribution.attribute import attribute
from nexmark.attribution.differences import (
    PlanState,
    conf_differences,
    plan_change,
    state_of_plans,
    usual,
)
from nexmark.attribution.explained import Attribution, CostChange, Observed, Plan, words
from nexmark.evidence.night_rows import NightRows
from nexmark.evidence.pairs import arms_of
from nexmark.evidence.rows import Row
from nexmark.model import ARMS, MIN_PAIRS, SUITE, WALL, Arm, grouped
from nexmark.secrets import shown as hidden
from nexmark.secrets import without_secrets
from nexmark.store import Store
from nexmark.store.gate_rows import observed, plan_of
from nexmark.store.records import plan_id
from nexmark.store.table_rows import RepetitionRow
from nexmark.verdict.verdict import Verdict

EXPLAINED = 3  # the most red queries that are explained under the table; the evidence explains all
WIDTH = 320
_FEW = 3


@dataclass(frozen=True)
class ArmPlan:
    """The executed plan of an arm; ``others``: how many repetitions had another one."""

    id: str
    skeleton_hash: str
    text: str
    others: int


@dataclass(frozen=True)
class PlansCompared:
    """The plans by arm, and their difference as the attribution has it.

    ``diff`` is unified, from the baseline to the candidate; the first two lines name the arms.
    """

    state: PlanState
    arms: Mapping[str, ArmPlan]
    diff: tuple[str, ...]
    formulations: tuple[str, ...]

    @property
    def changed(self) -> bool | None:
        """Whether the texts differ; None where there are not two plans to compare."""
        return None if self.state is PlanState.UNKNOWN else self.state is not PlanState.SAME


@dataclass(frozen=True)
class ConfOfArms:
    """A Spark conf that differs between the arms.

    ``set_by_harness``: it has to differ, as a port does, or varies from run to run, and explains
    nothing.
    """

    key: str
    candidate: str | tuple[str, ...] | None
    baseline: str | tuple[str, ...] | None
    set_by_harness: bool


@dataclass(frozen=True)
class ComparedArms:
    """The repetitions of a query that are compared; not ``paired``: with an accepted run."""

    candidate: Sequence[Observed]
    baseline: Sequence[Observed]
    paired: bool = True


def compared_arms(store: Store, run: str, query: str, verdicts: Iterable[Verdict]) -> ComparedArms:
    """Return what a query of a run is compared with.

    That is the baseline arm of the night if it has one, else the accepted run that the verdict is
    against.
    """
    arms = observed(store, run, query)
    deciding = _deciding(verdicts, query)
    if not arms[Arm.BASELINE] and deciding is not None and deciding.baseline_run:
        accepted = observed(store, deciding.baseline_run, query)[Arm.CANDIDATE]
        return ComparedArms(arms[Arm.CANDIDATE], accepted, paired=False)
    return ComparedArms(arms[Arm.CANDIDATE], arms[Arm.BASELINE])


def _deciding(verdicts: Iterable[Verdict], query: str) -> Verdict | None:
    return next((row for row in verdicts if row.query == query and row.decides), None)


def attribution_of(
    store: Store, run: str, query: str, verdicts: Sequence[Verdict] | None = None
) -> Attribution | None:
    """Return why a query of a run changed; None where there is nothing to compare it with.

    ``run`` is the full name of a recorded run. Reads the results database only; ``verdicts`` are
    all of the run, read where they are not given.
    """
    every = store.verdicts(run) if verdicts is None else verdicts
    return attribution_between(compared_arms(store, run, query, every), query, every)


def attribution_between(
    arms: ComparedArms, query: str, verdicts: Sequence[Verdict]
) -> Attribution | None:
    """Return why a query changed between these arms; ``verdicts`` are of its night."""
    deciding = _deciding(verdicts, query)
    wall = next((x for x in verdicts if x.query == query and x.metric == WALL), None)
    stated = None
    if deciding is not None and deciding.ratio is not None:
        stated = CostChange(deciding.ratio, deciding.lo, deciding.hi)
    return attribute(
        query,
        arms.candidate,
        arms.baseline,
        stated=stated,
        verdict=deciding.value if deciding else None,
        wall_verdict=wall.value if wall else None,
        paired=arms.paired,
    )


def attributions(store: Store, stored: NightRows, queries: Iterable[str]) -> dict[str, Attribution]:
    """Return the attributions of some queries of a night, by query, where there are any."""
    run, verdicts = stored.night.id, stored.verdicts
    every = ((query, attribution_of(store, run, query, verdicts)) for query in queries)
    return {query: attribution for query, attribution in every if attribution is not None}


def attribution_lines(store: Store, stored: NightRows, rows: Sequence[Row]) -> list[str]:
    """Return a line on each of the first red queries, and one on plans that changed unnoticed."""
    red = [row.query for row in rows if row.red and row.ratio]
    lines = [
        f"Why {query}: {one.kind.value}: {shorten(why, WIDTH, placeholder=' ...')}."
        for query, one in attributions(store, stored, red[:EXPLAINED]).items()
        if (why := words(one))
    ]
    arms = arms_of(stored.repetitions)
    quiet = [row.query for row in rows if not row.red]
    if changed := [x for x in quiet if x in arms and arms[x].plan is PlanState.CHANGED]:
        names = ", ".join(changed)
        lines.append(f"Plan: other operators than the baseline's, same speed: {names}.")
    return lines


def plans_of(store: Store, rows: Sequence[RepetitionRow], arms: ComparedArms) -> PlansCompared:
    """Return by arm the plan that most of its repetitions had, and how the two differ.

    ``rows`` are of the night itself: where no repetition of an arm counts, they show what ran.
    """
    plans: dict[str, list[Plan]] = {
        Arm.CANDIDATE: [x.plan for x in arms.candidate if x.plan is not None],
        Arm.BASELINE: [x.plan for x in arms.baseline if x.plan is not None],
    }
    for arm, counting in plans.items():
        if not counting:
            ids = [row.plan_id for row in rows if row.arm == arm and row.plan_id]
            known = {key: plan_of(row) for key, row in store.plans(ids).items()}
            counting += [known[identity] for identity in ids]
    shown: dict[str, ArmPlan] = {}
    both: dict[str, Plan | None] = {arm: usual(own) for arm, own in plans.items()}
    for arm, plan in both.items():
        if plan is not None:
            others = sum(other != plan for other in plans[arm])
            shown[arm] = ArmPlan(plan_id(plan.text), plan.skeleton_hash, plan.text, others)
    pair = both[Arm.CANDIDATE], both[Arm.BASELINE]
    formulations = {x.formulation for x in (*arms.candidate, *arms.baseline) if x.formulation}
    return PlansCompared(
        state_of_plans(*pair), shown, plan_change(*pair).diff, tuple(sorted(formulations))
    )


def confs_by_arm(
    repetitions: Iterable[RepetitionRow], most: int | None = _FEW
) -> dict[str, dict[str, str | tuple[str, ...]]]:
    """Return by arm the Spark confs that are not the defaults, with possible secrets hidden.

    A conf that differs between repetitions is a tuple; of one with more than ``most`` values
    only the number and the first are kept.
    """
    by_arm = grouped((row for row in repetitions if row.confs), lambda row: row.arm)
    return {
        arm: {
            key: _one_or_few(key, values, most) or ""
            for key, values in sorted(_values(row.confs or {} for row in rows).items())
        }
        for arm, rows in sorted(by_arm.items())
    }


Confs: TypeAlias = Sequence[Mapping[str, str]]
"""The Spark confs of each repetition of an arm."""


def confs_of(arms: ComparedArms) -> tuple[Confs, Confs]:
    """Return the confs of the candidate and of what a query is compared with."""
    return [x.confs for x in arms.candidate], [x.confs for x in arms.baseline]


def confs_of_suite(rows: Iterable[RepetitionRow]) -> tuple[Confs, Confs]:
    """Return the confs of both arms of a night, of all its queries."""
    by_arm = grouped((row for row in rows if row.counts), lambda row: row.arm)
    ours, theirs = ([row.confs or {} for row in by_arm.get(arm, ())] for arm in ARMS)
    return ours, theirs


def confs_compared(candidate: Confs, baseline: Confs) -> list[ConfOfArms] | None:
    """Return the confs that two arms do not have in common; None where there are not two arms.

    Those come first that the attribution names; after them what the harness sets apart, and what
    is not the same in all repetitions of an arm.
    """
    every = candidate, baseline
    explaining = [
        ConfOfArms(one.name, one.candidate, one.baseline, set_by_harness=False)
        for one in conf_differences(*every)
    ]
    named = {conf.key for conf in explaining}
    ours, theirs = map(_values, every)
    others = [
        ConfOfArms(key, _one_or_few(key, new), _one_or_few(key, old), set_by_harness=True)
        for key in sorted((ours.keys() | theirs.keys()) - named)
        if (new := ours.get(key, {})).keys() != (old := theirs.get(key, {})).keys()
    ]
    return [*explaining, *others] if candidate and baseline else None


def _values(repetitions: Iterable[Mapping[str, str]]) -> dict[str, dict[str, None]]:
    """Return by key the values that the repetitions of an arm had, in order."""
    values: dict[str, dict[str, None]] = {}
    for confs in repetitions:
        for key, value in confs.items():
            values.setdefault(str(key), {})[str(value)] = None
    return values


def _one_or_few(
    key: str, values: Iterable[str], most: int | None = None
) -> str | tuple[str, ...] | None:
    shown = list(dict.fromkeys(hidden(key, value) for value in values))
    if len(shown) < 2:
        return shown[0] if shown else None
    if most is None or len(shown) <= most:
        return tuple(shown)
    return f"{len(shown)} values, as {shown[0]}"


def reproduce(store: Store, stored: NightRows, query: str) -> str:
    """Return the line that measures the candidate against what ``query`` was compared with.

    Where the night compared it with nothing, it measures the candidate alone. A
    password in the URL of a build is not shown: it has to be put in again.
    """
    night = stored.night
    options = {
        "--build": store.build(night.build_id).source,
        "--against": _against(store, stored, query),
        "--queries": ",".join(night.queries) if query == SUITE else query,
        "--workload": night.workload,
        "--cluster": night.cluster,
        "--engine": night.engine,
    }
    if night.repetitions >= MIN_PAIRS or not options["--against"]:
        options["--repetitions"] = str(night.repetitions)
    words = ["nexmark", "build"]
    for name, value in options.items():
        words += [name, without_secrets(value)] if value else []
    for key, value in (night.candidate_conf or {}).items():
        words += ["--candidate-conf", f"{key}={hidden(str(key), str(value))}"]
    if any(row.red and row.query == query for row in stored.compatibility):
        words.append("--compatibility")
    return shlex.join(words)


def _against(store: Store, stored: NightRows, query: str) -> str:
    """Return the source of the build that a query was compared with, "" for none."""
    builds = stored.night.baselines or {}
    build = next(iter(builds.values()), None) if query == SUITE else builds.get(query)
    if build is None:
        verdict = stored.deciding(query)
        run = verdict.baseline_run if verdict else None
        build = store.night(run).build_id if run else None
    return store.build(str(build)).source if build else ""
