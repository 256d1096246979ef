"""The SparkSubmit operator of a night, and its hook, whose log says how far the night is."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from airflow.sdk.log import mask_secret

from nexmark.cluster.kafka_connection import kafka_confs
from nexmark.config import profile_path
from nexmark.dag.links import LINKS, publish_event_log
from nexmark.errors import NexmarkError
from nexmark.night.kinds import kind_for
from nexmark.night.night_kafka import kafka_to_read
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import Watch, say
from nexmark.night.private_confs import private_properties
from nexmark.night.run_directory import ApplicationSpan, Json, failure_kept, prepare
from nexmark.night.submission import (
    NextTurn,
    NothingToSubmit,
    NoVerification,
    QueryVerification,
    Repetition,
    SharedVerification,
    Submission,
    read_submission,
)
from nexmark.night.verification import DONE, checked_early, outcomes, run_together
from nexmark.reason import reason_of
from nexmark.recording.flight_recordings import fetch
from nexmark.recording.pair_progress import standing_line
from nexmark.sampling.second_try import measure_again
from nexmark.secrets import hidden_arguments, remember, without_secrets
from nexmark.tasks import current_night, failing
from nexmark.tasks.infrastructure import heal
from nexmark_jobs.errors import UsageError
from nexmark_jobs.exit_code import FILE_VARIABLE, read_exit_code
from nexmark_jobs.host.processes import plain_environment

if TYPE_CHECKING:
    from airflow.sdk import Context, XComArg
    from airflow.sdk.types import Logger


class WatchedSubmitHook(SparkSubmitHook):
    """The provider's hook; a watch reads each line of an application before it is logged."""

    def __init__(self, watch: Watch, **arguments: Any) -> None:
        """Take the watch, and the arguments of the provider's hook."""
        self._watch = watch
        super().__init__(**arguments)

    def submit(self, application: str = "", **arguments: Any) -> None:
        """Run the application to its end; AirflowException with the cause, in one line.

        The provider's message has the last lines of the output; the cause may be in the first.
        """
        try:
            super().submit(application, **arguments)
        except AirflowException as error:
            raise AirflowException(reason_of(f"{error}\n{self._watch.output}")) from None

    @property
    def log(self) -> "Logger":
        """The logger of the hook, which gets every line of spark-submit's output."""
        return _WatchedLog(super().log, self._watch)


class _WatchedLog:
    """A logger whose lines of progress say where in the night they are."""

    def __init__(self, log: "Logger", watch: Watch) -> None:
        self._log = log
        self._watch = watch

    def info(self, event: str, *args: Any, **kwargs: Any) -> None:
        """Log a line."""
        self._log.info(self._watch.line(event), *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class NexmarkSubmitOperator(SparkSubmitOperator):
    """SparkSubmitOperator whose arguments are decided while the night runs.

    `submission` (templated, usually from XCom) is made by `nexmark.night.applications`: the
    engine's own spark-submit with its SPARK_HOME, the connection of the cluster, and the rest.
    Directories that the application fills are emptied first, so that a retry starts clean.

    A mapped task has the next turn instead: Airflow starts mapped instances in any order, but the
    arms of a query have to take turns. So the instance that starts next runs the next submission.
    """

    operator_extra_links = LINKS
    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "submission")

    def __init__(self, *, submission: "Json | XComArg", **kwargs: Any) -> None:
        """Take what to submit, or the XCom that has it, and the arguments of the base class."""
        super().__init__(**kwargs)
        self.submission = submission
        self.running: Submission | None = None
        self._submitted: WatchedSubmitHook | None = None

    def execute(self, context: "Context") -> None:
        """Run the application to its end; AirflowException with the cause if it fails."""
        assert isinstance(self.submission, dict)  # Airflow has put the XCom's value there
        submission = read_submission(self.submission)
        if isinstance(submission, NextTurn):
            submission = submission.claim(context["ti"].map_index or 0)
        if isinstance(submission, NothingToSubmit):
            raise AirflowSkipException(submission.reason)
        if isinstance(submission, NoVerification):
            return
        assert isinstance(submission, Submission)
        with failing(NexmarkError):
            night = current_night()
        if isinstance(submission, SharedVerification):
            run = partial(self._run, context, night)
            with checked_early(night):
                run_together(night.files, submission, run, AirflowException)
            return
        self.running = submission
        if isinstance(submission, QueryVerification):
            self._run_verification(context, night, submission)
            return
        self._keep_links(context)
        if isinstance(submission, Repetition):
            self._run_repetition(context, night, submission)
        else:
            self._run(context, night, submission)

    def _run_verification(
        self, context: "Context", night: Night, submission: QueryVerification
    ) -> None:
        """Verify a query, unless that is done; then run the baseline, if it is compared with it."""
        if not _is_verified(context, night, submission):
            self._keep_links(context)
            self._run(context, night, submission)
        if submission.baseline is not None:
            self._run(context, night, submission.baseline)

    def _run_repetition(self, context: "Context", night: Night, submission: Repetition) -> None:
        """Run a repetition, twice if it could not be measured; one that is ignored cannot fail."""
        if submission.counts:
            if line := standing_line(night):
                say(line)
            self._run(context, night, submission)
            if measure_again(night, submission):
                self._run(context, night, submission)
            return
        try:
            with failure_kept(submission.directory):
                self._run(context, night, submission)
                fetch(night, submission)
        except (AirflowException, NexmarkError) as error:
            why = reason_of(error)
            say(f"{submission.label}: no flame graphs, the verdict is not concerned: {why}")

    def _run(self, context: "Context", night: Night, submission: Submission) -> None:
        """Run one application; if it cannot be run or fails, the reason stays in its directory."""
        application = submission.application
        context["application"] = submission.instance_name  # type: ignore[typeddict-unknown-key]
        self.application = application.program
        self.application_args = list(application.arguments)
        self.name = application.name
        self.conf = dict(application.confs)
        with failing(NexmarkError), failure_kept(submission.directory):
            prepare(submission.directories)
            if isinstance(submission, Repetition) and submission.is_of_later_round:
                heal(night, submission.run.query)  # no task before this one has done so
            self._run_prepared(night, submission)

    def _run_prepared(self, night: Night, submission: Submission) -> None:
        """Run an application whose directories are empty, and note when it ran."""
        application, ended = submission.application, night.files.exit_code
        ended.unlink(missing_ok=True)
        self.env_vars = {**application.environment, FILE_VARIABLE: str(ended)}
        for _, finished in submission.renames:
            finished.parent.mkdir(parents=True, exist_ok=True)
        is_sampled = isinstance(submission, Repetition) and submission.counts
        kind = kind_for(night, submission.query_name)
        noted = kind.noted(night, submission.directory) if is_sampled else nullcontext()
        started = time.time()
        try:
            secrets = kafka_confs(application.kafka)
            profile = profile_path(application.profile)
            shared = night.clusters[application.arm].properties_file(profile)
            private = private_properties(application, shared, mask_secret, secrets)
            with noted, private as self.properties_file:
                self._submit(night, submission)
        except AirflowException as error:
            error.args = (without_secrets(str(error)),)
            if read_exit_code(ended) == UsageError.exit_code:  # no retry will mend it
                raise AirflowFailException(str(error)) from None
            raise
        finally:
            span = ApplicationSpan(
                label=submission.label,
                start=started,
                end=time.time(),
                timed=submission.repetition is not None,
                query=submission.query_name,
            )
            night.files.add_application(span)
            publish_event_log(submission)
        for unfinished, finished in submission.renames:
            if unfinished.exists():
                unfinished.replace(finished)
        say(f"{submission.label}: done in {time.time() - started:.1f} s")

    def _submit(self, night: Night, submission: Submission) -> None:
        """Submit an application; a repetition runs as the kind of the night says."""
        ready = partial(self._ready, night, submission)
        if isinstance(submission, Repetition):
            kind = kind_for(night, submission.query_name)
            with failing(NexmarkError):
                kind.run(night, submission, ready, partial(kafka_to_read, night))
            return
        ready(submission.application.arguments, {})()

    def _ready(
        self,
        night: Night,
        submission: Submission,
        arguments: Sequence[str],
        confs: Mapping[str, str],
    ) -> Callable[[], object]:
        """Return a function that submits the application; its hook is made at once.

        Args:
            night: The night that the application belongs to.
            submission: The application.
            arguments: The arguments of its program.
            confs: Spark confs that replace the application's confs of the same name.
        """
        application = submission.application
        _, secrets = hidden_arguments(arguments)
        remember(secrets)
        for secret in secrets:
            mask_secret(secret)
        self.application_args = list(arguments)
        self.conf = {**application.confs, **confs}
        self._submitted = WatchedSubmitHook(
            Watch(night, submission),
            application_args=self.application_args,
            conf=self.conf,
            conn_id=application.connection,
            deploy_mode="client",
            java_class=application.java_class,
            name=self.name,
            properties_file=self.properties_file,
            spark_binary=application.spark_binary,
        )
        # The provider would add `env_vars` to all that this process has.
        environment = plain_environment() | (self.env_vars or {})
        return partial(self._submitted.submit, self.application, env=environment)

    def on_kill(self) -> None:
        """Kill the application that runs, if one does."""
        if self._submitted is not None:
            self._submitted.on_kill()

    def _keep_links(self, context: "Context") -> None:
        """Keep the links that are known now, as Airflow does when the task has ended."""
        instance = context["ti"]
        for link in LINKS:
            url = link.get_link(self, ti_key=instance)  # type: ignore[arg-type]
            if url:
                instance.xcom_push(key=link.xcom_key, value=url)


def _is_verified(context: "Context", night: Night, submission: QueryVerification) -> bool:
    """Return whether the shared run verified this query; a second try always runs alone."""
    if context["ti"].try_number > 1:
        return False
    outcome = outcomes(night.files).get(submission.query)
    if outcome:
        say(f"{submission.query}: failed together with the others, is verified alone: {outcome}")
    return outcome == DONE
