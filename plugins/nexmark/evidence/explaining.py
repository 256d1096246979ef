"""Possible reasons for a change: operators, plans, confs; and how to measure it again."""

import difflib
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten

from nexmark.attribution.attribute import attribute
from nexmark.attribution.explained import Attribution, CostChange, words
from nexmark.config.fields import is_reserved
from nexmark.evidence.pairs import CHANGED, Arms, arms_of
from nexmark.evidence.rows import Row
from nexmark.model import ARMS, MIN_PAIRS, SUITE, WALL, Arm
from nexmark.secrets import shown as hidden
from nexmark.secrets import without_secrets
from nexmark.store import Store
from nexmark.store.gate_rows import observed
from nexmark.store.table_rows import NightRow, RepetitionRow
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
    """The plans by arm. ``state``: same, details differ, changed; – where an arm has none.

    ``diff`` is unified, from the baseline to the candidate; the first two lines name the arms.
    """

    state: str
    arms: Mapping[str, ArmPlan]
    diff: tuple[str, ...]
    formulations: tuple[str, ...]

    @property
    def changed(self) -> bool | None:
        """Whether the texts differ; None where there are not two plans to compare."""
        if len(self.arms) < len(ARMS):
            return None
        return self.arms[Arm.CANDIDATE].id != self.arms[Arm.BASELINE].id


@dataclass(frozen=True)
class ConfOfArms:
    """A Spark conf that differs; ``set_by_harness``: a port, say, that has to be set apart."""

    key: str
    candidate: str | tuple[str, ...] | None
    baseline: str | tuple[str, ...] | None
    set_by_harness: bool


def attribution_of(
    store: Store, run: str, query: str, verdicts: Iterable[Verdict] | None = None
) -> Attribution | None:
    """Return why a query of a run changed; None where there is nothing to compare it with.

    ``run`` is the full name of a recorded run. The baseline is the baseline arm of the night if it
    has one, else the accepted run that the verdict is against; ``paired`` says which. Reads the
    results database only; ``verdicts`` are all of the run, read where they are not given.
    """
    every = store.verdicts(run) if verdicts is None else verdicts
    own = [row for row in every if row.query == query]
    deciding = next((row for row in own if row.decides), None)
    wall = next((row for row in own if row.metric == WALL), None)
    arms = observed(store, run, query)
    baseline, paired = arms[Arm.BASELINE], True
    if not baseline and deciding is not None and deciding.baseline_run:
        baseline = observed(store, deciding.baseline_run, query)[Arm.CANDIDATE]
        paired = False
    stated = None
    if deciding is not None and deciding.ratio is not None:
        stated = CostChange(deciding.ratio, deciding.lo, deciding.hi)
    return attribute(
        query,
        arms[Arm.CANDIDATE],
        baseline,
        stated=stated,
        verdict=deciding.value if deciding else None,
        wall_verdict=wall.value if wall else None,
        paired=paired,
    )


def attributions(store: Store, night: NightRow, queries: Iterable[str]) -> dict[str, Attribution]:
    """Return the attributions of some queries of a night, by query, where there are any."""
    verdicts = store.verdicts(night.id)
    found = ((query, attribution_of(store, night.id, query, verdicts)) for query in queries)
    return {query: one for query, one in found if one is not None}


def attribution_lines(
    store: Store, night: NightRow, rows: Sequence[Row], repetitions: Iterable[RepetitionRow]
) -> list[str]:
    """Return a line on each of the first red queries, and one on plans that changed unnoticed."""
    red = [row.query for row in rows if row.red and row.ratio]
    lines = [
        f"Why {query}: {one.kind.value}: {shorten(why, WIDTH, placeholder=' ...')}."
        for query, one in attributions(store, night, red[:EXPLAINED]).items()
        if (why := words(one))
    ]
    arms = arms_of(repetitions)
    quiet = [row.query for row in rows if not row.red]
    if changed := [x for x in quiet if x in arms and arms[x].plan == CHANGED]:
        names = ", ".join(changed)
        lines.append(f"Plan: other operators than the baseline's, same speed: {names}.")
    return lines


def plans_of(store: Store, rows: Sequence[RepetitionRow], arms: Arms) -> PlansCompared:
    """Return by arm the plan that most of its repetitions had, and how the two differ.

    ``rows`` are of the night itself; if they have no baseline, the baseline of ``arms`` is used.
    Only where none of an arm counts, the others show what ran.
    """
    known_plans = {arm: [x for x in rows if x.arm == arm and x.plan_id] for arm in ARMS}
    counts = {
        arm: Counter(x.plan_id for x in [x for x in own if x.counts] or own)
        for arm, own in known_plans.items()
    }
    if not counts[Arm.BASELINE]:
        counts[Arm.BASELINE] = Counter(x.plan_id for x in arms.baseline if x.plan_id)
    known = store.plans(plan for count in counts.values() for plan in count if plan)
    shown: dict[str, ArmPlan] = {}
    for arm, count in counts.items():
        if count:
            identity, times = count.most_common(1)[0]
            row = known[str(identity)]
            shown[arm] = ArmPlan(row.id, row.skeleton_hash, row.text, count.total() - times)
    diff: Iterable[str] = ()
    if len(shown) == len(ARMS):
        old, new = (shown[arm].text.splitlines() for arm in (Arm.BASELINE, Arm.CANDIDATE))
        diff = difflib.unified_diff(old, new, Arm.BASELINE, Arm.CANDIDATE, lineterm="")
    formulations = {row.formulation for row in (*arms.candidate, *arms.baseline)}
    return PlansCompared(arms.plan, shown, tuple(diff), tuple(sorted(x for x in formulations if x)))


def confs_by_arm(
    repetitions: Iterable[RepetitionRow], most: int | None = _FEW
) -> dict[str, dict[str, str | tuple[str, ...]]]:
    """Return by arm the Spark confs that are not the defaults, with possible secrets hidden.

    A conf that differs between repetitions is a tuple; of one with more than ``most`` values
    only the number and the first are kept.
    """
    return {
        arm: {key: _one_or_few(key, values, most) or "" for key, values in sorted(confs.items())}
        for arm, confs in sorted(_values(repetitions).items())
    }


def conf_differences(repetitions: Iterable[RepetitionRow]) -> list[ConfOfArms]:
    """Return the confs that candidate and baseline do not have in common; our own come last."""
    values = _values(repetitions)
    if not set(ARMS) <= values.keys():
        return []
    found = []
    for key in {key for arm in ARMS for key in values[arm]}:
        ours, theirs = (values[arm].get(key, {}) for arm in ARMS)
        if ours.keys() != theirs.keys():
            shown = _one_or_few(key, ours), _one_or_few(key, theirs)
            found.append(ConfOfArms(key, *shown, is_reserved(key)))
    return sorted(found, key=lambda x: (x.set_by_harness, x.key))


def _values(repetitions: Iterable[RepetitionRow]) -> dict[str, dict[str, dict[str, None]]]:
    """Return by arm and key the values that its repetitions had, in order."""
    found: dict[str, dict[str, dict[str, None]]] = {}
    for row in repetitions:
        for key, value in (row.confs or {}).items():
            found.setdefault(row.arm, {}).setdefault(str(key), {})[str(value)] = None
    return found


def _one_or_few(
    key: str, values: Iterable[str], most: int | None = None
) -> str | tuple[str, ...] | None:
    shown = list(dict.fromkeys(hidden(key, value) for value in values))
    if len(shown) < 2:
        return shown[0] if shown else None
    if most is None or len(shown) <= most:
        return tuple(shown)
    return f"{len(shown)} values, as {shown[0]}"


def reproduce(store: Store, night: NightRow, query: str) -> str:
    """Return the line that measures the candidate against what ``query`` was compared with.

    Where the night compared it with nothing, it measures the candidate alone. A
    password in the URL of a build is not shown: it has to be put in again.
    """
    options = {
        "--build": store.build(night.build_id).source,
        "--against": _against(store, night, query),
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
    if any(row.red and row.query == query for row in store.compatibility(night.id)):
        words.append("--compatibility")
    return shlex.join(words)


def _against(store: Store, night: NightRow, query: str) -> str:
    """Return the build that a query was compared with, "" for none."""
    builds = night.baselines or {}
    build = next(iter(builds.values()), None) if query == SUITE else builds.get(query)
    if build is None:
        runs = {x.query: x.baseline_run for x in store.verdicts(night.id) if x.decides}
        build = store.night(run).build_id if (run := runs.get(query)) else None
    return store.build(str(build)).source if build else ""
