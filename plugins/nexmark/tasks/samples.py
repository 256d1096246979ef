"""The samples of this machine and of the hosts, as the repetitions of a query are measured by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from nexmark.errors import NexmarkError
from nexmark.tasks.night import Night
from nexmark.tasks.sampling import samples_path

if TYPE_CHECKING:
    from nexmark.measure.cpu import CpuSeries
    from nexmark.measure.samples import HostSamples


@dataclass(frozen=True)
class Samples:
    """The samples of this machine and of each host, by path, or why there are none."""

    here: HostSamples | None
    hosts: Mapping[Path, HostSamples]
    problem: str | None
    path: Path

    @classmethod
    def read(cls, night: Night, directory: Path) -> Samples:
        """The samples in `directory`: that of a query, or of the confirmation."""
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


__all__ = ["Samples", "clock_offset_s"]
