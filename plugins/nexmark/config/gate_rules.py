"""The rules of the gate: `include/conf/gate.yaml` as a typed, frozen object."""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, WithJsonSchema, model_validator

from nexmark.config.fields import Model, QueryName
from nexmark.model import Mode

_MODES = {"type": "string", "enum": [mode.value for mode in Mode]}
WrittenMode: TypeAlias = Annotated[Mode, Field(strict=False), WithJsonSchema(_MODES)]
"""A mode as a person writes it, in a file or in a form."""
Ratio: TypeAlias = Annotated[float, Field(gt=1, le=100, allow_inf_nan=False)]
Change: TypeAlias = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Limit: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Farther: TypeAlias = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
Deviations: TypeAlias = Annotated[float, Field(gt=0, le=20, allow_inf_nan=False)]
PacedMetric: TypeAlias = Literal["latency_ms_p50", "latency_ms_p99"]
RecoveryMetric: TypeAlias = Literal["restore_s", "commit_ms_p50", "interruption_s"]


class Gate(Model):
    """When a measurement counts as a regression; `include/conf/gate.yaml` explains every key.

    `max_ratio` (new / baseline) is the bound of the comparison with the accepted run; the rest is
    the gate on pairs. Changes are fractions: 0.03 is 3 %.
    """

    version: Annotated[int, Field(ge=1)]
    metric: Literal["cpu_s_per_mevent"] | PacedMetric | RecoveryMetric
    paced_metric: PacedMetric = "latency_ms_p50"
    recovery_metric: RecoveryMetric = "restore_s"
    max_ratio: Ratio
    workloads: Mapping[str, Ratio] = Field(default_factory=dict)
    queries: Mapping[QueryName, Ratio] = Field(default_factory=dict)

    mode: WrittenMode = Mode.PAIRED
    modes: Mapping[str, WrittenMode] = Field(default_factory=dict)
    order_seed: Annotated[int, Field(ge=0, lt=2**31)] | None = 1
    canary: Annotated[int, Field(ge=0, le=20)] = 3
    self_test: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] = 0.2
    pairs: Annotated[int, Field(ge=3, le=100)] = 5
    confirmation: Annotated[int, Field(ge=1, le=10)] = 2
    flame_graphs: bool = True
    calibration_nights: Annotated[int, Field(ge=3, le=60)] = 10
    history_nights: Annotated[int, Field(ge=10, le=1000)] = 60
    noise_floor: Change = 0.004
    suspect_z: Deviations = 1.4
    suspect_faster_z: Deviations = 2.4
    suspect_change: Change = 0.02
    confirm_z: Deviations = 2.0
    confirm_change: Change = 0.03
    together_z: Deviations = 3.2
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
        if self.calibration_nights > self.history_nights:
            problem = f"is {self.calibration_nights}, more than the history keeps"
            raise ValueError(f"calibration_nights {problem}; lower it, or raise history_nights")
        for name in ("canary", "canary_memory"):
            unsteady, bound = getattr(self, f"{name}_unsteady"), getattr(self, f"{name}_bound")
            if unsteady > bound:
                raise ValueError(f"{name}_unsteady is {unsteady:g}, above {name}_bound; lower it")
        return self

    @property
    def remembered(self) -> int:
        """How many earlier nights a verdict is made with: some are no ground to learn from."""
        return self.history_nights * 5 // 4

    def bound(self, query: str, workload: str) -> float:
        """The bound for `query`: its own, else the workload's, else the default."""
        return self.queries.get(query, self.workloads.get(workload, self.max_ratio))
