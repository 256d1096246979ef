"""The flight recordings of executors: where they are, and when they are whole.

An executor records into its own directory, which is below that of its worker and named after the
application and itself. The recording is written when the executor ends, which is a moment after its
application has.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from nexmark.cluster.base import ClusterError
from nexmark.cluster.host import Host
from nexmark_jobs.host import files

#: What each executor records into, in its own directory.
RECORDING = "recording.jfr"

#: By host, the paths of recordings and their bytes.
Found: TypeAlias = Mapping[str, Mapping[str, int]]

_CALL_S = 30
_FETCH_S = 120
_WAIT_S = 30.0
_POLL_S = 1.0


def pattern_of(worker: Path | str, application: str) -> str:
    """Where below the directory of a worker the recordings of an application are."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", application):
        raise ClusterError(f"{application!r} is no application id, so it has no recordings")
    return f"{worker}/{application}/*/{RECORDING}"


def executor_of(path: str) -> str:
    """The executor that recorded into `path`."""
    return Path(path).parent.name


def wait_until_whole(
    look: Callable[[], Found], executors: int, wait_s: float = _WAIT_S, poll_s: float = _POLL_S
) -> Found:
    """What `look` finds once every executor has written its recording to the end.

    ClusterError if that is not so after `wait_s`.
    """
    deadline = time.monotonic() + wait_s
    before: Found | None = None
    while True:
        found = look()
        sizes = [size for of_host in found.values() for size in of_host.values()]
        if len(sizes) == executors and all(sizes) and found == before:
            return found
        if time.monotonic() > deadline:
            raise ClusterError(
                f"{sum(map(bool, sizes))} of {executors} executors wrote a flight recording; "
                "see what the others logged in the directory of their worker"
            )
        before = found
        time.sleep(poll_s)


def recordings_on(host: Host, pattern: str) -> dict[str, int]:
    """The recordings on a host by their paths, with their bytes."""
    found: dict[str, int] = host.call(files, {"find": pattern}, timeout_s=_CALL_S)["found"]
    return found


def fetch_from(host: Host, paths: Mapping[str, int], directory: Path) -> None:
    """Move recordings from a host to `directory`."""
    for path in paths:
        host.fetch(path, directory / f"{executor_of(path)}.jfr", timeout_s=_FETCH_S)
    host.call(files, {"remove": list(paths)}, timeout_s=_CALL_S)


__all__ = [
    "RECORDING",
    "executor_of",
    "fetch_from",
    "pattern_of",
    "recordings_on",
    "wait_until_whole",
]
