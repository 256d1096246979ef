"""The file with the Airflow connections of the private Airflow (its LocalFilesystemBackend)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nexmark.cluster.base import ClusterError

#: Below NEXMARK_HOME.
CONNECTIONS = Path("airflow/connections.json")


def read_connections(file: Path) -> dict[str, Any]:
    """The connections by their ids; none where there is no file. ClusterError if it is not JSON."""
    try:
        content = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise ClusterError(f"{file} is not JSON: {error}; correct or remove it") from error
    if not isinstance(content, dict):
        raise ClusterError(f"{file} is no JSON object of connections by id; correct or remove it")
    return content


def put_connections(file: Path, connections: Mapping[str, Any]) -> None:
    """Add `connections`, in place of those with the same ids."""
    _write(file, {**read_connections(file), **connections})


def remove_connections(file: Path, ids: Iterable[str]) -> None:
    """Take these out; the file stays, since Airflow wants one."""
    if file.exists():
        found = read_connections(file)
        _write(file, {key: value for key, value in found.items() if key not in set(ids)})


def _write(file: Path, connections: Mapping[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    temporary.touch(mode=0o600)
    temporary.write_text(json.dumps(connections, indent=2) + "\n")
    temporary.replace(file)


__all__ = ["CONNECTIONS", "put_connections", "read_connections", "remove_connections"]
