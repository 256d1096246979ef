"""A repetition in which an executor did not do its share, or a host stalled.

It is INVALID. Before that it is measured once more, at once, so that it stays beside its partner:
what stalls a host is often over by then. The one that was dropped is noted:

<run directory>/<query>/<run>-dropped.txt     why the first measurement of a run was dropped
"""

from __future__ import annotations

import json
import socket
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexmark.errors import NexmarkError
from nexmark.night.night_progress import say
from nexmark.night.plan import Night
from nexmark.night.sampled import Samples

if TYPE_CHECKING:
    from nexmark.measure.result_file import RunResult

#: A worker kills an executor that does not end, as a frozen one, after 10 s: it needs its cores.
_PAUSE_S = 15.0


def trouble(night: Night, directory: Path, result: RunResult, samples: Samples) -> str | None:
    """Return the problem of the executors or hosts of the run in `directory`, None without one."""
    from nexmark.measure.event_log_files import EventLogError
    from nexmark.measure.shares import read_executor_work, stalled, uneven

    hosts = samples.executors(result.application_id)
    names, period = _names(night), (result.start, result.end)
    try:
        work = read_executor_work(directory / "events", result.application_id)
    except EventLogError:
        return " | ".join(stalled([], hosts, period=period, names=names)) or None
    config = night.cluster
    found = uneven(
        work,
        hosts,
        executors=config.executors,
        cores=config.executor_cores,
        period=period,
        names=names,
    )
    found += stalled(work, hosts, period=period, names=names)
    return " | ".join(found) or None


def measure_again(night: Night, submission: Mapping[str, Any]) -> bool:
    """Return whether the repetition that has just ended must run once more; wait before that.

    A host that cannot be asked here is no reason: `record` looks at everything later.
    """
    group = submission.get("sampled_with")
    directory = Path(submission["directories"][0])
    note = directory.with_name(f"{directory.name}-dropped.txt")
    if group is None or note.exists():
        return False
    try:
        found = _trouble_now(night, directory, str(group))
    except (NexmarkError, OSError, ValueError):
        return False
    if not found:
        return False
    note.write_text(found)
    say(f"{submission['label']}: {found}; it is measured again in {_PAUSE_S:.0f} s")
    time.sleep(_PAUSE_S)
    return True


def dropped(directory: Path) -> str | None:
    """Why the first measurement of the run in `directory` was dropped, None if it was not."""
    try:
        return directory.with_name(f"{directory.name}-dropped.txt").read_text()
    except FileNotFoundError:
        return None


def _trouble_now(night: Night, directory: Path, group: str) -> str | None:
    """`trouble` by the samples so far; the samplers go on."""
    from nexmark.measure.result_file import parse_result

    path = directory / "result.json"
    result = parse_result(json.loads(path.read_text()), str(path))
    with tempfile.TemporaryDirectory() as copies:
        night.spark_cluster.copy_samples(group, Path(copies))
        samples = Samples.so_far(night.query_dir(group), Path(copies))
        return trouble(night, directory, result, samples)


def _names(night: Night) -> dict[str, str]:
    """The host of each address that Spark knows."""
    cluster = night.cluster
    if cluster.kind == "embedded":
        return {cluster.driver_address: socket.gethostname()}
    return {machine.address: name for name, machine in cluster.hosts.items()}
