"""Repetitions of an application of a person's own, which `spark-submit` runs as it is.

What is measured comes from Spark's event log, and from the samplers as for every repetition. While
the application runs, its task follows the log. Where the job says so (`ends`), the task stops it by
SIGTERM.
"""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nexmark.config import Job
from nexmark.config.application_models import INPUT_READ, JobApplication
from nexmark.config.document import display
from nexmark.config.own_jobs import read_job
from nexmark.errors import NexmarkError
from nexmark.model import Arm
from nexmark.night.followed_application import (
    CHECKPOINT_LOCATION,
    IDLE_INTERVAL,
    IDLE_MS,
    LABEL,
    Driver,
    Following,
    Places,
    is_done,
)
from nexmark.night.kinds.bounded import Bounded
from nexmark.night.kinds.night_kind import JobProgram, Ready
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import say, say_for_now
from nexmark.night.run_directory import Run, RunDirectory
from nexmark.night.submission import Repetition
from nexmark.secrets import fingerprinted, hidden_arguments, load_key

if TYPE_CHECKING:
    from nexmark.kafka.topics import KafkaCluster

#: The directory of a repetition for its checkpoint and output.
WRITTEN = "own"


class OwnApplication(Bounded):
    """Repetitions of an application of a person's own, in a bounded night."""

    has_slowed_arm = False
    has_short_starts = False

    def program(self, night: Night, run: Run) -> JobProgram:
        """Return the application; in place of a secret argument is its fingerprint."""
        application = planned(night, run)
        places = _places(night, run, application)
        arguments = map(places.fill, application.args)
        return JobProgram(
            name=f"own/{run.query}/{application.file_name}",
            arguments=tuple(arguments),
            java_class=application.java_class,
        )

    def confs(self, night: Night, run: Run) -> dict[str, str]:
        """Return the confs of the application, and by what its driver is recognised.

        The confs of the candidate alone go before them: such a night tests these.
        """
        application = planned(night, run)
        places = _places(night, run, application)
        idle = {IDLE_INTERVAL: str(IDLE_MS)} if application.ends == INPUT_READ else {}
        tested = night.candidate_conf if run.cluster_arm == Arm.CANDIDATE else {}
        return {
            **idle,
            **{name: places.fill(value) for name, value in application.confs.items()},
            **tested,
            CHECKPOINT_LOCATION: f"file://{places.checkpoint}",
            LABEL: str(night.files.application(run).result_file),
        }

    def directories(self, night: Night, run: Run) -> tuple[Path, ...]:
        """Return the directory of checkpoint and output."""
        return (_places(night, run, planned(night, run)).directory,)

    def run(
        self,
        night: Night,
        submission: Repetition,
        ready: Ready,
        connect: Callable[[], "KafkaCluster"],
    ) -> None:
        """Run the application to its end, or stop it, and write its result."""
        from nexmark.expectations.written_rows import DIGEST_KIND, written_rows
        from nexmark.measure.log_follower import LogFollower
        from nexmark.measure.streaming_log import StreamingLog

        run, directory = submission.run, submission.directory
        application = current(night, run.cluster_arm, run.query)
        places = _places(night, run, application)
        arguments = [places.fill(argument) for argument in application.args]
        submit, log = ready(arguments, {}), StreamingLog()
        words = (f"{LABEL}={directory.result_file}", submission.application.program)
        following = Following(
            submission.label,
            application.ends,
            partial(is_done, application),
            log,
            LogFollower(directory.events, log.handlers),
            Driver(night.clusters[submission.application.arm].mark, words),
            say,
            say_for_now,
        )
        with following.beside():
            try:
                submit()
            except Exception:  # whatever raises it: of a driver that was stopped, it is no failure
                if not following.stopped.is_set():
                    raise
        following.check()
        result = log.result(run.query, night.conf_profile, load_key(), application.batches)
        result["formulation"] = _job(night, run).formulation
        if application.output:
            rows = written_rows(places.output, application.output)
            result |= {"output_rows": rows.rows, "digest": rows.digest, "digest_kind": DIGEST_KIND}
        directory.write_result(result)
        shutil.rmtree(places.directory, ignore_errors=True)


def to_plan(job: Job) -> Job:
    """Return a job as the plan of a night may keep it: without the secrets of an application."""
    if (application := job.application) is None:
        return job
    arguments, _ = hidden_arguments(application.args)
    hidden = {"args": tuple(arguments), "confs": fingerprinted(application.confs)}
    return job.model_copy(update={"application": application.model_copy(update=hidden)})


def planned(night: Night, run: Run) -> JobApplication:
    """Return the application that the night planned for an arm, without its secrets."""
    application = _job(night, run).application
    assert application is not None
    return application


def current(night: Night, arm: str, query: str) -> JobApplication:
    """Return an application as it is now, with its secrets; NexmarkError if it was changed.

    Args:
        night: The night that has planned it.
        arm: The arm that runs it.
        query: Its name.
    """
    file = night.job_file(arm, query)
    job = read_job(file) if file.is_file() else None
    if job is None or to_plan(job) != night.job_of(arm, query):
        problem = f"{query} is not what it was when the night was planned"
        raise NexmarkError(f"{display(file)}: {problem}; start the DAG run again")
    assert job.application is not None
    return job.application


def _job(night: Night, run: Run) -> Job:
    """Return the version of the application that an arm runs."""
    job = night.job_of(run.cluster_arm, run.query)
    assert job is not None
    return job


def _places(night: Night, run: Run, application: JobApplication) -> Places:
    """Return where a repetition reads and writes."""
    of_run = RunDirectory(night.data_dir).application(run).path
    return Places(application.input or "", of_run / WRITTEN)
