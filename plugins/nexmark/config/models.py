"""The engines of `include/conf/engines.yaml` with their builds, and the whole configuration."""

import re
from collections.abc import Mapping
from datetime import date, datetime
from functools import partial
from typing import Annotated, TypeAlias, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from nexmark.config.clusters import AnyCluster
from nexmark.config.fields import Model, Schedule, SparkConf, Tarball, check_tarball, refuse_secret
from nexmark.config.gate_rules import Gate
from nexmark.config.own_jobs import Job
from nexmark.config.retention_rules import Retention
from nexmark.config.workload_models import Workload
from nexmark.errors import NexmarkError, suggest
from nexmark.model import ARMS

_T = TypeVar("_T")


COMPARE = "compare"
BUILD_DAG_ID, ACCEPT_DAG_ID = "nexmark_build", "nexmark_accept"
SIGNOFF_DAG_ID, EXPERIMENT_DAG_ID = "nexmark_signoff", "nexmark_experiment"
ROLLOUT_DAG_ID, PRUNE_DAG_ID = "nexmark_rollout", "nexmark_prune"
#: The DAGs that do not belong to an engine, each with its purpose; a run of a rollout is a stage.
OTHER_DAGS = {
    **{BUILD_DAG_ID: "a build on demand", ACCEPT_DAG_ID: "accept a run"},
    **{SIGNOFF_DAG_ID: "sign a release off", EXPERIMENT_DAG_ID: "measure an experiment"},
    **{ROLLOUT_DAG_ID: "roll a conf or a build out", PRUNE_DAG_ID: "delete what is old"},
}


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
        given = {"pypi": self.pypi, "tarball": self.tarball, "directory": self.directory}
        kinds = [kind for kind, value in given.items() if value is not None]
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
    _refuse_others(value, _DATE, "{{ ds }} or {{ ds_nodash }}")
    if not _DATE.search(value):
        raise ValueError(
            f"{value!r} is the same for every date; write {{{{ ds }}}} (2026-11-03) or "
            "{{ ds_nodash }} (20261103) where the date is"
        )
    return value


def _refuse_others(value: str, known: re.Pattern[str], names: str) -> None:
    """Raise ValueError for a template in a text that is not among the known ones."""
    for template in _TEMPLATE.findall(value):
        if not known.fullmatch(template):
            raise ValueError(f"{template} is not known; write {names}")


_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{[%#].*?[%#]\}|\{\{|\}\}")
_DATE = re.compile(r"\{\{\s*(ds|ds_nodash)\s*\}\}")
Dated: TypeAlias = Annotated[str, BeforeValidator(_dated), AfterValidator(refuse_secret)]


class Snapshots(Model):
    """Builds named by their date: paths or URLs with `{{ ds }}` or `{{ ds_nodash }}` in them."""

    tarball: Annotated[Dated, AfterValidator(check_tarball)]
    sha512: Dated

    def of(self, day: date) -> tuple[str, str]:
        """Return where the tarball of `day` is, and the file with its SHA-512."""
        dates = {"ds": day.isoformat(), "ds_nodash": day.strftime("%Y%m%d")}
        dated = partial(_DATE.sub, lambda match: dates[match[1]])
        return dated(self.tarball), dated(self.sha512)


def _comparing(value: object) -> object:
    """Refuse a template that is no address of a web server with both revisions in it."""
    if not isinstance(value, str):
        return value  # pydantic says what is wrong with it
    _refuse_others(value, _REVISION, "{{ old }} and {{ new }}")
    if set(_REVISION.findall(value)) != {"old", "new"}:
        raise ValueError(f"{value!r} lacks a revision; write {{{{ old }}}} and {{{{ new }}}} in it")
    if not re.fullmatch(r"https?://[^\s/?#@]+/[^\s]*", _REVISION.sub("0", value)):
        raise ValueError(
            f"{value!r} is not the address of a web server; write it like "
            "https://forge.example/spark/compare/{{ old }}...{{ new }}"
        )
    return value


_REVISION = re.compile(r"\{\{\s*(old|new)\s*\}\}")


class Repository(Model):
    """Where the source of the builds is: its comparison on the web, and a clone on this machine."""

    compare: Annotated[str, BeforeValidator(_comparing), AfterValidator(refuse_secret)] | None = (
        None
    )
    clone: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> "Repository":
        if self.compare is None and self.clone is None:
            raise ValueError("neither compare nor clone is given; add one, or remove repository")
        return self

    def comparison(self, old: str, new: str) -> str | None:
        """Return the address of the comparison of two revisions; None without a template."""
        revisions = {"old": old, "new": new}
        if self.compare is None:
            return None
        return _REVISION.sub(lambda match: revisions[match[1]], self.compare)


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
    repository: Repository | None = None

    @property
    def dag_id(self) -> str:
        """The id of this engine's DAG, e.g. `nexmark_spark_4_3_0`."""
        return "nexmark_" + re.sub(r"[^a-z0-9]", "_", self.name)

    def next_start(self, after: datetime) -> datetime | None:
        """Return when its next scheduled night begins after a moment (UTC); None without any."""
        if self.schedule is None:
            return None
        from croniter import croniter

        start: datetime = croniter(self.schedule, after).get_next(datetime)
        return start


def pick(section: str, name: str, known: Mapping[str, _T]) -> _T:
    """Return the entry `name` of `known`; NexmarkError with the nearest name if there is none."""
    if name not in known:
        raise NexmarkError(f"{section}: unknown {section} {name!r}; {suggest(name, known)}")
    return known[name]


class Config(Model):
    """Everything in `include/conf`, by name, in the order of the files.

    `broken_jobs` has what is wrong with the jobs that cannot be run, one line each.
    """

    engines: Mapping[str, Engine]
    workloads: Mapping[str, Workload]
    clusters: Mapping[str, AnyCluster]
    gate: Gate
    retention: Retention = Retention()
    jobs: Mapping[str, Job] = {}
    broken_jobs: Mapping[str, str] = {}

    @property
    def newest(self) -> Engine:
        """The engine with the highest version in its name."""
        versions = {name: [int(n) for n in re.findall(r"\d+", name)] for name in self.engines}
        return self.engines[max(versions, key=lambda name: versions[name])]

    def engine(self, name: str | None) -> Engine:
        """Return the engine of a name, the newest for none; NexmarkError for an unknown name."""
        return pick("engine", name, self.engines) if name else self.newest

    def job(self, name: str) -> Job:
        """Return the job of a name; NexmarkError for an unknown one, or one that is broken."""
        if name in self.broken_jobs:
            raise NexmarkError(self.broken_jobs[name])
        return pick("job", name, self.jobs)

    def comparison_workload(self, engine: Engine) -> str:
        """Return the workload of a comparison at the prompt: `compare`, or else the engine's."""
        return COMPARE if COMPARE in self.workloads else engine.workload

    @property
    def all_clusters(self) -> list[AnyCluster]:
        """The clusters of the candidates and of the baselines."""
        return [cluster.of_arm(arm) for cluster in self.clusters.values() for arm in ARMS]

    def cluster_of(self, engine: Engine) -> str:
        """Return the name of the cluster that an engine's nights run on."""
        return engine.cluster or next(iter(self.clusters))
