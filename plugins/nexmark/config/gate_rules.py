"""The rules of the gate: `include/conf/gate.yaml` as a typed, frozen object."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, WithJsonSchema, model_validator

from nexmark.config.fields import Model, QueryName
from nexmark.model import MOST_ROUNDS, Mode

_MODES = {"type": "string", "enum": [mode.value for mode in Mode]}
WrittenMode: TypeAlias = Annotated[Mode, Field(strict=False), WithJsonSchema(_MODES)]
"""A mode as a person writes it, in a file or in a form."""
Ratio: TypeAlias = Annotated[float, Field(gt=1, le=100, allow_inf_nan=False)]
Change: TypeAlias = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Limit: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Farther: TypeAlias = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
Deviations: TypeAlias = Annotated[float, Field(gt=0, le=20, allow_inf_nan=False)]
Growing: TypeAlias = Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)]
Pairs: TypeAlias = Annotated[int, Field(ge=1, le=1000)]
Rounds: TypeAlias = Annotated[tuple[Pairs, ...], Field(min_length=1, max_length=MOST_ROUNDS)]
Evidence: TypeAlias = tuple[Annotated[float, Field(ge=-3, le=20, allow_inf_nan=False)], ...]
CpuMetric: TypeAlias = Literal["task_cpu_s_per_mevent", "cpu_s_per_mevent"]
PacedMetric: TypeAlias = Literal["latency_ms_p50", "latency_ms_p99"]
RecoveryMetric: TypeAlias = Literal["restore_s", "commit_ms_p50", "interruption_s"]


class ComparisonRules(Model):
    """What a comparison that a person asks for has otherwise than a night."""

    rounds: Rounds = (5, 5, 10, 20)
    pursue_z: Evidence = (0.0, 0.7, 1.4)
    matters: Change = 0.05


class SoakGrowth(Model):
    """How much may grow in 1,000 batches, in each of the JVMs' roles (the driver, the executors).

    Attributes:
        live_heap_mb: bytes of objects that are alive, in MB.
        threads, open_files: numbers of them.
        batch_cpu_percent: the CPU time of a batch, in percent of itself.
    """

    live_heap_mb: Growing = 2.0
    threads: Growing = 1.0
    open_files: Growing = 1.0
    batch_cpu_percent: Growing = 1.0


class Gate(Model):
    """When a measurement counts as a regression; `include/conf/gate.yaml` explains every key.

    `max_ratio` (new / baseline) is the bound of the comparison with the accepted run; the rest is
    the gate on pairs. Changes are fractions: 0.03 is 3 %.
    """

    version: Annotated[int, Field(ge=1)]
    metric: CpuMetric | Literal["growth"] | PacedMetric | RecoveryMetric
    paced_metric: PacedMetric = "latency_ms_p50"
    recovery_metric: RecoveryMetric = "restore_s"
    soak_growth: SoakGrowth = Field(default_factory=SoakGrowth)
    soak_rounds: Rounds = (1, 1, 1)
    max_ratio: Ratio
    workloads: Mapping[str, Ratio] = Field(default_factory=dict)
    queries: Mapping[QueryName, Ratio] = Field(default_factory=dict)

    mode: WrittenMode = Mode.PAIRED
    modes: Mapping[str, WrittenMode] = Field(default_factory=dict)
    order_seed: Annotated[int, Field(ge=0, lt=2**31)] | None = 1
    canary: Annotated[int, Field(ge=0, le=20)] = 3
    self_test: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] = 0.2
    rounds: Rounds = (3, 2, 2, 3, 4, 6, 10, 18)
    matters: Change = 0.10
    false_reds: Annotated[float, Field(gt=0, le=0.5)] = 0.012
    pursue_z: Evidence = (0.15, 0.49, 0.81, 1.0, 1.42, 1.76, 2.15)
    comparison: ComparisonRules = Field(default_factory=ComparisonRules)
    budget_minutes: Annotated[float, Field(gt=0, le=10_000)] | None = None
    ends_by: Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")] | None = None
    pursue_faster_z: Deviations = 2.8
    prior_deviation: Change = 0.08
    prior_deviations: Mapping[str, Change] = {"task_cpu_s_per_mevent": 0.04}
    prior_degrees: Annotated[float, Field(ge=1, le=60)] = 4.0
    flame_graphs: bool = True
    history_nights: Annotated[int, Field(ge=10, le=1000)] = 60
    noise_floor: Change = 0.004
    confirm_z: Deviations = 1.0
    confirm_change: Change = 0.03
    guardrail_z: Deviations = 4.0
    guardrail_pursue_z: Deviations = 2.0
    suite_z: Deviations = 2.4
    suite_queries: Annotated[int, Field(ge=5)] = 8
    inform_z: Deviations = 3.5
    inform_change: Change = 0.03
    source_headroom: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = 3.0
    drift_allowance: Deviations = 0.5
    drift_bound: Deviations = 5.0
    creep_z: Deviations = 3.0
    creep_change: Change = 0.05
    creep_nights: Annotated[int, Field(ge=10, le=1000)] = 90
    canary_unsteady: Change = 0.05
    canary_memory_unsteady: Change = 0.50
    canary_waiting_unsteady: Change = 0.10
    canary_widening: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.33
    canary_bound: Farther = 0.50
    canary_memory_bound: Farther = 3.0
    canary_limits: Mapping[str, Limit] = {"steal_percent": 5.0}

    @model_validator(mode="after")
    def _checks(self) -> "Gate":
        limits = (
            ("canary", self.canary_unsteady, self.canary_bound),
            ("canary_memory", self.canary_memory_unsteady, self.canary_memory_bound),
        )
        for name, unsteady, bound in limits:
            if unsteady > bound:
                raise ValueError(f"{name}_unsteady is {unsteady:g}, above {name}_bound; lower it")
        for name, rules in (("", self), ("comparison.", self.comparison)):
            looks = len(rules.rounds) - 1
            if len(rules.pursue_z) != looks:
                needed = f"one value after each round but the last: {looks}"
                raise ValueError(f"{name}pursue_z has {len(rules.pursue_z)}; write {needed}")
        return self

    @property
    def remembered(self) -> int:
        """How many earlier nights are read for a verdict; the gate learns from some of them."""
        return self.history_nights * 5 // 4

    @property
    def pairs(self) -> int:
        """The pairs of the first round, where nobody asks for another number."""
        return self.rounds[0]

    def for_metrics(self, metrics: Iterable[str]) -> "Gate":
        """Return the gate with the prior of these metrics; of several, the largest."""
        priors = [self.prior_deviations.get(name, self.prior_deviation) for name in metrics]
        return self.model_copy(update={"prior_deviation": max(priors)})

    def with_pairs(self, pairs: int) -> "Gate":
        """Return the gate of a night with one round of this number of pairs."""
        return self.model_copy(update={"rounds": (pairs,), "pursue_z": ()})

    def for_comparison(self) -> "Gate":
        """Return the gate of a comparison that a person asks for: a build on demand, a sign-off.

        It has no budget but the one that the person gives: the night's budget is there so that
        the next night finds its cluster free.
        """
        no_budget = {"budget_minutes": None, "ends_by": None}
        return self.model_copy(update={**dict(self.comparison), **no_budget})

    def bound(self, query: str, workload: str) -> float:
        """Return the bound for `query`: its own, else the workload's, else the default."""
        return self.queries.get(query, self.workloads.get(workload, self.max_ratio))
