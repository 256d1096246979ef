"""Read and write the file with the connections of the private Airflow (LocalFilesystemBackend)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nexmark.cluster.lease import ClusterError
from nexmark_jobs.host.whole_files import write_whole

#: The path of the file below NEXMARK_HOME.
CONNECTIONS = Path("airflow/connections.json")


def read_connections(file: Path) -> dict[str, Any]:
    """Return the connections by their ids; {} without a file. ClusterError if it is not JSON."""
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
    """Add connections to the file; they replace connections with the same ids."""
    _write(file, {**read_connections(file), **connections})


def remove_connections(file: Path, ids: Iterable[str]) -> None:
    """Remove connections from the file, which stays, because Airflow needs it."""
    if file.exists():
        connections = read_connections(file)
        _write(file, {key: value for key, value in connections.items() if key not in set(ids)})


def _write(file: Path, connections: Mapping[str, Any]) -> None:
    write_whole(file, json.dumps(connections, indent=2) + "\n")
