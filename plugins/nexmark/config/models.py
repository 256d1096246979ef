"""The typed, frozen objects that the files of `include/conf` become."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from nexmark.config.clusters import AnyCluster
from nexmark.config.errors import suggest
from nexmark.config.fields import Model, Positive
from nexmark.config.queries import KNOWN_QUERIES, STANDARD_QUERIES


def _query(value: object) -> object:
    if value not in KNOWN_QUERIES:
        raise ValueError(f"unknown query {value!r}; {suggest(value, KNOWN_QUERIES)}")
    return value


def _queries(value: tuple[str, ...]) -> tuple[str, ...]:
    twice = sorted({name for name in value if value.count(name) > 1})
    if twice:
        raise ValueError(f"query {twice[0]!r} is listed twice; list it once")
    return value


def _spark_conf_value(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float)) else value


#: Confs that the harness sets itself: a value from a user would break attribution or isolation.
RESERVED_CONFS: tuple[str, ...] = (
    "spark.app.name",
    "spark.authenticate",
    "spark.driver.bindAddress",
    "spark.driver.defaultJavaOptions",
    "spark.driver.host",
    "spark.driver.memory",
    "spark.eventLog",
    "spark.executor.cores",
    "spark.executor.defaultJavaOptions",
    "spark.executor.memory",
    "spark.master",
    "spark.nexmark",
    "spark.sql.session.timeZone",
    "spark.sql.streaming.checkpointLocation",
    "spark.submit.deployMode",
    "spark.ui.enabled",
)


def _spark_conf_key(key: str) -> str:
    if not re.fullmatch(r"spark\.[A-Za-z0-9_.-]+", key):
        raise ValueError(f"{key!r} is not a Spark conf; names start with 'spark.'")
    for reserved in RESERVED_CONFS:
        if key == reserved or key.startswith(f"{reserved}."):
            raise ValueError(f"{key} is set by the benchmark itself; remove it here")
    return key


#: The DAG that tests any build; those of the engines are named after them.
BUILD_DAG_ID = "nexmark_build"
#: The DAG by which a person accepts a night, and that by which one signs a build off.
ACCEPT_DAG_ID = "nexmark_accept"
SIGNOFF_DAG_ID = "nexmark_signoff"

QueryName: TypeAlias = Annotated[str, BeforeValidator(_query)]
Mode: TypeAlias = Literal["bounds", "paired", "history"]
Ratio: TypeAlias = Annotated[float, Field(gt=1, le=100, allow_inf_nan=False)]
Change: TypeAlias = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Deviations: TypeAlias = Annotated[float, Field(gt=0, le=20, allow_inf_nan=False)]
SparkConf: TypeAlias = Mapping[
    Annotated[str, BeforeValidator(_spark_conf_key)],
    Annotated[str, BeforeValidator(_spark_conf_value)],
]


class BuildSource(Model):
    """Where a Spark build comes from: exactly one of a release, a tarball, a directory."""

    pypi: (
        Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)*([a-z]+[0-9]+|\.dev[0-9]+)?$")] | None
    ) = None
    tarball: Annotated[str, Field(min_length=1)] | None = None
    sha512: Annotated[str, Field(pattern=r"^[0-9a-fA-F]{128}$")] | None = None
    directory: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> BuildSource:
        kinds = [k for k in ("pypi", "tarball", "directory") if getattr(self, k) is not None]
        if len(kinds) != 1:
            found = "none" if not kinds else " and ".join(kinds)
            raise ValueError(
                "a build needs exactly one of pypi, tarball and directory, "
                f"there is {found}; keep one"
            )
        if (self.tarball is None) != (self.sha512 is None):
            raise ValueError("tarball and sha512 belong together; add the one that is missing")
        return self

    def __str__(self) -> str:
        """The build as it is written in the DAG's `candidate` param."""
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
Dated: TypeAlias = Annotated[str, BeforeValidator(_dated)]


class Snapshots(Model):
    """Builds named by their date: paths or URLs with `{{ ds }}` or `{{ ds_nodash }}` in them."""

    tarball: Dated
    sha512: Dated

    def of(self, day: date) -> tuple[str, str]:
        """Where the tarball of `day` is, and the file with its SHA-512."""
        dates = {"ds": day.isoformat(), "ds_nodash": day.strftime("%Y%m%d")}
        tarball, sha512 = (
            _DATE.sub(lambda found: dates[found[1]], text) for text in (self.tarball, self.sha512)
        )
        return tarball, sha512


class Engine(Model):
    """A Spark version line with its own DAG.

    With `snapshots`, its nights test the build of their date instead of `build`.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
    build: BuildSource
    snapshots: Snapshots | None = None
    schedule: str | None = None
    workload: str = "nightly"
    cluster: str | None = None
    conf_profile: str | None = None
    conf: SparkConf = Field(default_factory=dict)

    @model_validator(mode="after")
    def _schedule_is_cron(self) -> Engine:
        if self.schedule is None or re.fullmatch(r"@(hourly|daily|weekly|monthly)", self.schedule):
            return self
        fields = self.schedule.split()
        if len(fields) != 5 or not all(re.fullmatch(r"[0-9A-Za-z*,/#-]+", f) for f in fields):
            raise ValueError(
                f"schedule {self.schedule!r} is not a cron expression of five fields; "
                'write it like "0 1 * * *", or leave it out for no schedule'
            )
        return self

    @property
    def dag_id(self) -> str:
        """The id of this engine's DAG, e.g. `nexmark_spark_4_3_0`."""
        return "nexmark_" + re.sub(r"[^a-z0-9]", "_", self.name)


class Size(Model):
    """How many events, at which spacing in event time, in which batches."""

    events: Positive
    tps: Positive
    rows_per_batch: Positive


class Workload(Size):
    """What one timed repetition processes, and what is done around it."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    verify: Size
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    repetitions: Annotated[int, Field(gt=0, le=100)] = 5
    warmup_batches: Annotated[int, Field(ge=0)] = 2
    queries: Annotated[tuple[QueryName, ...], Field(min_length=1)] = STANDARD_QUERIES
    sampling_interval_s: Annotated[float, Field(ge=0.1, le=60)] = 1.0
    conf_profile: str = "default"
    generator: Mapping[str, int] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _checks(self) -> Workload:
        _queries(self.queries)
        batches = -(-self.events // self.rows_per_batch)
        if self.warmup_batches >= batches:
            raise ValueError(
                f"warmup_batches is {self.warmup_batches} of {batches} batches, which leaves no "
                "steady state; lower it or rows_per_batch"
            )
        return self

    @property
    def verifies_the_timed_input(self) -> bool:
        """Whether the verification run reads the very events of the timed repetitions."""
        return (self.events, self.tps) == (self.verify.events, self.verify.tps)


class Gate(Model):
    """When a measurement counts as a regression; `include/conf/gate.yaml` explains every key.

    `max_ratio` (new / baseline) is the bound of the comparison with the accepted run; the rest is
    the gate on pairs. Changes are fractions: 0.03 is 3 %.
    """

    version: Annotated[int, Field(ge=1)]
    metric: Literal["cpu_s_per_mevent"]
    max_ratio: Ratio
    workloads: Mapping[str, Ratio] = Field(default_factory=dict)
    queries: Mapping[QueryName, Ratio] = Field(default_factory=dict)

    mode: Mode = "paired"
    modes: Mapping[str, Mode] = Field(default_factory=dict)
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
    suite_z: Deviations = 3.0
    suite_queries: Annotated[int, Field(ge=5)] = 8
    inform_z: Deviations = 3.5
    inform_change: Change = 0.03
    drift_allowance: Deviations = 0.5
    drift_bound: Deviations = 5.0
    canary_bound: Change = 0.10
    canary_memory_bound: Change = 0.50
    canary_unsteady: Change = 0.05
    canary_limits: Mapping[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = Field(
        default_factory=lambda: {"steal_percent": 5.0}
    )
    one_arm_z: Deviations = 3.5
    one_arm_change: Change = 0.03
    one_arm_nights: Annotated[int, Field(ge=10, le=1000)] = 30

    @model_validator(mode="after")
    def _checks(self) -> Gate:
        if self.calibration_nights > min(self.history_nights, self.one_arm_nights):
            raise ValueError(
                f"calibration_nights is {self.calibration_nights}, more than the history keeps; "
                "lower it, or raise history_nights and one_arm_nights"
            )
        for name in ("canary_bound", "canary_memory_bound"):
            if self.canary_unsteady > getattr(self, name):
                raise ValueError(
                    f"canary_unsteady is {self.canary_unsteady:g}, above {name}; lower it"
                )
        return self

    @property
    def remembered(self) -> int:
        """How many earlier nights a verdict is made with: some are no ground to learn from."""
        return max(self.history_nights, self.one_arm_nights) * 5 // 4

    def mode_of(self, workload: str) -> Mode:
        """How a night of `workload` is judged."""
        return self.modes.get(workload, self.mode)

    def bound(self, query: str, workload: str) -> float:
        """The bound for `query`: its own, else the workload's, else the default."""
        return self.queries.get(query, self.workloads.get(workload, self.max_ratio))


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

    def cluster_of(self, engine: Engine) -> str:
        """The name of the cluster that an engine's nights run on."""
        return engine.cluster or next(iter(self.clusters))


__all__ = [
    "ACCEPT_DAG_ID",
    "BUILD_DAG_ID",
    "SIGNOFF_DAG_ID",
    "BuildSource",
    "Config",
    "Engine",
    "Gate",
    "Model",
    "Size",
    "Snapshots",
    "Workload",
]
