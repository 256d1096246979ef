"""Fetch the jars of the broker, of Spark's Kafka connector and of an HDFS, and check their SHA-256.

`locks/NAME.lock` lists a set of jars, a line each: `GROUP:ARTIFACT:VERSION SHA256`. Apache Ivy
fetches them from Maven Central, as `spark-submit --packages` does; it is one of PySpark's jars. An
`ivysettings.xml` in the configuration directory names other repositories.

    <home>/kafka/jars/NAME/     the jars of a set, all of them or none
    <home>/kafka/ivy/           Ivy's own cache
"""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from nexmark.config import paths
from nexmark.engines.jvm import check_path
from nexmark.engines.prerequisites import disk_problem, java_problem, java_program
from nexmark.kafka import KafkaError
from nexmark.model import Say
from nexmark_jobs.host.leases import locked
from nexmark_jobs.host.processes import plain_environment
from nexmark_jobs.host.whole_files import write_whole

#: The set of jars of the broker and its tools: Apache Kafka and a log4j binding.
BROKER = "broker-4.3.1"

_LOCKS = Path(__file__).with_name("locks")
_SETTINGS = "ivysettings.xml"
_FETCH_TIMEOUT_S = 900
_LOCK_TIMEOUT_S = 1000.0
#: The largest set, twice: in Ivy's cache and beside it.
_BYTES = 200 * 10**6
_MAX_REASON = 300


@dataclass(frozen=True)
class Jar:
    """A jar in a Maven repository, with the SHA-256 of its bytes."""

    group: str
    artifact: str
    version: str
    sha256: str

    def __str__(self) -> str:
        """Return its Maven coordinates."""
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        """Return the name of its file, e.g. `kafka-clients-3.9.2.jar`."""
        return f"{self.artifact}-{self.version}.jar"


def connectors() -> tuple[str, ...]:
    """Return the locked versions of Spark's Kafka connector, the oldest first."""
    versions = (path.stem.removeprefix("connector-") for path in _LOCKS.glob("connector-*.lock"))
    return tuple(sorted(versions, key=_numbers))


def connector_of(spark_version: str) -> str:
    """Return the version of the connector for a version of Spark.

    It is the connector of the same feature release (4.1 of 4.1.4), else of the newest feature
    release before it. Within a feature release Spark does not move the classes that a connector
    uses, so one connector works with all of its maintenance releases.

    Raises:
        KafkaError: There is no connector for this version of Spark.

    >>> connector_of("4.3.0")
    '4.2.0'
    >>> connector_of("4.1.0")
    '4.1.1'
    """
    wanted = _feature(spark_version)
    features = {version: _feature(version) for version in connectors()}
    fitting = [
        version
        for version, feature in features.items()
        if feature[:1] == wanted[:1] and feature <= wanted
    ]
    if not fitting:
        lines = ", ".join(".".join(map(str, feature)) for feature in features.values())
        known = f"there is one for Spark {lines} and newer releases of 4; take such a build"
        raise KafkaError(f"kafka: no connector for Spark {spark_version}; {known}")
    return fitting[-1]


def connector_problem(spark_version: str) -> str:
    """Return the reason why a version of Spark cannot read Kafka, or ''."""
    try:
        connector_of(spark_version)
    except KafkaError as error:
        return str(error)
    return ""


def connector(spark_version: str, say: Say) -> list[Path]:
    """Return the jars with which a version of Spark reads Kafka; see `jars`."""
    return jars(f"connector-{connector_of(spark_version)}", say)


def connector_files(spark_version: str) -> list[Path]:
    """Return the paths that these jars have once they are fetched."""
    return _files(f"connector-{connector_of(spark_version)}")


def _feature(version: str) -> tuple[int, ...]:
    """Return the feature release of a version: (4, 1) of 4.1.4."""
    return _numbers(version)[:2]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"[0-9]+", version)[:3])


def jars(name: str, say: Say) -> list[Path]:
    """Return the jars of the set `name`; see `fetched`.

    Raises:
        KafkaError: A jar cannot be fetched, or has other bytes than its lock says.
    """
    return fetched(name, locked_jars(_lock(name)), _directory(name), say)


def fetched(name: str, wanted: Sequence[Jar], directory: Path, say: Say) -> list[Path]:
    """Return the paths of jars in a directory, after fetching all if one is missing.

    Args:
        name: What messages call the jars.
        wanted: The jars, and all that they depend on.
        directory: Where they go; it has all of them or none.
        say: Called with a line before they are fetched.

    Raises:
        KafkaError: A jar cannot be fetched, or has other bytes than its lock says.
    """
    check_path(directory, "NEXMARK_HOME")
    directory.parent.mkdir(parents=True, exist_ok=True)
    try:
        with locked(directory.with_suffix(".lock"), _LOCK_TIMEOUT_S):
            if _wrong(directory, wanted):
                shutil.rmtree(directory, ignore_errors=True)
                say(f"fetching {len(wanted)} jars of {name} from the Maven repository")
                _fetch(name, wanted, directory)
    except TimeoutError:
        late = f"another process has been fetching them for {_LOCK_TIMEOUT_S:.0f} s"
        raise KafkaError(f"jars {name}: {late}; end it and try again") from None
    return [directory / jar.file_name for jar in wanted]


def locked_jars(lock: Path) -> list[Jar]:
    """Return the jars that a lock lists."""
    return [Jar(*line.replace(":", " ").split()) for line in lock.read_text().splitlines()]


def _lock(name: str) -> Path:
    return _LOCKS / f"{name}.lock"


def _directory(name: str) -> Path:
    return paths.home() / "kafka" / "jars" / name


def _files(name: str) -> list[Path]:
    return [_directory(name) / jar.file_name for jar in locked_jars(_lock(name))]


def _wrong(directory: Path, wanted: Sequence[Jar]) -> Jar | None:
    """Return the first jar that is missing or has other bytes; None if all are right."""
    for jar in wanted:
        path = directory / jar.file_name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != jar.sha256:
            return jar
    return None


def _fetch(name: str, wanted: Sequence[Jar], directory: Path) -> None:
    """Fetch the jars `wanted` of the set `name` to a directory: all of them, or KafkaError."""
    if problem := java_problem() or disk_problem(directory.parent, _BYTES):
        raise KafkaError(f"jars {name}: {problem}")
    temporary = directory.with_name(f".{name}")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        said = _ivy(wanted, temporary)
        if bad := _wrong(temporary, wanted):
            there = (temporary / bad.file_name).is_file()
            problem = "is not the one in the lock (its SHA-256 differs)" if there else said
            remedy = f"name a repository that has it in {paths.conf_dir() / _SETTINGS}"
            raise KafkaError(f"jars: {bad} {problem}; check the network, or {remedy}")
        temporary.rename(directory)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _ivy(wanted: Sequence[Jar], target: Path) -> str:
    """Let Ivy fetch jars into `target`; return why a jar that is missing then was not fetched."""
    cache = target.parent.with_name("ivy")
    target.mkdir(parents=True)
    module = target / "ivy.xml"
    write_whole(module, _module(wanted))
    ivy = [path for name in ("ivy", "commons-cli") for path in pyspark_jars().glob(f"{name}-*.jar")]
    command = [
        str(java_program("java")),
        "-cp",
        ":".join(map(str, ivy)),
        "org.apache.ivy.Main",
        "-warn",
        "-ivy",
        str(module),
        "-cache",
        str(cache),
        "-types",
        "jar",
        "bundle",
        "-retrieve",
        f"{target}/[artifact]-[revision].[ext]",
    ]
    settings = paths.conf_dir() / _SETTINGS
    if settings.is_file():
        command += ["-settings", str(settings)]
    try:
        run = subprocess.run(
            command,
            env=plain_environment(),
            capture_output=True,
            text=True,
            timeout=_FETCH_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return f"was not fetched within {_FETCH_TIMEOUT_S} s"
    lines = (run.stdout + run.stderr).replace("\t", " ").splitlines()
    problems = [line.strip() for line in lines if "WARN" in line or "ERROR" in line]
    return f"cannot be fetched: {' '.join(problems)[:_MAX_REASON] or 'Ivy says nothing'}"


def pyspark_jars() -> Path:
    """Return the directory of the jars of the installed PySpark."""
    spec = find_spec("pyspark")
    return Path((spec.origin if spec else None) or "pyspark").parent / "jars"


def _module(wanted: Sequence[Jar]) -> str:
    """Return an Ivy module with these jars alone: their lock lists all that they depend on."""
    lines = "".join(
        f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} "
        f'rev={quoteattr(jar.version)} conf="default->master" transitive="false"/>\n'
        for jar in wanted
    )
    return (
        '<ivy-module version="2.0">\n<info organisation="nexmark" module="kafka"/>\n'
        '<configurations><conf name="default"/></configurations>\n'
        f"<dependencies>\n{lines}</dependencies>\n</ivy-module>\n"
    )
