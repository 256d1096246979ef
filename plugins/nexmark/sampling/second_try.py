"""The second measurement of a repetition in which an executor or a host had trouble.

A repetition in which an executor did not do its share, or a host stalled, is INVALID. Before that
it is measured once more, at once, so that it stays beside its partner: what stalls a host is often
over by then. The reason why the first measurement was dropped is kept beside its directory.
"""

import tempfile
import time
from pathlib import Path

from nexmark.errors import NexmarkError
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import say
from nexmark.night.run_directory import ApplicationDirectory, GroupDirectory
from nexmark.night.submission import Repetition
from nexmark.sampling.group_samples import GroupSamples, executor_work, trouble

#: A worker kills an executor that does not end, as a frozen one, after 10 s: it needs its cores.
_PAUSE_S = 15.0


def measure_again(night: Night, submission: Repetition) -> bool:
    """Return whether the repetition that has just ended must run once more, and wait before that.

    A host whose samples cannot be read now is no reason: `record` looks at everything later.
    """
    directory = submission.directory
    if not submission.counts or directory.dropped() is not None:
        return False
    try:
        problem = _trouble_now(night, directory, submission.run.group)
    except (NexmarkError, OSError, ValueError):
        return False
    if not problem:
        return False
    directory.write_dropped(problem)
    say(f"{submission.label}: {problem}; it is measured again in {_PAUSE_S:.0f} s")
    time.sleep(_PAUSE_S)
    return True


def _trouble_now(night: Night, directory: ApplicationDirectory, group: str) -> str | None:
    """Return the `trouble` of a repetition by the samples so far, while the samplers go on.

    Clocks are compared only when the samplers end, so here the clocks of all hosts count as equal.
    """
    from nexmark.measure.host_samples import read_samples

    driver_path, result = night.files.group(group).driver_samples, directory.parsed_result()
    with tempfile.TemporaryDirectory() as copies:
        night.spark_cluster.copy_samples(group, Path(copies))
        files = GroupDirectory(Path(copies)).all_samples()
        hosts = {file: read_samples(file) for file in files}
        samples = GroupSamples(driver_path, read_samples(driver_path), hosts)
    return trouble(night, result, samples, executor_work(directory, result))
