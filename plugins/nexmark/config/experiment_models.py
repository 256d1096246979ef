"""The entries of `include/conf/experiments.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from nexmark.config.confs import SparkConf
from nexmark.config.fields import KNOWN_QUERIES, Memory, Model, Positive
from nexmark.config.models import BuildSource
from nexmark.errors import KeyedError, suggest
from nexmark_jobs.knobs import BASE_TIME_MS, BOUNDS, MAX_EVENTS, KnobError, check_span
from nexmark_jobs.redaction import is_secret

#: Queries that only experiments run; a test holds them equal to `nexmark_jobs.experiments`.
EXPERIMENT_QUERY_NAMES: tuple[str, ...] = (
    "long_window",
    "reused_view",
    "distinct_bidders",
    "new_sellers",
    "joined_counts",
    "json_all_fields",
    "json_two_fields",
)
NEW = "new"
"""`nexmark experiment new` writes a template, so no experiment has this name."""


def _query(value: object) -> object:
    known = (*KNOWN_QUERIES, *EXPERIMENT_QUERY_NAMES)
    if value not in known:
        raise ValueError(f"unknown query {value!r}; {suggest(value, known)}")
    return value


AnyQuery: TypeAlias = Annotated[str, BeforeValidator(_query)]
Rows: TypeAlias = Annotated[int, Field(gt=0, le=MAX_EVENTS)]
InputKind: TypeAlias = Literal["generated", "json", "parquet"]


class ReportedGain(Model):
    """What a published text reports: CPU saved in percent, and by what."""

    gain: Annotated[float, Field(gt=-1000, lt=100, allow_inf_nan=False)]
    what: Annotated[str, Field(min_length=1)]


class ExperimentArm(Model):
    """One side of an experiment: what it does otherwise than the first arm."""

    formulation: str | None = None
    conf: SparkConf = Field(default_factory=dict)
    source: InputKind | None = None
    rows_per_batch: Rows | None = None
    memory: Memory | None = None
    build: BuildSource | None = None

    @model_validator(mode="after")
    def _no_secret(self) -> ExperimentArm:
        for name, value in self.conf.items():
            if is_secret(name, value):
                raise KeyedError(
                    ("conf", name),
                    f"{name} is a secret, and these confs are on a command line; remove it",
                )
        return self


class Experiment(Model):
    """A question, the arms that answer it, and the sizes at which they are measured.

    `where` is the place of the entry, for errors that are found later.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    where: str
    question: Annotated[str, Field(min_length=1)]
    queries: Annotated[tuple[AnyQuery, ...], Field(min_length=1)]
    arms: Annotated[
        Mapping[Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")], ExperimentArm],
        Field(min_length=2),
    ]
    sizes: Annotated[tuple[Rows, ...], Field(min_length=1)] = (20_000, 100_000, 300_000)
    batches: Annotated[int, Field(ge=2, le=1000)] = 5
    warmup_batches: Annotated[int, Field(ge=0)] = 2
    tps: Annotated[int, Field(gt=0, le=BOUNDS["tps"][1])] = 10_000
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    source: InputKind = "generated"
    memory: Memory = "2g"
    shuffle_partitions: Positive = 2
    text: ReportedGain | None = None

    @model_validator(mode="after")
    def _checks(self) -> Experiment:
        if self.name == NEW:
            raise ValueError(f"{NEW!r} writes a template; name the experiment otherwise")
        if self.warmup_batches >= self.batches:
            raise KeyedError(
                ("warmup_batches",),
                f"{self.warmup_batches} of {self.batches} batches leaves nothing to measure; "
                "lower it",
            )
        if list(self.sizes) != sorted(set(self.sizes)):
            raise KeyedError(("sizes",), "are not in ascending order, each once; sort them")
        try:
            check_span(self.sizes[-1] * self.batches, self.tps, BASE_TIME_MS, 0)
        except KnobError as error:
            raise KeyedError(("tps",), error.problem) from None
        return self

    def kind_of(self, arm: str) -> InputKind:
        """Where the arm reads its events from."""
        return self.arms[arm].source or self.source
