"""The SparkSubmit operator of a night, and its hook, whose log tells how far the night is."""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException
from airflow.sdk.log import mask_secret

from nexmark.dag.links import LINKS, publish_event_log
from nexmark.errors import NexmarkError
from nexmark.night.kafka_input import note_broker
from nexmark.night.night_progress import Watch, say
from nexmark.night.plan import Night
from nexmark.night.private_confs import private_properties
from nexmark.night.profiling import fetch
from nexmark.night.recovery_night import recovered
from nexmark.night.run_directory import (
    VERIFY,
    ApplicationDirectory,
    ApplicationSpan,
    RunDirectory,
    TurnFile,
    failure_kept,
    prepare,
)
from nexmark.night.sampled import measure_again
from nexmark.night.verification import DONE, checked_early, outcomes, run_together
from nexmark.reason import reason_of
from nexmark.secrets import without_secrets
from nexmark.tasks import current_night, failing
from nexmark.tasks.infrastructure import heal
from nexmark.tasks.sampling import events_beside, kafka_confs
from nexmark_jobs.ending import VARIABLE, UsageError, exit_code
from nexmark_jobs.host.processes import plain_environment

if TYPE_CHECKING:
    from airflow.sdk import Context
    from airflow.sdk.types import Logger


class WatchedSubmitHook(SparkSubmitHook):
    """The provider's hook; what an application prints goes by a watch on its way into the log."""

    def __init__(self, watch: Watch, **arguments: Any) -> None:
        """`arguments` are the provider's."""
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

    `submission` (templated, usually from XCom) is made by `nexmark.night.submission`: the
    engine's own spark-submit with its SPARK_HOME, the connection of the cluster, and the rest.
    Directories that the application fills are emptied first, so that a retry starts clean.

    A mapped task has `in_sequence` instead: Airflow starts mapped instances in any order, but the
    arms of a query have to take turns. So the instance that starts next runs the next submission.
    """

    operator_extra_links = LINKS
    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "submission")

    def __init__(self, *, submission: dict[str, Any], **kwargs: Any) -> None:
        """`submission` is the only argument of its own; the rest is the operator's."""
        super().__init__(**kwargs)
        self.submission = submission
        self.running: Mapping[str, Any] | None = None
        self._submitted: WatchedSubmitHook | None = None

    def execute(self, context: "Context") -> None:
        """Run the application to its end; AirflowException with its last words if it fails."""
        submission = self.submission
        if not submission:
            raise AirflowSkipException("the night has one query, whose own task verifies it")
        if "queries" in submission:
            with checked_early(current_night()):
                run_together(submission, partial(self._run, context), AirflowException)
            return
        if self._is_verified(context, submission):
            return
        if "sequence" in submission:
            turns = TurnFile(Path(submission["sequence"]))
            submission = turns.claim(context["ti"].map_index or 0)
        self.running = submission
        self._keep_links(context)
        if "recorded" not in submission:
            self._run(context, submission)
            if measure_again(current_night(), submission):
                self._run(context, submission)
            return
        try:
            with failure_kept(ApplicationDirectory(Path(submission["directories"][0]))):
                self._run(context, submission)
                fetch(current_night(), submission)
        except (AirflowException, NexmarkError) as error:
            why = reason_of(error)
            say(f"{submission['label']}: no flame graphs, the verdict is not concerned: {why}")

    @staticmethod
    def _is_verified(context: "Context", submission: Mapping[str, Any]) -> bool:
        """Whether this verification run was done with all others; a second try runs by itself."""
        query, _, run = str(submission.get("label", "")).partition(" ")
        if run != VERIFY or context["ti"].try_number > 1:
            return False
        found = outcomes(RunDirectory(Path(submission["night"]))).get(query)
        if found:
            say(f"{query}: failed together with the others, is verified alone: {found}")
        return found == DONE

    def _run(self, context: "Context", submission: dict[str, Any]) -> None:
        """Run one application; why it could not be run, or failed, stays in its directory."""
        context["application"] = submission["label"]  # type: ignore[typeddict-unknown-key]
        for field in ("application", "application_args", "name"):
            setattr(self, field, submission[field])
        self.conf = dict(submission["conf"])
        directories = [Path(directory) for directory in submission["directories"]]
        place = ApplicationDirectory(directories[0])
        with failing(NexmarkError), failure_kept(place):
            prepare(directories)
            if "heal" in submission:
                heal(current_night(), submission["heal"])  # no task before this one has done so
            self._run_prepared(submission, place)

    def _run_prepared(self, submission: dict[str, Any], place: ApplicationDirectory) -> None:
        files = RunDirectory(Path(submission["night"]))
        ended = files.exit_code
        ended.unlink(missing_ok=True)
        self.env_vars = {**submission["env_vars"], VARIABLE: str(ended)}
        night = current_night()
        timed = "sampled_with" in submission
        broker = note_broker(night, place, None) if timed else None
        started = time.time()
        try:
            secrets = kafka_confs(submission.get("kafka"))
            with (
                events_beside(night, submission),
                private_properties(submission, mask_secret, secrets) as self.properties_file,
            ):
                self._submit(night, submission)
        except AirflowException as error:
            error.args = (without_secrets(str(error)),)
            if exit_code(ended) == UsageError.exit_code:  # no retry will mend it
                raise AirflowFailException(str(error)) from None
            raise
        finally:
            files.add_application(
                ApplicationSpan(
                    label=submission["label"],
                    start=started,
                    end=time.time(),
                    timed=timed or "recorded" in submission,
                )
            )
            if timed:
                note_broker(night, place, broker)
            publish_event_log(submission)
        for unfinished, finished in submission["renames"]:
            if Path(unfinished).exists():
                Path(unfinished).replace(finished)
        say(f"{submission['label']}: done in {time.time() - started:.1f} s")

    def _submit(self, night: Night, submission: Mapping[str, Any]) -> None:
        ready = partial(self._ready, submission)
        if "killed" not in submission:
            ready(submission["application_args"], {})()
            return
        with failing(NexmarkError):
            recovered(night, submission, ready)

    def _ready(
        self, submission: Mapping[str, Any], arguments: Sequence[str], confs: Mapping[str, str]
    ) -> Callable[[], object]:
        """A hook that is connected, with all but the submission of the application done."""
        self.application_args = list(arguments)
        self.conf = {**submission["conf"], **confs}
        self._submitted = WatchedSubmitHook(
            Watch(current_night(), submission["label"]),
            application_args=self.application_args,
            conf=self.conf,
            conn_id=submission["conn_id"],
            deploy_mode="client",
            name=self.name,
            properties_file=self.properties_file,
            spark_binary=submission["spark_binary"],
        )
        # The provider would add `env_vars` to all that this process has.
        environment = plain_environment() | (self.env_vars or {})
        return partial(self._submitted.submit, self.application, env=environment)

    def on_kill(self) -> None:
        """Kill the application that runs."""
        if self._submitted is not None:
            self._submitted.on_kill()

    def _keep_links(self, context: "Context") -> None:
        """Keep the links that are known now, as Airflow does when the task has ended."""
        instance = context["ti"]
        for link in LINKS:
            url = link.get_link(self, ti_key=instance)  # type: ignore[arg-type]
            if url:
                instance.xcom_push(key=link.xcom_key, value=url)
