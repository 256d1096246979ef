"""The samples of soak repetitions as figures with a name, as ``nights.csv`` has them, and back.

A figure is of all processes of a role: ``driver heap_bytes``, ``executor threads``. Only what has a
limit is there, so growth is judged again, and what it is made up of is not named.
"""

import math
from collections.abc import Iterator, Mapping

from nexmark.verdict.held import HELD, ROLES
from nexmark.verdict.measured_night import Sample

_CPU = ("cpu_s before", "cpu_s after")
"""The CPU time so far, when the query was held and when it went on."""
_LIMITED = tuple(held.key for held in HELD if held.limit)


def named_figures(sample: Sample) -> Iterator[tuple[str, float]]:
    """Return the figures of a sample, each with its name."""
    for role in ROLES:
        processes = [each for each in sample["processes"] if each["role"] == role]
        for key in _LIMITED:
            values = [each[key] for each in processes]
            if values and None not in values:
                yield f"{role} {key}", float(sum(values))
        for place, name in enumerate(_CPU):
            if processes:
                yield f"{role} {name}", float(sum(each["cpu_s"][place] for each in processes))


def sample_of(batch: int, figures: Mapping[str, float]) -> Sample:
    """Return the sample after a batch, with one process for each role that has figures."""
    processes = []
    for role in ROLES:
        values = {key: figures.get(f"{role} {key}") for key in (*_LIMITED, *_CPU)}
        if any(value is not None for value in values.values()):
            cpu_s = [figures.get(f"{role} {name}", math.nan) for name in _CPU]
            by_key = {each.key: values.get(each.key) for each in HELD}
            processes.append({"role": role, "name": role, "cpu_s": cpu_s, **by_key})
    return {"batch": batch, "dropped": 0, "processes": processes, "directories": {}}
