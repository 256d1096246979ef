"""Why a query changed: operators, plans and Spark confs; and the command that measures it again."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from nexmark.config.fields import KNOWN_QUERIES
from nexmark.config.workload_models import WorkloadKind
from nexmark.evidence.night_rows import NightRows
from nexmark.evidence.pairs import arms_of
from nexmark.evidence.rows import Row
from nexmark.model import (
    ARMS,
    CANDIDATE_JOB,
    CPU,
    CPU_METRICS,
    LOOKS_CHANGED,
    MIN_PAIRS,
    SUITE,
    WALL,
    Arm,
    Mode,
    Value,
    grouped,
)
from nexmark.secrets import shown as hidden
from nexmark.secrets import without_secrets
from nexmark.store import Store
from nexmark.store.gate_rows import observed, plan_of
from nexmark.store.records import plan_id
from nexmark.store.table_rows import NightRow, RepetitionRow
from nexmark.verdict.verdict import Verdict

EXPLAINED = 3
"""The largest number of red queries that are explained below the table; evidence explains all."""
WIDTH = 320
"""The largest number of characters of an explanation below the table."""
_FEW = 3
"""The largest number of values of a conf that are all shown."""


@dataclass(frozen=True)
class ArmPlan:
    """The most frequent executed plan of an arm.

    ``others`` is the number of repetitions that had another plan.
    """

    id: str
    skeleton_hash: str
    text: str
    others: int


@dataclass(frozen=True)
class PlansCompared:
    """The plans by arm, and their difference, as the attribution also has it.

    ``diff`` has the lines of a unified difference from the baseline to the candidate; the first two
    lines name the arms. ``formulations`` are the names of the formulations that the arms ran.
    """

    state: PlanState
    arms: Mapping[str, ArmPlan]
    diff: tuple[str, ...]
    formulations: tuple[str, ...]

    @property
    def changed(self) -> bool | None:
        """Whether the texts of the plans differ; None if an arm has no plan."""
        return None if self.state is PlanState.UNKNOWN else self.state is not PlanState.SAME


@dataclass(frozen=True)
class ConfOfArms:
    """A Spark conf that differs between the arms.

    An arm that does not set the conf has None. ``set_by_harness``: the conf explains nothing,
    because it must differ between the arms, as a port does, or varies from run to run.
    """

    key: str
    candidate: str | tuple[str, ...] | None
    baseline: str | tuple[str, ...] | None
    set_by_harness: bool


@dataclass(frozen=True)
class ComparedArms:
    """The repetitions of a query that are compared.

    ``paired``: the baseline is an arm of the same night; if not, it is an accepted run.
    """

    candidate: Sequence[Observed]
    baseline: Sequence[Observed]
    paired: bool = True


def compared_arms(store: Store, run: str, query: str, verdicts: Iterable[Verdict]) -> ComparedArms:
    """Return the repetitions of a query of a run, and the repetitions they are compared with.

    The latter are the baseline arm of the night. If the night has none, they are the candidate of
    the accepted run with which the verdict compares.

    Args:
        store: The results database.
        run: The name of the run.
        query: The query.
        verdicts: The verdicts on the run, at least those on the query.
    """
    arms = observed(store, run, query)
    deciding = _deciding(verdicts, query)
    if not arms[Arm.BASELINE] and deciding is not None and deciding.baseline_run:
        accepted = observed(store, deciding.baseline_run, query)[Arm.CANDIDATE]
        return ComparedArms(arms[Arm.CANDIDATE], accepted, paired=False)
    return ComparedArms(arms[Arm.CANDIDATE], arms[Arm.BASELINE])


def _deciding(verdicts: Iterable[Verdict], query: str) -> Verdict | None:
    """Return the deciding verdict on a query; None if there is none."""
    return next((row for row in verdicts if row.query == query and row.decides), None)


def attribution_of(
    store: Store, run: str, query: str, verdicts: Sequence[Verdict] | None = None
) -> Attribution | None:
    """Return why a query of a run changed; None if it is compared with nothing.

    Args:
        store: The results database; no other source is read.
        run: The full name of a recorded run.
        query: The query.
        verdicts: All verdicts on the run; None to read them.
    """
    verdicts_on_run = store.verdicts(run) if verdicts is None else verdicts
    return attribution_between(
        compared_arms(store, run, query, verdicts_on_run), query, verdicts_on_run
    )


def attribution_between(
    arms: ComparedArms, query: str, verdicts: Sequence[Verdict]
) -> Attribution | None:
    """Return why a query changed between two arms; ``verdicts`` are the verdicts on its night."""
    deciding = _deciding(verdicts, query)
    by_metric = {verdict.metric: verdict for verdict in verdicts if verdict.query == query}
    wall = by_metric.get(WALL)
    # What is explained is all CPU time of the executors, whichever metric decides.
    change = by_metric.get(CPU, deciding) if deciding is not None else None
    stated = None
    if change is not None and change.ratio is not None:
        stated = CostChange(change.ratio, change.lo, change.hi)
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
    """Return why some queries of a night changed; queries without an attribution are left out."""
    run, verdicts = stored.night.id, stored.verdicts
    attributions_of_queries = (
        (query, attribution_of(store, run, query, verdicts)) for query in queries
    )
    return {
        query: attribution
        for query, attribution in attributions_of_queries
        if attribution is not None
    }


def attribution_lines(store: Store, stored: NightRows, rows: Sequence[Row]) -> list[str]:
    """Return a line on each of the first red queries.

    More lines name the queries whose arms were not computed in the same way, and those that are
    not red, but whose plans have other operators.
    """
    red = [row.query for row in rows if row.red and row.ratio]
    lines = [
        f"Why {query}: {one.kind.value}: {shorten(why, WIDTH, placeholder=' ...')}."
        for query, one in attributions(store, stored, red[:EXPLAINED]).items()
        if (why := words(one))
    ]
    arms = arms_of(stored.repetitions)
    unlike = dict(_formulations(stored, rows))
    if unlike:
        lines.append(f"Formulation: {'; '.join(unlike.values())}: not of the engine alone.")
    quiet = [row for row in rows if not row.red and row.query in arms.keys() - unlike.keys()]
    changed = [row for row in quiet if arms[row.query].plan is PlanState.CHANGED]
    for speed, of_speed in sorted(grouped(changed, _speed).items()):
        names = ", ".join(row.query for row in of_speed)
        lines.append(f"Plan: other operators than the baseline's, {speed}: {names}.")
    return lines


def _formulations(stored: NightRows, rows: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Yield the queries that the builds computed in other ways, and which these are.

    Two versions of a job of a person's own are what was asked for.
    """
    counting = [row for row in stored.repetitions if row.counts and row.formulation]
    by_arm = {
        (row.query, row.arm): row.formulation for row in counting if row.query in KNOWN_QUERIES
    }
    for query in (row.query for row in rows):
        ours, theirs = (by_arm.get((query, arm)) for arm in ARMS)
        if ours and theirs and ours != theirs:
            yield query, f"{query} {ours}, baseline {theirs}"


def _speed(row: Row) -> str:
    """Return in words what the verdict on a query says of its speed."""
    if row.metric not in CPU_METRICS:
        return "speed not judged"
    if row.value in LOOKS_CHANGED:
        return "faster" if (row.ratio or 1.0) < 1 else "slower"
    return "same speed" if row.value in (Value.OK, Value.WATCH) else "speed not decided"


def plans_of(store: Store, rows: Sequence[RepetitionRow], arms: ComparedArms) -> PlansCompared:
    """Return the most frequent plan of each arm, and how the two differ.

    ``rows`` are the repetitions of the query in the night. If no repetition of an arm counts, the
    plans of this arm are taken from them.
    """
    plans: dict[str, list[Plan]] = {
        Arm.CANDIDATE: [one.plan for one in arms.candidate if one.plan is not None],
        Arm.BASELINE: [one.plan for one in arms.baseline if one.plan is not None],
    }
    for arm, counting in plans.items():
        if not counting:
            ids = [row.plan_id for row in rows if row.arm == arm and row.plan_id]
            known = {key: plan_of(row) for key, row in store.plans(ids).items()}
            counting += [known[identity] for identity in ids]
    shown: dict[str, ArmPlan] = {}
    both: dict[str, Plan | None] = {arm: usual(of_arm) for arm, of_arm in plans.items()}
    for arm, plan in both.items():
        if plan is not None:
            others = sum(other != plan for other in plans[arm])
            shown[arm] = ArmPlan(plan_id(plan.text), plan.skeleton_hash, plan.text, others)
    pair = both[Arm.CANDIDATE], both[Arm.BASELINE]
    formulations = {one.formulation for one in (*arms.candidate, *arms.baseline)}
    return PlansCompared(
        state=state_of_plans(*pair),
        arms=shown,
        diff=plan_change(*pair).diff,
        formulations=tuple(sorted(name for name in formulations if name)),
    )


def confs_by_arm(
    repetitions: Iterable[RepetitionRow], most: int | None = _FEW
) -> dict[str, dict[str, str | tuple[str, ...]]]:
    """Return by arm the Spark confs that are not the defaults, with possible secrets hidden.

    A conf that differs between repetitions is a tuple of its values. If it has more than ``most``
    values, it is a text with their number and the first value.
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
    """Return the confs of the candidate, and the confs of the baseline."""
    return [one.confs for one in arms.candidate], [one.confs for one in arms.baseline]


def confs_of_suite(rows: Iterable[RepetitionRow]) -> tuple[Confs, Confs]:
    """Return the confs of both arms of a night, over all its queries, the candidate first."""
    by_arm = grouped((row for row in rows if row.counts), lambda row: row.arm)
    candidate, baseline = ([row.confs or {} for row in by_arm.get(arm, ())] for arm in ARMS)
    return candidate, baseline


def confs_compared(candidate: Confs, baseline: Confs) -> list[ConfOfArms] | None:
    """Return the confs that differ between two arms; None if an arm has no repetitions.

    The confs that the attribution names come first. After them come the confs that the harness sets
    differently, and those that vary between the repetitions of an arm.
    """
    both_arms = candidate, baseline
    explaining = [
        ConfOfArms(one.name, one.candidate, one.baseline, set_by_harness=False)
        for one in conf_differences(*both_arms)
    ]
    named = {conf.key for conf in explaining}
    of_candidate, of_baseline = map(_values, both_arms)
    others = [
        ConfOfArms(key, _one_or_few(key, new), _one_or_few(key, old), set_by_harness=True)
        for key in sorted((of_candidate.keys() | of_baseline.keys()) - named)
        if (new := of_candidate.get(key, {})).keys() != (old := of_baseline.get(key, {})).keys()
    ]
    return [*explaining, *others] if candidate and baseline else None


def _values(repetitions: Iterable[Mapping[str, str]]) -> dict[str, dict[str, None]]:
    """Return the different values of each conf, in the order of the repetitions of an arm."""
    values: dict[str, dict[str, None]] = {}
    for confs in repetitions:
        for key, value in confs.items():
            values.setdefault(str(key), {})[str(value)] = None
    return values


def _one_or_few(
    key: str, values: Iterable[str], most: int | None = None
) -> str | tuple[str, ...] | None:
    """Return the values of a conf for people, with a possible secret hidden.

    One value is a text, several values are a tuple, and no value is None. More than ``most`` values
    are a text with their number and the first value.
    """
    shown = list(dict.fromkeys(hidden(key, value) for value in values))
    if len(shown) < 2:
        return shown[0] if shown else None
    if most is None or len(shown) <= most:
        return tuple(shown)
    return f"{len(shown)} values, as {shown[0]}"


def reproduce(store: Store, stored: NightRows, query: str) -> str:
    """Return the command that measures the candidate of a query again, against the same baseline.

    A night in pairs is measured again in pairs with the same build. A night by bounds is judged
    again by bounds: pairs would run both builds with the confs of today, and so could not show what
    changed because the accepted run had other confs. If the night compared the query with
    nothing, the command measures the candidate alone. The command does not have the passwords in
    the URLs of builds: a person has to put them in again.
    """
    night = stored.night
    options = {
        "--build": store.build(night.build_id).source,
        "--against": _against(store, night, query),
        "--mode": Mode.BOUNDS.value if night.mode == Mode.BOUNDS else "",
        "--queries": ",".join(night.queries) if query == SUITE else query,
        "--workload": night.workload,
        "--cluster": night.cluster,
        "--engine": night.engine,
    }
    verb = "build"
    if night.workload_spec.get("kind") == WorkloadKind.SOAK:
        verb, options["--mode"] = "soak", ""
        if not night.workload_spec.get("sizes"):  # --batches has taken their place
            options["--batches"] = str(batches_of(night))
    elif night.repetitions >= MIN_PAIRS or not options["--against"]:
        options["--repetitions"] = str(night.repetitions)
    words = ["nexmark", verb]
    for name, value in options.items():
        words += [name, without_secrets(value)] if value else []
    for key, value in (night.candidate_conf or {}).items():
        if key == CANDIDATE_JOB:
            words += ["--candidate-job", str(value)]
        elif not key.startswith(f"{CANDIDATE_JOB}."):
            words += ["--candidate-conf", f"{key}={hidden(str(key), str(value))}"]
    if any(row.red and row.query == query for row in stored.compatibility):
        words.append("--compatibility")
    return shlex.join(words)


def batches_of(night: NightRow) -> int:
    """Return the number of batches that a repetition of a night has."""
    spec = night.workload_spec
    return int(str(spec["events"])) // int(str(spec["rows_per_batch"]))


def _against(store: Store, night: NightRow, query: str) -> str:
    """Return the source of the build that was the baseline arm of a query; "" without one."""
    builds = night.baselines or {}
    build = next(iter(builds.values()), None) if query == SUITE else builds.get(query)
    return "" if build is None else store.build(str(build)).source
