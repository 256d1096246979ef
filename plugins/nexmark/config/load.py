"""`include/conf/*.yaml` and the Spark profiles -> `Config`; the first mistake is a ConfigError."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from nexmark.config import paths
from nexmark.config.clusters import KINDS, AnyCluster
from nexmark.config.document import Document, Key, read, read_text
from nexmark.config.expectation_files import check_files
from nexmark.config.experiment_models import Experiment, load_notifications
from nexmark.config.fields import KNOWN_QUERIES, check_conf
from nexmark.config.gate_rules import Gate
from nexmark.config.models import OTHER_DAGS, Config, Engine, Repository
from nexmark.config.own_jobs import load_jobs
from nexmark.config.retention_rules import load_retention
from nexmark.config.workload_models import Workload, WorkloadKind, WorkloadSource
from nexmark.errors import ConfigError, KeyedError, suggest
from nexmark.model import Arm

_KEYS = ("rate", "seconds", "warm_up", "trigger")
_SIZES = ("events", "tps", "rows_per_batch", "warmup_batches")
_VERIFY = {"events": 20_000, "tps": 1_000, "rows_per_batch": 10_000}


def with_sizes(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a workload as it is written, with the sizes that follow from its kind.

    The warm-up of a paced workload is a batch. In a recovery workload every repetition is compared
    with the reference, so the verification has the same events. KeyedError for a key that is
    missing, or is of the other kind.
    """
    if given.get("kind") != WorkloadKind.PACED:
        for key in _KEYS:
            if key in given:
                raise KeyedError((key,), f"{key} belongs to kind: {WorkloadKind.PACED}; remove it")
        return _of_recovery(_of_soak(given))
    for key in (*_KEYS, "partitions"):
        if key not in given:
            raise KeyedError((key,), f"a paced workload needs {key}; add it")
    for key in _SIZES:
        if key in given:
            raise KeyedError((key,), f"{key} follows from rate, seconds and warm_up; remove it")
    if given.get("source") != WorkloadSource.KAFKA:
        remedy = f"write source: {WorkloadSource.KAFKA}"
        raise KeyedError(("source",), f"a paced workload reads Kafka; {remedy}")
    rate, seconds, warm_up = (given[key] for key in _KEYS[:3])
    if all(isinstance(each, int) and each > 0 for each in (rate, seconds, warm_up)):
        sizes = ((seconds + warm_up) * rate, rate, warm_up * rate, 1)
    else:  # which the fields refuse
        sizes = (2, 1, 1, 1)
    return {"verify": _VERIFY, **given, **dict(zip(_SIZES, sizes, strict=True))}


def _of_soak(given: Mapping[str, Any]) -> Mapping[str, Any]:
    if given.get("kind") == WorkloadKind.SOAK:
        return {"soak": {}, **given}
    if "soak" in given:
        problem = f"soak belongs to kind: {WorkloadKind.SOAK}; remove it"
        raise KeyedError(("soak",), problem)
    return given


def _of_recovery(given: Mapping[str, Any]) -> dict[str, Any]:
    if given.get("kind") != WorkloadKind.RECOVERY:
        if "recovery" in given:
            problem = f"recovery belongs to kind: {WorkloadKind.RECOVERY}; remove it"
            raise KeyedError(("recovery",), problem)
        return dict(given)
    for key in ("verify", "source"):
        if key in given:
            raise KeyedError((key,), f"{key} is given in a recovery workload; remove it")
    size = {key: given[key] for key in _SIZES[:3] if key in given}
    return {"recovery": {}, **given, "verify": size}


def load(directory: Path | None = None) -> Config:
    """Read and check all files: five make the Config, the others are only checked.

    `directory` defaults to `paths.conf_dir()`. Raises ConfigError for the first mistake; its text
    is `file:line: key: problem; remedy`. A mistake in the files of a job stops that job alone
    (`Config.broken_jobs`).
    """
    directory = directory or paths.conf_dir()
    workloads_file = read(directory / "workloads.yaml")
    workloads = dict(_workloads(workloads_file))
    engines_file = read(directory / "engines.yaml")
    engines = {
        name: engines_file.validated(("engines", name), Engine, value)
        for name, value in _section(engines_file, "engines")
    }
    clusters = dict(_clusters(read(directory / "clusters.yaml")))
    gate_file = read(directory / "gate.yaml")
    gate = gate_file.validated((), Gate, gate_file.data)
    _check_engines(engines_file, engines, workloads, clusters, directory)
    for name, one in workloads.items():
        key = ("workloads", name, "conf_profile")
        _check_profile(workloads_file, key, one.conf_profile, directory)
    jobs, broken_jobs = load_jobs(directory)
    queries = (*KNOWN_QUERIES, *jobs, *broken_jobs)
    for name, one in workloads.items():
        for at, query in _named_queries(name, one):
            workloads_file.look_up(at, "query", query, queries)
    for name in gate.queries:
        gate_file.look_up(("queries", name), "query", name, queries)
    for name in gate.workloads:
        gate_file.look_up(("workloads", name), "workload", name, workloads)
    for path in sorted((directory / "spark").glob("*.conf")):
        read_profile(path)
    load_notifications(directory)
    load_experiments(directory)
    check_files(directory)
    return Config(
        engines=engines,
        workloads=workloads,
        clusters=clusters,
        gate=gate,
        retention=load_retention(directory),
        jobs=jobs,
        broken_jobs=broken_jobs,
    )


def _named_queries(name: str, workload: Workload) -> Iterator[tuple[Key, str]]:
    """Yield the queries that a workload names, each with its key in the file."""
    at = ("workloads", name)
    yield from (((*at, "queries", place), query) for place, query in enumerate(workload.queries))
    yield from (((*at, "sizes", query), query) for query in workload.sizes)


def load_experiments(directory: Path | None = None) -> dict[str, Experiment]:
    """Return the experiments by name; none where there is no such file.

    Raises ConfigError, as `load` does.
    """
    path = (directory or paths.conf_dir()) / "experiments.yaml"
    if not path.exists():
        return {}
    document = read(path)
    experiments = {}
    for name, value in _section(document, "experiments"):
        key = ("experiments", name)
        where = document.where(key)
        experiments[name] = document.validated(key, Experiment, {**value, "where": where})
    return experiments


def load_repository(engine: str, directory: Path | None = None) -> Repository | None:
    """Return where the source of an engine's builds is; None if `engines.yaml` does not say it.

    A file that is wrong says nothing here, because an old night can be read without it. A page asks
    often, so only `engines.yaml` is read, and only if it has changed.
    """
    path = (directory or paths.conf_dir()) / "engines.yaml"
    try:
        return _repositories(path, path.stat().st_mtime_ns).get(engine)
    except (ConfigError, OSError):
        return None


@lru_cache(maxsize=4)
def _repositories(path: Path, _changed_ns: int) -> Mapping[str, Repository]:
    document = read(path)
    return {
        name: document.validated(("engines", name, "repository"), Repository, value["repository"])
        for name, value in _section(document, "engines")
        if value.get("repository")
    }


def load_gate(path: Path | None = None) -> Gate:
    """Read and check a gate file by itself (`gate.yaml` of `paths.conf_dir()` unless given).

    Raises ConfigError like `load`; workloads and jobs that it names are not looked up.
    """
    document = read(path or paths.conf_dir() / "gate.yaml")
    return document.validated((), Gate, document.data)


def profile_path(profile: str, directory: Path | None = None) -> Path:
    """Return the properties file of a conf profile, e.g. `include/conf/spark/default.conf`."""
    return (directory or paths.conf_dir()) / "spark" / f"{profile}.conf"


def _workloads(document: Document) -> Iterator[tuple[str, Workload]]:
    for name, value in _section(document, "workloads"):
        key = ("workloads", name)
        try:
            sized = with_sizes(value)
        except KeyedError as error:
            raise document.error((*key, *error.keys), str(error)) from None
        yield name, document.validated(key, Workload, sized)


def _clusters(document: Document) -> Iterator[tuple[str, AnyCluster]]:
    """Yield the clusters; the `kind` of an entry selects its model."""
    for name, value in _section(document, "clusters"):
        key = ("clusters", name)
        if "kind" not in value:
            raise document.error((*key, "kind"), "the key is missing; add it")
        document.look_up((*key, "kind"), "kind", value["kind"], KINDS)
        if str(name).endswith(f"-{Arm.BASELINE}"):
            taken = f"{name!r} ends like the cluster of a baseline, beside its candidate's"
            raise document.error(key, f"{taken}; give it another name")
        yield name, cast(AnyCluster, document.validated(key, KINDS[value["kind"]], value))


def _section(document: Document, section: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for other in document.data:
        if other != section:
            raise document.error((other,), f"unknown key {other!r}; {suggest(other, [section])}")
    entries = document.data.get(section)
    if not isinstance(entries, dict) or not entries:
        raise document.error((section,), f"at least one entry is needed; add one under {section}:")
    for name, value in entries.items():
        key = (section, name)
        if not isinstance(value, dict):
            raise document.error(key, f"expected keys and values, got {value!r}; see the comments")
        if "name" in value:
            raise document.error((*key, "name"), "the key above is the name; remove this one")
        yield name, {**value, "name": name}


def _check_engines(
    document: Document,
    engines: Mapping[str, Engine],
    workloads: Mapping[str, Workload],
    clusters: Mapping[str, AnyCluster],
    directory: Path,
) -> None:
    """Check the names that engines use, and that no two DAGs share an id; ConfigError if not.

    Args:
        document: The file of the engines.
        engines: The engines by name.
        workloads: The workloads that an engine may name.
        clusters: The clusters that an engine may name.
        directory: The directory of the configuration, with the conf profiles.
    """
    dag_ids = dict(OTHER_DAGS)
    for name, engine in engines.items():
        key = ("engines", name)
        document.look_up((*key, "workload"), "workload", engine.workload, workloads)
        if engine.cluster is not None:
            document.look_up((*key, "cluster"), "cluster", engine.cluster, clusters)
        if engine.conf_profile is not None:
            _check_profile(document, (*key, "conf_profile"), engine.conf_profile, directory)
        other = dag_ids.setdefault(engine.dag_id, name)
        if other != name:
            problem = f"has the same DAG id as {other!r} ({engine.dag_id}); rename one"
            raise document.error(key, problem)


def _check_profile(document: Document, key: Key, profile: str, directory: Path) -> None:
    """Raise ConfigError for a conf profile that has no file.

    Args:
        document: The file that names the profile.
        key: Where the file names it.
        profile: The name of the profile.
        directory: The directory of the configuration, with the conf profiles.
    """
    if not profile_path(profile, directory).is_file():
        known = sorted(path.stem for path in (directory / "spark").glob("*.conf"))
        raise document.error(key, f"unknown conf profile {profile!r}; {suggest(profile, known)}")


#: A key ends at the first of these that has no backslash before it.
_ENTRY = re.compile(r"((?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_profile(path: Path) -> Mapping[str, str]:
    """Return the confs of a profile.

    Raises ConfigError naming file and line: a file that cannot be read, a conf that is there
    twice, has no value, or is not for a user to set.
    """
    lines: dict[str, int] = {}
    confs: dict[str, str] = {}
    for number, key, value in conf_entries(read_text(path)):
        here = Document(path, {}, {(key,): number})
        if key in confs:
            raise here.error((key,), f"is there twice (first on line {lines[key]}); remove one")
        try:
            check_conf(key, value)
        except KeyedError as error:
            raise here.error((key,), str(error)) from None
        confs[key] = value
        lines[key] = number
    return confs


def conf_entries(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line number, key and value of each entry of a properties file, as Java reads it."""
    for number, line in _logical_lines(text):
        entry = _ENTRY.fullmatch(line)
        assert entry is not None
        yield number, _unescaped(entry[1]), _unescaped(entry[2])


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the entries with their line numbers; a backslash at the end goes on in the next."""
    entry, began = "", 0
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        line = line.lstrip(" \t\f")
        if not began and (not line or line[0] in "#!"):
            continue
        began = began or number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            entry += line[:-1]
            continue
        yield began, entry + line
        entry, began = "", 0


def _unescaped(text: str) -> str:
    """Return `text` with each escape sequence replaced by its character."""

    def character(match: re.Match[str]) -> str:
        escape = match[1]
        return chr(int(escape[1:], 16)) if len(escape) > 1 else _ESCAPED.get(escape, escape)

    return _ESCAPE.sub(character, text)
