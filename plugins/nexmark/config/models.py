"""The engines of `engines.yaml` with their builds, `gate.yaml`, and the whole configuration."""

import re
from collections.abc import Mapping
from datetime import date
from functools import partial
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from nexmark.config.clusters import AnyCluster
from nexmark.config.fields import (
    Model,
    QueryName,
    Schedule,
    SparkConf,
    Tarball,
    check_tarball,
    known_mode,
    no_secret_in_address,
)
from nexmark.config.workload_models import Workload
from nexmark.errors import NexmarkError, suggest
from nexmark.model import ARMS

_T = TypeVar("_T")


#: The DAG that tests any build; an engine's DAG is named after the engine.
BUILD_DAG_ID = "nexmark_build"
#: The DAG to accept a night, and the DAG to sign a build off.
ACCEPT_DAG_ID = "nexmark_accept"
SIGNOFF_DAG_ID = "nexmark_signoff"
#: The DAG that measures an experiment.
EXPERIMENT_DAG_ID = "nexmark_experiment"
#: The DAG of a rollout: a run of it is a stage.
ROLLOUT_DAG_ID = "nexmark_rollout"


class BuildSource(Model):
    """Where a Spark build comes from: exactly one of a release, a tarball, a directory."""

    pypi: (
        Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)*([a-z]+[0-9]+|\.dev[0-9]+)?$")] | None
    ) = None
    tarball: Tarball | None = None
    sha512: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{128}$")] | None = None
    directory: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "BuildSource":
        kinds = [k for k in ("pypi", "tarball", "directory") if getattr(self, k) is not None]
        if len(kinds) != 1:
            needed = "a build needs exactly one of pypi, tarball and directory"
            raise ValueError(f"{needed}, there is {' and '.join(kinds) or 'none'}; keep one")
        if (self.tarball is None) != (self.sha512 is None):
            raise ValueError("tarball and sha512 belong together; add the one that is missing")
        return self

    def __str__(self) -> str:
        """Return the build in the form of the DAG's param `candidate`."""
        if self.pypi is not None:
            return f"pypi:{self.pypi}"
        if self.tarball is not None:
            return f"tarball:{self.tarball}#sha512={self.sha512}"
        return f"directory:{self.directory}"


def _dated(value: object) -> object:
    """Refuse a template that is the same for every date, or that has anything else in it."""
    if not isinstance(value, str):
        return value  # pydantic says what is wrong with it
    for found in re.findall(r"\{\{.*?\}\}|\{[%#].*?[%#]\}|\{\{|\}\}", value):
        if not _DATE.fullmatch(found):
            raise ValueError(f"{found} is not known; write {{{{ ds }}}} or {{{{ ds_nodash }}}}")
    if not _DATE.search(value):
        raise ValueError(
            f"{value!r} is the same for every date; write {{{{ ds }}}} (2026-11-03) or "
            "{{ ds_nodash }} (20261103) where the date is"
        )
    return value


_DATE = re.compile(r"\{\{\s*(ds|ds_nodash)\s*\}\}")
Dated: TypeAlias = Annotated[str, BeforeValidator(_dated), AfterValidator(no_secret_in_address)]


class Snapshots(Model):
    """Builds named by their date: paths or URLs with `{{ ds }}` or `{{ ds_nodash }}` in them."""

    tarball: Annotated[Dated, AfterValidator(check_tarball)]
    sha512: Dated

    def of(self, day: date) -> tuple[str, str]:
        """Where the tarball of `day` is, and the file with its SHA-512."""
        dates = {"ds": day.isoformat(), "ds_nodash": day.strftime("%Y%m%d")}
        dated = partial(_DATE.sub, lambda found: dates[found[1]])
        return dated(self.tarball), dated(self.sha512)


class Engine(Model):
    """A Spark version line with its own DAG; `snapshots`, if any, go before `build`."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
    build: BuildSource
    snapshots: Snapshots | None = None
    schedule: Schedule | None = None
    workload: str = "nightly"
    cluster: str | None = None
    conf_profile: str | None = None
    conf: SparkConf = Field(default_factory=dict)

    @property
    def dag_id(self) -> str:
        """The id of this engine's DAG, e.g. `nexmark_spark_4_3_0`."""
        return "nexmark_" + re.sub(r"[^a-z0-9]", "_", self.name)


Mode: TypeAlias = Literal["bounds", "paired"]
KnownMode: TypeAlias = Annotated[Mode, BeforeValidator(known_mode)]
Ratio: TypeAlias = Annotated[float, Field(gt=1, le=100, allow_inf_nan=False)]
Change: TypeAlias = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
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

    mode: KnownMode = "paired"
    modes: Mapping[str, KnownMode] = Field(default_factory=dict)
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
    canary_unsteady: Change = 0.05
    canary_memory_unsteady: Change = 0.50
    canary_waiting_unsteady: Change = 0.10
    canary_widening: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.33
    canary_bound: Farther = 0.50
    canary_memory_bound: Farther = 3.0
    canary_limits: Mapping[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(
        default_factory=lambda: {"steal_percent": 5.0}
    )

    @model_validator(mode="after")
    def _checks(self) -> "Gate":
        if self.calibration_nights > self.history_nights:
            raise ValueError(
                f"calibration_nights is {self.calibration_nights}, more than the history keeps; "
                "lower it, or raise history_nights"
            )
        for name in ("canary", "canary_memory"):
            unsteady, bound = getattr(self, f"{name}_unsteady"), getattr(self, f"{name}_bound")
            if unsteady > bound:
                raise ValueError(f"{name}_unsteady is {unsteady:g}, above {name}_bound; lower it")
        return self

    @property
    def remembered(self) -> int:
        """How many earlier nights a verdict is made with: some are no ground to learn from."""
        return self.history_nights * 5 // 4

    def metric_of(self, kind: str) -> str:
        """The metric that decides in workloads of a kind."""
        return {"paced": self.paced_metric, "recovery": self.recovery_metric}.get(kind, self.metric)

    def bound(self, query: str, workload: str) -> float:
        """The bound for `query`: its own, else the workload's, else the default."""
        return self.queries.get(query, self.workloads.get(workload, self.max_ratio))


def pick(section: str, name: str, known: Mapping[str, _T]) -> _T:
    """The entry `name` of `known`; NexmarkError with the nearest name if there is none."""
    if name not in known:
        raise NexmarkError(f"{section}: unknown {section} {name!r}; {suggest(name, known)}")
    return known[name]


class Config(Model):
    """Everything in `include/conf`, by name, in the order of the files."""

    engines: Mapping[str, Engine]
    workloads: Mapping[str, Workload]
    clusters: Mapping[str, AnyCluster]
    gate: Gate

    @property
    def newest(self) -> Engine:
        """The engine with the highest version in its name."""
        versions = {name: [int(n) for n in re.findall(r"\d+", name)] for name in self.engines}
        return self.engines[max(versions, key=lambda name: versions[name])]

    def engine(self, name: str | None) -> Engine:
        """The engine of a name, the newest for none; NexmarkError for a name that is not there."""
        return pick("engine", name, self.engines) if name else self.newest

    @property
    def all_clusters(self) -> list[AnyCluster]:
        """The clusters of the candidates and of the baselines."""
        return [cluster.of_arm(arm) for cluster in self.clusters.values() for arm in ARMS]

    def cluster_of(self, engine: Engine) -> str:
        """The name of the cluster that an engine's nights run on."""
        return engine.cluster or next(iter(self.clusters))
