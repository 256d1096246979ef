"""The samples of this machine and of the hosts, by which the repetitions of a query are measured.

A repetition in which an executor did not do its share, or a host stalled, is INVALID. Before that
it is measured once more, at once, so that it stays beside its partner: what stalls a host is often
over by then. Why the first measurement was dropped is kept beside its directory.
"""

import socket
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from nexmark.errors import NexmarkError
from nexmark.night.night_progress import say
from nexmark.night.plan import Night
from nexmark.night.run_directory import ApplicationDirectory, GroupDirectory, host_of_samples
from nexmark.night.submission import Repetition

if TYPE_CHECKING:
    from nexmark.measure.cpu_series import CpuSeries
    from nexmark.measure.result_file import RunResult
    from nexmark.measure.samples import HostSamples
    from nexmark.measure.shares import HostExecutors


@dataclass(frozen=True)
class Samples:
    """The samples of this machine and of each host, by path, or why there are none."""

    here: "HostSamples | None"
    hosts: "Mapping[Path, HostSamples]"
    problem: str | None
    path: Path

    @classmethod
    def read(cls, night: Night, group: str) -> "Samples":
        """The samples of a query or of the confirmation."""
        from nexmark.measure.samples import read_samples

        directory = night.files.group(group)
        path = directory.driver_samples
        try:
            hosts = {
                file: read_samples(file, clock_offset_s(directory, host))
                for host in night.spark_cluster.sampled_hosts
                for file in [directory.samples(host)]
            }
            return cls(read_samples(path), hosts, None, path)
        except NexmarkError as error:
            why = directory.fetched_samples.failure("")
            return cls(None, {}, f"{error}: {why}" if why else str(error), path)

    def series(self, run: "RunResult", label: str) -> "list[tuple[CpuSeries, Path]]":
        """The CPU of a run; where hosts are sampled, this machine has the driver only."""
        from nexmark.measure.cpu import application_cpu

        assert self.here is not None
        here = application_cpu(self.here, run.application_id, label, period=run.work)
        if not self.hosts:
            return [(here, self.path)]
        hosts = [
            (application_cpu(samples, run.application_id, period=run.work), path)
            for path, samples in self.hosts.items()
        ]
        return [(here.without_executors(), self.path), *hosts]

    def executors(self, run: "RunResult") -> "list[HostExecutors]":
        """The executors that lived while a run did, by host as `clusters.yaml` names it.

        Where hosts are sampled, this machine has none.
        """
        from nexmark.measure.shares import host_executors

        assert self.here is not None
        here = host_executors(self.here, run.application_id, run.work)
        if not self.hosts:
            return [here]
        found = [here.without_executors()]
        for path, samples in self.hosts.items():
            name = host_of_samples(path)
            executors = host_executors(samples, run.application_id, run.work)
            found.append(replace(executors, host=name))
        return found


def clock_offset_s(directory: GroupDirectory, host: str) -> float:
    """By how much the clock of another host was ahead of this machine's.

    0 while the readings cannot tell it from 0: hosts that keep time are better than our readings.
    """
    try:
        readings = directory.clock_readings(host)
    except (OSError, ValueError):
        raise NexmarkError(f"no reading of the clock of host {host}, so no samples of it") from None
    if all(abs(reading.offset_s) <= reading.uncertainty_s for reading in readings):
        return 0.0
    return float(mean(reading.offset_s for reading in readings))


#: A worker kills an executor that does not end, as a frozen one, after 10 s: it needs its cores.
_PAUSE_S = 15.0


def trouble(
    night: Night, directory: ApplicationDirectory, result: "RunResult", samples: Samples
) -> str | None:
    """Return the problem of the executors or hosts of the run in `directory`, None without one."""
    from nexmark.measure.event_log import EventLogError
    from nexmark.measure.shares import read_executor_work, stalled, uneven

    hosts = samples.executors(result)
    names, period = _names(night), (result.start, result.end)
    try:
        work = read_executor_work(directory.events, result.application_id, result.work)
        size = {"executors": night.cluster.executors, "cores": night.cluster.executor_cores}
        found = uneven(work, hosts, **size, period=period, names=names)
    except EventLogError:
        work, found = [], []
    return " | ".join([*found, *stalled(work, hosts, period=period, names=names)]) or None


def measure_again(night: Night, submission: Repetition) -> bool:
    """Return whether the repetition that has just ended must run once more; wait before that.

    A host that cannot be asked here is no reason: `record` looks at everything later.
    """
    directory = submission.directory
    if not submission.counts or directory.dropped() is not None:
        return False
    try:
        found = _trouble_now(night, directory, submission.run.group)
    except (NexmarkError, OSError, ValueError):
        return False
    if not found:
        return False
    directory.write_dropped(found)
    say(f"{submission.label}: {found}; it is measured again in {_PAUSE_S:.0f} s")
    time.sleep(_PAUSE_S)
    return True


def _trouble_now(night: Night, directory: ApplicationDirectory, group: str) -> str | None:
    """`trouble` by the samples so far; the samplers go on.

    How far the clocks are apart is not known before they end, and is taken for nothing.
    """
    from nexmark.measure.samples import read_samples

    here, result = night.files.group(group).driver_samples, directory.parsed_result()
    with tempfile.TemporaryDirectory() as copies:
        night.spark_cluster.copy_samples(group, Path(copies))
        files = GroupDirectory(Path(copies)).all_samples()
        samples = Samples(read_samples(here), {x: read_samples(x) for x in files}, None, here)
    return trouble(night, directory, result, samples)


def _names(night: Night) -> dict[str, str]:
    if night.cluster.kind == "embedded":
        return {night.cluster.driver_address: socket.gethostname()}
    return {machine.address: name for name, machine in night.cluster.hosts.items()}
