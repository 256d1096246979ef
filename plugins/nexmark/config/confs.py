"""Which Spark confs a user may set: in a profile, in an engine, of the candidate alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BeforeValidator

from nexmark.errors import KeyedError
from nexmark_jobs.redaction import is_secret, without_secrets

_OPTIONS = re.compile(
    r"spark\.(?:driver|executor)\.(?:extra|default)(?:JavaOptions|ClassPath|LibraryPath)"
)
#: What Spark writes into the command line of an executor (`SparkConf.isExecutorStartupConf`).
_STARTUP = re.compile(r"spark\.(?:auth|rpc|network|ssl|port\.).*|spark\..*\.port")
_KEPT_BACK = re.compile(r"spark\.authenticate\.secret|spark\.ssl.*Password.*")


def _shown_problem(name: str, value: str) -> str:
    """Why a Spark conf cannot be given without showing a secret on a command line, or ''."""
    if not is_secret(name, value):
        return ""
    if _OPTIONS.fullmatch(name):
        return (
            f"{name} has a secret, and all users of a host can read the options of its processes; "
            "write the option into a file that only you can read, and give @FILE in its place"
        )
    if _STARTUP.fullmatch(name) and not _KEPT_BACK.fullmatch(name):
        return (
            f"{name} is a secret, and Spark puts it on the command line of every executor; use "
            "the name that Spark documents for it (as spark.ssl.keyStorePassword), or remove it"
        )
    return ""


def no_secret_in_address(location: str) -> str:
    """Return where a build is; ValueError if a password or a signature is in it."""
    if is_secret("", location):
        raise ValueError(
            f"{without_secrets(location)} has a secret in its address, which is kept with every "
            "result; download the file, and give its path"
        )
    return location


#: Confs that the harness sets itself: a value from a user would break attribution or isolation.
RESERVED_CONFS: tuple[str, ...] = (
    "spark.app.name",
    "spark.authenticate",
    "spark.cores.max",
    "spark.driver.bindAddress",
    "spark.driver.defaultJavaOptions",
    "spark.driver.host",
    "spark.driver.memory",
    "spark.eventLog",
    "spark.executor.cores",
    "spark.executor.defaultJavaOptions",
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
_POSITIVE = frozenset(
    {"spark.default.parallelism", "spark.sql.shuffle.partitions", "spark.task.cpus"}
)


def check_conf(key: str, value: str) -> None:
    """Raise KeyedError for a conf that is none, that the benchmark sets, or without a value."""
    if problem := _problem(key, value):
        raise KeyedError((key,), problem)


def is_reserved(key: str) -> bool:
    """Whether the benchmark sets the conf itself."""
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
    """A number or a boolean as the text that Spark reads."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float)) else value


def _checked(confs: Mapping[str, str]) -> Mapping[str, str]:
    for key, value in confs.items():
        check_conf(key, value)
    return confs


SparkConf: TypeAlias = Annotated[
    Mapping[str, Annotated[str, BeforeValidator(_plain)]], AfterValidator(_checked)
]
