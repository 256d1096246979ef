"""`include/conf/*.yaml` -> `Config`."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from nexmark.config import paths
from nexmark.config.clusters import KINDS, AnyCluster
from nexmark.config.document import Document, Key, read
from nexmark.config.errors import ConfigError, suggest
from nexmark.config.models import (
    ACCEPT_DAG_ID,
    BUILD_DAG_ID,
    SIGNOFF_DAG_ID,
    Config,
    Engine,
    Gate,
    Workload,
)

_M = TypeVar("_M", bound=BaseModel)

#: pydantic's error type -> what was expected there.
_EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "mapping_type": "keys and values",
    "dict_type": "keys and values",
    "model_type": "keys and values",
    "none_required": "nothing",
}

#: DAGs that are there beside those of the engines, by id.
RESERVED_DAG_IDS = {
    BUILD_DAG_ID: "a build on demand",
    ACCEPT_DAG_ID: "accept a run",
    SIGNOFF_DAG_ID: "sign a release off",
}


def load(directory: Path | None = None) -> Config:
    """Read and check `engines.yaml`, `workloads.yaml`, `clusters.yaml` and `gate.yaml`.

    `directory` defaults to `paths.conf_dir()`. Raises ConfigError, whose text is
    `file:line: key: what is wrong; remedy`, for the first thing that is wrong.
    """
    directory = directory or paths.conf_dir()
    workloads_file = read(directory / "workloads.yaml")
    workloads = dict(_entries(workloads_file, "workloads", Workload))
    engines_file = read(directory / "engines.yaml")
    engines = dict(_entries(engines_file, "engines", Engine))
    clusters = dict(_clusters(read(directory / "clusters.yaml")))
    gate_file = read(directory / "gate.yaml")
    gate = _gate(gate_file)
    _check_engines(engines_file, engines, workloads, clusters, directory)
    for name, workload in workloads.items():
        key = ("workloads", name, "conf_profile")
        _check_profile(workloads_file, key, workload.conf_profile, directory)
    for name in gate.workloads:
        if name not in workloads:
            problem = f"unknown workload {name!r}; {suggest(name, workloads)}"
            raise gate_file.error(("workloads", name), problem)
    return Config(engines=engines, workloads=workloads, clusters=clusters, gate=gate)


def load_gate(path: Path | None = None) -> Gate:
    """Read and check a gate file by itself (`gate.yaml` of `paths.conf_dir()` unless given).

    Raises ConfigError like `load`; workloads it names are not looked up.
    """
    return _gate(read(path or paths.conf_dir() / "gate.yaml"))


def profile_path(profile: str, directory: Path | None = None) -> Path:
    """The Spark properties file of a conf profile, e.g. `include/conf/spark/default.conf`."""
    return (directory or paths.conf_dir()) / "spark" / f"{profile}.conf"


def _gate(document: Document) -> Gate:
    return _validate(document, (), Gate, document.data)


def _entries(document: Document, section: str, model: type[_M]) -> Iterator[tuple[str, _M]]:
    for name, value in _section(document, section):
        yield name, _validate(document, (section, name), model, value)


def _clusters(document: Document) -> Iterator[tuple[str, AnyCluster]]:
    """The clusters; `kind` says of which model an entry is."""
    for name, value in _section(document, "clusters"):
        key = ("clusters", name)
        if "kind" not in value:
            raise document.error((*key, "kind"), "the key is missing; add it")
        kind = value["kind"]
        if kind not in KINDS:
            raise document.error((*key, "kind"), f"unknown kind {kind!r}; {suggest(kind, KINDS)}")
        yield name, cast(AnyCluster, _validate(document, key, KINDS[kind], value))


def _section(document: Document, section: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for other in document.data:
        if other != section:
            problem = f"unknown key {other!r}; {suggest(other, [section])}"
            raise document.error((other,), problem)
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


def _validate(document: Document, key: Key, model: type[_M], value: Mapping[str, Any]) -> _M:
    try:
        return model.model_validate(value)
    except ValidationError as errors:
        error = cast(Mapping[str, Any], errors.errors(include_url=False)[0])
        at = tuple(part for part in error["loc"] if part not in ("[key]",))
        raise document.error((*key, *at), _problem(error, model, at)) from None


def _problem(error: Mapping[str, Any], model: type[BaseModel], at: Key) -> str:
    """The error of pydantic as what is wrong and what to do."""
    kind, value = error["type"], error["input"]
    if kind == "extra_forbidden":
        known = [name for name in _fields(model, at[:-1]) if name != "name"]
        return f"unknown key {at[-1]!r}; {suggest(at[-1], known)}"
    if kind == "missing":
        return "the key is missing; add it"
    if kind == "value_error":
        return str(error["ctx"]["error"])
    if kind in _EXPECTED:
        got = "nothing" if value is None else f"{value!r}"
        quotes = ", in quotes" if kind == "string_type" and value is not None else ""
        return f"expected {_EXPECTED[kind]}, got {got}; write {_EXPECTED[kind]}{quotes}"
    message = error["msg"].replace("Input should", "must").replace("String should", "must")
    return f"{message}, is {value!r}; correct the value"


def _fields(model: type[BaseModel], at: Key) -> list[str]:
    """The keys that `model` knows at the path `at`."""
    current: Any = model
    for part in at:
        hints = typing.get_type_hints(current) if isinstance(current, type) else {}
        current = _model_in(hints.get(str(part)))
    return list(current.model_fields) if current is not None else []


def _model_in(hint: Any) -> type[BaseModel] | None:
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return hint
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next((m for m in map(_model_in, typing.get_args(hint)) if m), None)
    return None


def _check_engines(
    document: Document,
    engines: Mapping[str, Engine],
    workloads: Mapping[str, Workload],
    clusters: Mapping[str, AnyCluster],
    directory: Path,
) -> None:
    dag_ids = dict(RESERVED_DAG_IDS)
    for name, engine in engines.items():
        if engine.workload not in workloads:
            problem = f"unknown workload {engine.workload!r}; {suggest(engine.workload, workloads)}"
            raise document.error(("engines", name, "workload"), problem)
        if engine.cluster is not None and engine.cluster not in clusters:
            problem = f"unknown cluster {engine.cluster!r}; {suggest(engine.cluster, clusters)}"
            raise document.error(("engines", name, "cluster"), problem)
        if engine.conf_profile is not None:
            key = ("engines", name, "conf_profile")
            _check_profile(document, key, engine.conf_profile, directory)
        other = dag_ids.setdefault(engine.dag_id, name)
        if other != name:
            problem = f"has the same DAG id as {other!r} ({engine.dag_id}); rename one"
            raise document.error(("engines", name), problem)


def _check_profile(document: Document, key: Key, profile: str, directory: Path) -> None:
    if not profile_path(profile, directory).is_file():
        known = sorted(path.stem for path in (directory / "spark").glob("*.conf"))
        raise document.error(key, f"unknown conf profile {profile!r}; {suggest(profile, known)}")


__all__ = ["ConfigError", "load", "load_gate", "profile_path"]
