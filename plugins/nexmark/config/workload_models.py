"""The workloads of `include/conf/workloads.yaml`: their sizes, kinds and kills."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from nexmark.config.fields import STANDARD_QUERIES, Model, Positive, QueryName
from nexmark.errors import KeyedError, suggest
from nexmark_jobs import generator_config


def _checked_options(values: Mapping[str, int]) -> Mapping[str, int]:
    known = generator_config.option_names()
    for name, value in values.items():
        if name in generator_config.OPTIONS_WITH_ARGUMENT:
            raise KeyedError((name,), f"{name} has a key of its own, above; write it there")
        if name not in known:
            raise KeyedError((name,), f"unknown option {name!r}; {suggest(name, known)}")
        try:
            generator_config.check_option(name, value)
        except generator_config.GeneratorOptionError as error:
            raise KeyedError((name,), f"{error.problem}; correct the value") from None
    return values


class Size(Model):
    """How many events, at which spacing in event time, in which batches."""

    events: Positive
    tps: Annotated[int, Field(gt=0, le=generator_config.BOUNDS["tps"][1])]
    rows_per_batch: Annotated[int, Field(gt=0, le=generator_config.MAX_EVENTS)]


class OwnSize(Model):
    """What one query reads otherwise than the others of its workload."""

    events: Positive | None = None
    rows_per_batch: Annotated[int, Field(gt=0, le=generator_config.MAX_EVENTS)] | None = None


class Span(Model):
    """How many events, at which spacing in event time."""

    events: Annotated[int, Field(ge=200, le=generator_config.MAX_EVENTS)] = 20_000
    tps: Annotated[int, Field(gt=0, le=generator_config.BOUNDS["tps"][1])] = 200


class Recovery(Model):
    """The process to kill in each timed repetition, and the place of its checkpoint.

    Attributes:
        kill: the driver, an executor, or a worker with its executors.
        at, times: the first kill comes after this part of the batches, the others are spread over
            the rest.
        checkpoint: the disk, or the stand-in for remote storage (`latency_ms`, `mb_per_s`).
        state, changelog: the state store; whether RocksDB uploads changes in place of snapshots.
        pace_s: a batch is due so long after the one before; 0: at once.
    """

    kill: Literal["driver", "executor", "worker"] = "driver"
    at: Annotated[float, Field(ge=0, le=0.9)] = 0.5
    times: Annotated[int, Field(ge=1, le=10)] = 1
    checkpoint: Literal["local", "remote"] = "local"
    latency_ms: Annotated[int, Field(ge=0, le=60_000)] = 20
    mb_per_s: Annotated[int, Field(ge=1, le=100_000)] = 20
    state: Literal["rocksdb", "hdfs"] = "rocksdb"
    changelog: bool = False
    pace_s: Annotated[float, Field(ge=0, le=600)] = 0

    @model_validator(mode="after")
    def _only_rocksdb_has_changelogs(self) -> "Recovery":
        if self.changelog and self.state != "rocksdb":
            raise KeyedError(("changelog",), "only RocksDB has changelogs; write state: rocksdb")
        return self


LEAST_BETWEEN = 3
"""The least batches from one sample of a soak to the next."""
_LAST_BATCHES = 3
"""The batches before the end of a repetition that no sample waits for: a query is held up to two
batches after the one for which it is due."""


class Soak(Model):
    """How a timed repetition is watched as it runs on.

    Attributes:
        samples: how often it is held between two batches, from the end of the warm-up on, and what
            its JVMs hold is measured. With fewer than six, nothing is said of growth.
    """

    samples: Annotated[int, Field(ge=6, le=1000)] = 9


class WorkloadKind(StrEnum):
    """How a timed repetition gets its events, and how it ends; each kind has a class in
    `nexmark.night.kinds`."""

    BOUNDED = "bounded"
    """It reads a given number of events as fast as it can."""
    PACED = "paced"
    """It is sent events at a rate while it runs."""
    RECOVERY = "recovery"
    """It is killed and started again."""
    SOAK = "soak"
    """It reads many small batches, and what it holds is measured between them."""


class WorkloadSource(StrEnum):
    """Where a timed repetition reads its events."""

    DATAGEN = "datagen"
    """It generates them."""
    KAFKA = "kafka"
    """It reads topics that the night has filled."""


class Workload(Size):
    """The input of one timed repetition, and the work around it.

    With the source `kafka` a night writes the events to topics of `partitions` partitions first.
    With `compatibility` its nights check whether running queries survive the upgrade.
    Of the kind `paced`, events are sent at `rate` per second while the query runs, for `warm_up`
    and then for `seconds` seconds; the other sizes follow from these.
    Of the kind `recovery`, each timed repetition is killed and started again, by `recovery`.
    Of the kind `soak`, it is held between batches to be measured, by `soak`.
    The queries in `sizes` read other numbers of events, or other batches. Those in `formulations`
    are computed in this way by all builds; the others in the best one that each build can run.
    With `bounds_only` a repetition is too short for a verdict by pairs.
    """

    kind: Annotated[WorkloadKind, Field(strict=False)] = WorkloadKind.BOUNDED
    rate: Annotated[int, Field(gt=0, le=100_000)] | None = None
    seconds: Annotated[int, Field(ge=5, le=3600)] | None = None
    warm_up: Annotated[int, Field(ge=1, le=600)] | None = None
    trigger: Literal["micro-batch", "real-time"] | None = None
    recovery: Recovery | None = None
    soak: Soak | None = None

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    source: Annotated[WorkloadSource, Field(strict=False)] = WorkloadSource.DATAGEN
    partitions: Annotated[int, Field(gt=0, le=64)] | None = None
    verify: Size
    compatibility: Span | None = None
    sizes: Mapping[QueryName, OwnSize] = {}
    formulations: Mapping[QueryName, str] = {}
    bounds_only: bool = False
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    repetitions: Annotated[int, Field(gt=0, le=100)] = 5
    warmup_batches: Annotated[int, Field(ge=0)] = 2
    queries: Annotated[tuple[QueryName, ...], Field(min_length=1)] = STANDARD_QUERIES
    sampling_interval_s: Annotated[float, Field(ge=0.1, le=60)] = 1.0
    conf_profile: str = "default"
    generator: Annotated[Mapping[str, int], AfterValidator(_checked_options)] = {}

    @property
    def is_paced(self) -> bool:
        """Whether events are sent at a rate while the query runs."""
        return self.kind == WorkloadKind.PACED

    @property
    def recovered(self) -> Recovery:
        """The process to kill; only of the kind `recovery`."""
        assert self.recovery is not None
        return self.recovery

    @model_validator(mode="after")
    def _checks(self) -> "Workload":
        self._check_spans()
        if twice := sorted(name for name in self.queries if self.queries.count(name) > 1):
            raise ValueError(f"query {twice[0]!r} is listed twice; list it once")
        if self.recovery and (self.events, self.tps) != (self.verify.events, self.verify.tps):
            problem = "has to have the events of the repetitions; leave it as is"
            raise KeyedError(("verify",), problem)
        for size in (self, *map(self.size_of, self.sizes)):
            batches = -(-size.events // size.rows_per_batch)
            if self.warmup_batches >= batches:
                steady = f"is {self.warmup_batches} of {batches} batches, which leaves no steady"
                raise ValueError(f"warmup_batches {steady} state; lower it or rows_per_batch")
        return self

    def _check_spans(self) -> None:
        base = self.generator.get("base_time_ms", generator_config.BASE_TIME_MS)
        first = self.generator.get("first_event_number", 0)
        sizes: list[tuple[tuple[str, ...], Size]] = [((), self), (("verify",), self.verify)]
        sizes += [(("sizes", query), self.size_of(query)) for query in self.sizes]
        for keys, size in sizes:
            try:
                generator_config.check_span(size.events, size.tps, base, first)
            except generator_config.GeneratorOptionError as error:
                raise KeyedError((*keys, error.name), error.problem) from None

    @model_validator(mode="after")
    def _only_bounded_inputs_differ(self) -> "Workload":
        kinds = (WorkloadKind.BOUNDED, WorkloadKind.SOAK)
        own_events = self.kind in kinds and self.source == WorkloadSource.DATAGEN
        if self.sizes and not own_events:
            problem = "sizes belongs to kind: bounded or soak with source: datagen; remove it"
            raise KeyedError(("sizes",), problem)
        if self.formulations and self.kind not in kinds:
            problem = "formulations belongs to kind: bounded or soak; remove it"
            raise KeyedError(("formulations",), problem)
        return self

    @model_validator(mode="after")
    def _enough_is_measured(self) -> "Workload":
        if self.soak is None:
            return self
        for query in (*self.queries, *self.sizes):
            size = self.size_of(query)
            if self.pause_every(query) < LEAST_BETWEEN:
                batches = -(-size.events // size.rows_per_batch)
                few = f"{query} has {batches} batches, {self.warmup_batches} of them warm-up"
                needed = f"too few for {self.soak.samples} samples after it"
                raise KeyedError(("soak",), f"{few}: {needed}; raise events")
        return self

    @model_validator(mode="after")
    def _batches_fill_partitions(self) -> "Workload":
        if (self.source == WorkloadSource.KAFKA) != (self.partitions is not None):
            problem = "partitions belongs to source: kafka; give both, or neither"
            raise KeyedError(("partitions",), problem)
        filled: list[tuple[tuple[str, ...], Size]] = [(("verify",), self.verify)]
        for keys, size in filled if self.is_paced else [((), self), *filled]:
            counts = {"events": size.events, "rows_per_batch": size.rows_per_batch}
            for name, count in counts.items():
                if self.partitions and count % self.partitions:
                    problem = f"{name} is no multiple of partitions ({self.partitions})"
                    so_that = "so that batches would differ from run to run; make it one"
                    raise KeyedError((*keys, name), f"{problem}, {so_that}")
        return self

    def size_of(self, query: str) -> Size:
        """Return what a timed repetition of `query` reads."""
        of_query = self.sizes.get(query, OwnSize())
        return Size(
            events=of_query.events or self.events,
            tps=self.tps,
            rows_per_batch=of_query.rows_per_batch or self.rows_per_batch,
        )

    def pause_every(self, query: str) -> int:
        """Return the batches of `query` from one sample to the next; only of the kind `soak`.

        The first sample is at the end of the warm-up, the last one just before the end.
        """
        assert self.soak is not None
        size = self.size_of(query)
        batches = -(-size.events // size.rows_per_batch)
        return (batches - self.warmup_batches - _LAST_BATCHES) // (self.soak.samples - 1)

    def verifies_the_timed_input(self, query: str) -> bool:
        """Tell whether the verification run of `query` reads the events of its repetitions."""
        timed, verified = self.size_of(query), self.verify
        return (timed.events, timed.tps) == (verified.events, verified.tps)
