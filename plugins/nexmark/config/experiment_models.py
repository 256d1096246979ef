"""The entries of `experiments.yaml`, and of `notifications.yaml`: whom a red night calls."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from nexmark.config import paths
from nexmark.config.document import Document, Key, read
from nexmark.config.fields import (
    EXPERIMENT_QUERY_NAMES,
    KNOWN_QUERIES,
    Memory,
    Model,
    Positive,
    SparkConf,
    query_of,
)
from nexmark.config.models import BuildSource
from nexmark.errors import ConfigError, KeyedError
from nexmark_jobs.generator_config import (
    BASE_TIME_MS,
    BOUNDS,
    MAX_EVENTS,
    GeneratorOptionError,
    check_span,
)
from nexmark_jobs.redaction import is_secret

NEW = "new"
"""`nexmark experiment new` writes a template, so no experiment has this name."""


AnyQuery: TypeAlias = Annotated[str, query_of((*KNOWN_QUERIES, *EXPERIMENT_QUERY_NAMES))]
Rows: TypeAlias = Annotated[int, Field(gt=0, le=MAX_EVENTS)]
InputKind: TypeAlias = Literal["generated", "json", "parquet"]


class ReportedGain(Model):
    """A gain from a published text: CPU saved in percent, and by which change."""

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
    checkpoint: Literal["local", "remote"] = "local"

    @model_validator(mode="after")
    def _no_secret(self) -> "ExperimentArm":
        for name, value in self.conf.items():
            if is_secret(name, value):
                problem = f"{name} is a secret, and these confs are on a command line; remove it"
                raise KeyedError(("conf", name), problem)
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
    def _checks(self) -> "Experiment":
        if self.name == NEW:
            raise ValueError(f"{NEW!r} writes a template; name the experiment otherwise")
        if self.warmup_batches >= self.batches:
            problem = f"{self.warmup_batches} of {self.batches} batches leaves nothing to measure"
            raise KeyedError(("warmup_batches",), f"{problem}; lower it")
        if list(self.sizes) != sorted(set(self.sizes)):
            raise KeyedError(("sizes",), "are not in ascending order, each once; sort them")
        try:
            check_span(self.sizes[-1] * self.batches, self.tps, BASE_TIME_MS, 0)
        except GeneratorOptionError as error:
            raise KeyedError(("tps",), error.problem) from None
        return self

    def kind_of(self, arm: str) -> InputKind:
        """Return where the arm reads its events from."""
        return self.arms[arm].source or self.source


FILE = "notifications.yaml"


def _import_path(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", text):
        raise ValueError("must be the import path of a class, as package.module.Class; correct it")
    return text


def _no_secret(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    if name := _secret_in(arguments):
        remedy = "put it into an Airflow connection, and name that here"
        raise ValueError(f"{name} is a secret; {remedy}")
    return arguments


class Notification(Model):
    """One notifier: the import path of its class, and the arguments to create it with."""

    notifier: Annotated[str, AfterValidator(_import_path)]
    kwargs: Annotated[Mapping[str, Any], AfterValidator(_no_secret)] = {}
    where: str = ""

    def error(self, problem: str) -> ConfigError:
        """Return the error to raise for this entry."""
        return ConfigError(f"{self.where}: {problem}")


def load_notifications(directory: Path | None = None) -> list[Notification]:
    """Return the notifiers that are configured; none where there is no such file.

    Raises ConfigError, as `load` does.
    """
    path = (directory or paths.conf_dir()) / FILE
    if not path.exists():
        return []
    document = read(path)
    for name in document.data:
        if name != "notifications":
            raise document.error((name,), f"unknown key {name!r}; the only one is notifications")
    entries = document.data.get("notifications") or ()
    if not isinstance(entries, tuple):
        raise document.error(("notifications",), "expected a list; write each entry after a dash")
    return [_entry(document, place, entry) for place, entry in enumerate(entries)]


def _entry(document: Document, place: int, entry: object) -> Notification:
    key: Key = ("notifications", place)
    if not isinstance(entry, dict) or set(entry) - {"notifier", "kwargs"}:
        raise document.error(key, "expected notifier and kwargs, nothing else; see the comments")
    lists = json.loads(json.dumps(entry))  # in place of tuples: notifiers expect lists
    return document.validated(key, Notification, {**lists, "where": document.where(key)})


def _secret_in(value: Any, name: str = "") -> str:
    """Return the name of the first secret in a notifier's arguments, at any depth, or ''."""
    if isinstance(value, Mapping):
        return next(filter(None, (_secret_in(v, str(k)) for k, v in value.items())), "")
    if isinstance(value, list | tuple):
        return next(filter(None, (_secret_in(v, name) for v in value)), "")
    text = "" if value is None else str(value)
    told_by = "" if name.endswith("conn_id") else name  # the name of a connection is none
    return name if is_secret(told_by, text) else ""
