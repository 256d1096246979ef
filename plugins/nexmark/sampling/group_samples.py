"""Read the samples of a query or of a later group, and find what disturbed its repetitions."""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from nexmark.errors import NexmarkError
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import ApplicationDirectory, GroupDirectory, host_of_samples

if TYPE_CHECKING:
    from nexmark.measure.cpu_series import CpuSeries
    from nexmark.measure.host_samples import HostSamples
    from nexmark.measure.result_file import RunResult
    from nexmark.measure.shares import ExecutorWork, HostExecutors


@dataclass(frozen=True)
class GroupSamples:
    """The samples of one query, or of a later group.

    Attributes:
        driver_path: the file with the samples of this machine, where the drivers run.
        driver: the samples of this machine; None where samples cannot be read.
        hosts: the samples of the other hosts, by the path of their file; empty where executors run
            on this machine.
        problem: why there are no samples; None where there are.
    """

    driver_path: Path
    driver: "HostSamples | None"
    hosts: "Mapping[Path, HostSamples]"
    problem: str | None = None

    @classmethod
    def read(cls, night: Night, group: str) -> "GroupSamples":
        """Read the samples of a query, or of a later group."""
        from nexmark.measure.host_samples import read_samples

        directory = night.files.group(group)
        path = directory.driver_samples
        try:
            hosts = {
                file: read_samples(file, clock_offset_s(directory, host))
                for host in night.spark_cluster.sampled_hosts
                for file in [directory.samples(host)]
            }
            return cls(path, read_samples(path), hosts)
        except NexmarkError as error:
            why = directory.fetched_samples.failure("")
            return cls(path, None, {}, f"{error}: {why}" if why else str(error))

    def series(self, result: "RunResult", label: str) -> "list[tuple[CpuSeries, Path]]":
        """Return the CPU time of a run on each host, with the path of the file that it is from.

        Where other hosts are sampled, only the driver runs on this machine. ``label`` is the
        ``--result`` argument of the driver, by which it is recognised.
        """
        from nexmark.measure.cpu import application_cpu

        assert self.driver is not None
        application = result.application_id
        driver = application_cpu(self.driver, application, label, period=result.work)
        if not self.hosts:
            return [(driver, self.driver_path)]
        hosts = [
            (application_cpu(samples, application, period=result.work), path)
            for path, samples in self.hosts.items()
        ]
        return [(driver.without_executors(), self.driver_path), *hosts]

    def executors(self, result: "RunResult") -> "list[HostExecutors]":
        """Return the executors that lived while a run lasted, on each host that has samples.

        The hosts have the names of `clusters.yaml`. Where other hosts are sampled, no executor runs
        on this machine.
        """
        from nexmark.measure.shares import host_executors

        assert self.driver is not None
        driver = host_executors(self.driver, result.application_id, result.work)
        if not self.hosts:
            return [driver]
        by_host = [driver.without_executors()]
        for path, samples in self.hosts.items():
            executors = host_executors(samples, result.application_id, result.work)
            by_host.append(replace(executors, host=host_of_samples(path)))
        return by_host


def clock_offset_s(directory: GroupDirectory, host: str) -> float:
    """Return by how many seconds the clock of another host was ahead of this machine's clock.

    Returns 0 where each reading is within its own uncertainty: a host that keeps time is more exact
    than our readings. NexmarkError where there is no reading.
    """
    try:
        readings = directory.clock_readings(host)
    except (OSError, ValueError):
        raise NexmarkError(f"no reading of the clock of host {host}, so no samples of it") from None
    if all(abs(reading.offset_s) <= reading.uncertainty_s for reading in readings):
        return 0.0
    return float(mean(reading.offset_s for reading in readings))


def executor_work(
    directory: ApplicationDirectory, result: "RunResult"
) -> "list[ExecutorWork] | None":
    """Return the executors of a repetition with their tasks; None if its log cannot be read."""
    from nexmark.measure.event_log import EventLogError
    from nexmark.measure.shares import read_executor_work

    try:
        return read_executor_work(directory.events, result.application_id, result.work)
    except EventLogError:
        return None


def trouble(
    night: Night,
    result: "RunResult",
    samples: GroupSamples,
    work: "Sequence[ExecutorWork] | None",
) -> str | None:
    """Return what was wrong with executors or hosts while a repetition ran; None if nothing was.

    Args:
        night: The night of the repetition.
        result: The result of the repetition.
        samples: The samples of its query.
        work: The executors with their tasks; None if the event log cannot be read.
    """
    from nexmark.measure.shares import stalled, uneven

    hosts = samples.executors(result)
    names, period = _names(night), (result.start, result.end)
    problems: list[str] = []
    if work is not None:
        problems = uneven(
            work,
            hosts,
            executors=night.cluster.executors,
            cores=night.cluster.executor_cores,
            period=period,
            names=names,
        )
    return " | ".join([*problems, *stalled(work or [], hosts, period=period, names=names)]) or None


def _names(night: Night) -> dict[str, str]:
    """Return the names of the hosts by their addresses."""
    if night.cluster.kind == "embedded":
        return {night.cluster.driver_address: socket.gethostname()}
    return {machine.address: name for name, machine in night.cluster.hosts.items()}
