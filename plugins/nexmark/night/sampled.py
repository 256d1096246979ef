"""The samples of this machine and of the hosts, as the repetitions of a query are measured by."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from nexmark.errors import NexmarkError
from nexmark.night.plan import Night

if TYPE_CHECKING:
    from nexmark.measure.cpu_series import CpuSeries
    from nexmark.measure.samples import HostSamples
    from nexmark.measure.shares import HostExecutors


def samples_path(directory: Path) -> Path:
    """The samples of this host, in `directory`."""
    return directory / f"samples-driver-{socket.gethostname()}.jsonl"


@dataclass(frozen=True)
class Samples:
    """The samples of this machine and of each host, by path, or why there are none."""

    here: HostSamples | None
    hosts: Mapping[Path, HostSamples]
    problem: str | None
    path: Path

    @classmethod
    def read(cls, night: Night, directory: Path) -> Samples:
        """The samples in `directory`, which belongs to a query or to the confirmation."""
        from nexmark.measure.samples import read_samples

        path = samples_path(directory)
        names = {
            host: directory / f"samples-{host}.jsonl" for host in night.spark_cluster.sampled_hosts
        }
        try:
            hosts = {
                file: read_samples(file, clock_offset_s(directory, host))
                for host, file in names.items()
            }
            return cls(read_samples(path), hosts, None, path)
        except NexmarkError as error:
            return cls(None, {}, str(error), path)

    @classmethod
    def so_far(cls, directory: Path, copies: Path) -> Samples:
        """From samplers that go on: this machine's in `directory`, the hosts' in `copies`.

        How far the clocks are apart is not known before the samplers end, and is taken for nothing.
        NexmarkError if they cannot be read.
        """
        from nexmark.measure.samples import read_samples

        path = samples_path(directory)
        hosts = {file: read_samples(file) for file in sorted(copies.glob("samples-*.jsonl"))}
        return cls(read_samples(path), hosts, None, path)

    def series(self, application: str, label: str) -> list[tuple[CpuSeries, Path]]:
        """The CPU of an application; where hosts are sampled, this machine has the driver only."""
        from nexmark.measure.cpu import application_cpu

        assert self.here is not None
        here = application_cpu(self.here, application, label)
        if not self.hosts:
            return [(here, self.path)]
        hosts = [
            (application_cpu(samples, application).without_driver(), path)
            for path, samples in self.hosts.items()
        ]
        return [(here.without_executors(), self.path), *hosts]

    def executors(self, application: str) -> list[HostExecutors]:
        """The executors of an application by host, each with the name that `clusters.yaml` has.

        Where hosts are sampled, this machine has none.
        """
        from nexmark.measure.shares import host_executors

        assert self.here is not None
        here = host_executors(self.here, application)
        if not self.hosts:
            return [here]
        found = [here.without_executors()]
        for path, samples in self.hosts.items():
            name = path.stem.removeprefix("samples-")
            found.append(replace(host_executors(samples, application), host=name))
        return found


def clock_offset_s(directory: Path, host: str) -> float:
    """By how much the clock of another host was ahead of this machine's.

    0 while the readings cannot tell it from 0: hosts that keep time are better than our readings.
    """
    try:
        readings = json.loads((directory / f"clock-{host}.json").read_text())["readings"]
    except (OSError, ValueError, KeyError):
        raise NexmarkError(f"no reading of the clock of host {host}, so no samples of it") from None
    if all(abs(reading["offset_s"]) <= reading["uncertainty_s"] for reading in readings):
        return 0.0
    return float(mean(reading["offset_s"] for reading in readings))
