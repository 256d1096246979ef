"""The kinds of values in the files of `include/conf`: confs, amounts, addresses, queries."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeAlias
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from nexmark.config import paths
from nexmark.errors import KeyedError, suggest
from nexmark.model import CANARY, FLAMES, SUITE, query_name
from nexmark_jobs.redaction import is_secret, without_secrets

_OPTIONS = re.compile(
    r"spark\.(?:driver|executor)\.(?:extra|default)(?:JavaOptions|ClassPath|LibraryPath)"
)
#: Confs on the command line of an executor (Spark's `SparkConf.isExecutorStartupConf`).
_STARTUP = re.compile(r"spark\.(?:auth|rpc|network|ssl|port\.).*|spark\..*\.port")
_KEPT_BACK = re.compile(r"spark\.authenticate\.secret|spark\.ssl.*Password.*")


def _shown_problem(name: str, value: str) -> str:
    """Return why a Spark conf cannot be given without showing a secret on a command line, or ''."""
    if not is_secret(name, value):
        return ""
    if _OPTIONS.fullmatch(name):
        problem = "has a secret, and all users of a host can read the options of its processes"
        remedy = "write the option into a file that only you can read, and give @FILE in its place"
        return f"{name} {problem}; {remedy}"
    if _STARTUP.fullmatch(name) and not _KEPT_BACK.fullmatch(name):
        problem = "is a secret, and Spark puts it on the command line of every executor"
        documented = "the name that Spark documents for it (as spark.ssl.keyStorePassword)"
        return f"{name} {problem}; use {documented}, or remove it"
    return ""


def refuse_secret(location: str) -> str:
    """Return where a build is; ValueError if a password or a signature is in it."""
    if is_secret("", location):
        problem = "has a secret in its address, which is kept with every result"
        remedy = "download the file, and give its path"
        raise ValueError(f"{without_secrets(location)} {problem}; {remedy}")
    return location


#: Confs that the harness sets itself: a value from a user would break attribution or isolation.
RESERVED_CONFS: tuple[str, ...] = (
    "spark.app.name",
    "spark.authenticate",
    "spark.cores.max",
    "spark.eventLog",
    "spark.driver.bindAddress",
    "spark.driver.host",
    "spark.driver.memory",
    "spark.driver.defaultJavaOptions",
    "spark.executor.defaultJavaOptions",
    "spark.executor.cores",
    "spark.executor.memory",
    "spark.local.dir",
    "spark.log.level",
    "spark.master",
    "spark.nexmark",
    "spark.pyspark.driver.python",
    "spark.pyspark.python",
    "spark.sql.session.timeZone",
    "spark.sql.streaming.checkpointLocation",
    "spark.submit.deployMode",
    "spark.ui.enabled",
)

_NAME = re.compile(r"spark\.[A-Za-z0-9_.-]+")
_MAX_INT = 2**31 - 1
#: Confs that Spark takes any number for, and fails by it once a query runs.
_POSITIVE = ("spark.default.parallelism", "spark.sql.shuffle.partitions", "spark.task.cpus")


def check_conf(key: str, value: str) -> None:
    """Raise KeyedError for a conf that is none, that the benchmark sets, or without a value."""
    if problem := _problem(key, value):
        raise KeyedError((key,), problem)


def is_reserved(key: str) -> bool:
    """Tell whether the benchmark sets the conf itself."""
    return any(key == name or key.startswith(f"{name}.") for name in RESERVED_CONFS)


def _problem(key: str, value: str) -> str:
    if not _NAME.fullmatch(key):
        return f"{key!r} is not a Spark conf; names start with 'spark.'"
    if is_reserved(key):
        return f"{key} is set by the benchmark itself; remove it here"
    if not value.strip():
        return f"{key} has no value; write one, or remove it"
    if not value.isprintable():
        return f"the value of {key} has a line break or another control character; write one line"
    number = value.strip() if key in _POSITIVE else "1"
    if not re.fullmatch(r"[0-9]{1,10}", number) or not 1 <= int(number) <= _MAX_INT:
        return f"{key} is {value!r}, not a number from 1 to {_MAX_INT}; correct it"
    return _shown_problem(key, value)


def _plain(value: object) -> object:
    """Return a number or a boolean as the text that Spark reads, anything else as it is.

    A whole number is written without a point.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is no number that a conf can have; write one")
        return str(int(value)) if value.is_integer() else str(value)
    return str(value) if isinstance(value, int) else value


def _checked(confs: Mapping[str, str]) -> Mapping[str, str]:
    for key, value in confs.items():
        check_conf(key, value)
    return confs


SparkConf: TypeAlias = Annotated[
    Mapping[str, Annotated[str, BeforeValidator(_plain)]], AfterValidator(_checked)
]


class Model(BaseModel):
    """Strict and frozen: no unknown key, no silent conversion, no change after loading."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def _written_as(pattern: str, problem: str) -> BeforeValidator:
    """Take a text of this pattern only; ValueError with the problem for anything else."""

    def check(value: object) -> object:
        if isinstance(value, str) and re.fullmatch(pattern, value):
            return value
        raise ValueError(f"{value!r} is not {problem}")

    return BeforeValidator(check)


Positive: TypeAlias = Annotated[int, Field(gt=0)]
Port: TypeAlias = Annotated[int, Field(ge=1024, le=65535)]
_MEMORY = _written_as(r"[1-9][0-9]*[mg]", "an amount of memory; write it like 768m or 4g")
_ADDRESS = _written_as(
    r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", "an address; write a host name or an IPv4 address"
)
_PATH = _written_as(
    r"(/[A-Za-z0-9_][A-Za-z0-9._-]*)+",
    "a plain absolute path; write it like /opt/nexmark (letters, digits, '.', '_' and '-' only)",
)
_WEB_ADDRESS = _written_as(
    r"https?://[^\s/?#@]+(/[^\s?#]*)?",
    "the address of a web server; write it like http://history:18080",
)
Memory: TypeAlias = Annotated[str, _MEMORY]
Address: TypeAlias = Annotated[str, _ADDRESS]
AbsolutePath: TypeAlias = Annotated[str, _PATH]
WebAddress: TypeAlias = Annotated[str, _WEB_ADDRESS]


def mebibytes(memory: str) -> int:
    """Return an amount of memory like `768m` or `4g` in MiB."""
    return int(memory[:-1]) * (1024 if memory.endswith("g") else 1)


_FIELD = re.compile(r"[0-9A-Za-z*,/#-]+")
_REMEDY = 'write it like "0 1 * * *", or leave it out for no schedule'


def _schedule(value: str) -> str:
    """Refuse what croniter, which Airflow reads schedules with, does not understand."""
    if re.fullmatch(r"@(hourly|daily|weekly|monthly)", value):
        return value
    fields = value.split()
    if len(fields) != 5 or not all(map(_FIELD.fullmatch, fields)):
        raise ValueError(f"schedule {value!r} is not a cron expression of five fields; {_REMEDY}")
    from croniter import CroniterBadDateError, CroniterError, croniter

    try:
        croniter(value, datetime.now(UTC)).get_next(datetime)
    except CroniterBadDateError:
        raise ValueError(f"schedule {value!r} has no date at which it is due; {_REMEDY}") from None
    except CroniterError as error:
        problem = f"schedule {value!r} is not a cron expression ({error})"
        raise ValueError(f"{problem}; {_REMEDY}") from None
    return value


Schedule: TypeAlias = Annotated[str, AfterValidator(_schedule)]


_SCHEMES = ("http", "https", "file")
_SUFFIXES = (".tgz", ".tar.gz", ".tar", ".tar.xz", ".tar.bz2")


def check_tarball(location: str) -> str:
    """Return `location`; ValueError for one that cannot be a tarball, by its name.

    The name that a web server gives a file is ignored.
    """
    parts = urlsplit(location)
    if not location.isprintable() or not location.strip():
        raise ValueError(f"{location!r} is not a path or URL; write one, in one line")
    if "://" in location and parts.scheme not in _SCHEMES:
        raise ValueError(f"{location!r} is not a URL of {', '.join(_SCHEMES)}; give one, or a path")
    path = local_path(location)
    if path is not None and not path.name.endswith(_SUFFIXES):
        remedy = "give a Spark build as spark-4.3.0-bin-hadoop3.tgz"
        raise ValueError(f"{location!r} is not a tarball by its name; {remedy}")
    return location


def local_path(location: str) -> Path | None:
    """Return the path of a tarball on this machine, None for one on the web."""
    if "://" not in location:
        return Path(location).expanduser()
    parts = urlsplit(location)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


Tarball: TypeAlias = Annotated[str, AfterValidator(refuse_secret), AfterValidator(check_tarball)]


#: The queries of a night unless a workload names its own: the classic q0 to q22, and q23.
STANDARD_QUERIES: tuple[str, ...] = tuple(f"q{number}" for number in range(24))

#: Named variants, by the query that they stand behind.
_VARIANTS: dict[str, tuple[str, ...]] = {"q14": ("q14_python_udf",)}

#: Every query that may be named, in the order in which they are run. A test holds this list equal
#: to the registry in `nexmark_jobs.queries`.
KNOWN_QUERIES: tuple[str, ...] = tuple(
    name for query in STANDARD_QUERIES for name in (query, *_VARIANTS.get(query, ()))
)


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

#: What the name of a query may look like, one of ours or a person's own.
JOB_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
#: Names that only queries of ours have, and only later rounds.
OUR_NAME = re.compile(r"q[0-9]+|round_[0-9]+")


#: Words that name something else where the name of a query may stand: groups and tasks of the
#: graph, directories of a run, and what commands say in place of a query.
_TAKEN = frozenset(
    (
        *(CANARY, FLAMES, SUITE, "all", "cluster", "compatibility", "confirmation", "decision"),
        *("deploy", "dump_events", "end", "events", "judge", "judgement", "latest", "new"),
        *("preflight", "prepare", "queries", "reap", "report", "run_state", "select", "stage"),
        *("next_stage", "start_cluster", "stop_cluster", "verdict", "verify", "none"),
        *("person", "auction", "bid"),
    )
)


def refused_name(name: str) -> str:
    """Return why no job can have a name, and what to do; '' if one can."""
    if not JOB_NAME.fullmatch(name):
        letters = "small letters, digits and _, a letter first"
        return f"{name!r} is no name of a job; write {letters}"
    if name in {*KNOWN_QUERIES, *EXPERIMENT_QUERY_NAMES, *_TAKEN} or OUR_NAME.fullmatch(name):
        return f"{name!r} names something else already; take another name"
    return ""


def job_names(directory: Path | None = None) -> tuple[str, ...]:
    """Return the names of the jobs in `include/conf/jobs`, in their order; no file is read.

    A file whose name no job can have is none of them.
    """
    folder = (directory or paths.conf_dir()) / "jobs"
    names = sorted(path.stem for path in folder.glob("*.yaml"))
    return tuple(name for name in names if not refused_name(name))


def known_queries(directory: Path | None = None) -> tuple[str, ...]:
    """Return every query that may be named: ours, then the jobs of a person's own."""
    return (*KNOWN_QUERIES, *job_names(directory))


def query_of(known: Sequence[str]) -> BeforeValidator:
    """Take the names of these queries only (Q5 is q5); ValueError with the nearest for another."""

    def check(value: object) -> object:
        name = query_name(value) if isinstance(value, str) else value
        if name not in known:
            raise ValueError(f"unknown query {value!r}; {suggest(value, known)}")
        return name

    return BeforeValidator(check)


def _query_name(value: object) -> object:
    """Take what may be the name of a query (Q5 is q5); `load` looks up whether there is one.

    The plan of a night is read long after it was made, when a job may be gone.
    """
    name = query_name(value) if isinstance(value, str) else ""
    if name in KNOWN_QUERIES or (JOB_NAME.fullmatch(name) and not OUR_NAME.fullmatch(name)):
        return name
    raise ValueError(f"unknown query {value!r}; {suggest(value, known_queries())}")


QueryName: TypeAlias = Annotated[str, BeforeValidator(_query_name)]
