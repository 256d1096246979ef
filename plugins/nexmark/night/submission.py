"""What SparkSubmit is given: one frozen record for each kind of application of a night.

A record passes from task to task as JSON, by an XCom or a file of turns, and is read once where it
is submitted (`read_submission`). The kinds say what happens around an application:

    events          writes the events of the verification runs for the reference
    verifications   verifies all queries of the night in one application
    verification    verifies one query, unless the application before has done so
    no verification stands for the verification of an application of a person's own: its
                    repetitions are compared
    repetition      is timed; `outcome` says whether it counts, or is only for flame graphs
    next turn       stands for the next submission of a file of turns
    nothing         there is nothing to submit, and the task is skipped
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, TypeAdapter

from nexmark.config.fields import Model
from nexmark.model import FIRST_ROUND
from nexmark.night.run_directory import ApplicationDirectory, Json, Run, TurnFile


class SparkApplication(Model):
    """How SparkSubmit starts one program on the cluster of an arm.

    Attributes:
        label: what messages, its checkpoint and Spark's master call it.
        program: the path of the program.
        java_class: the main class of a JAR.
        job_file: the file of a person's own application that it runs, whose confs may have secrets.
        profile: the conf profile, whose properties file it gets.
        confs: more Spark confs, which all may see.
        secret_confs: fingerprints; what stands behind them is put into a file below `private`.
        engine: the engine whose conf in `include/conf` has these secrets.
        kafka: the Airflow connection of the Kafka that it reads, if any.
    """

    label: str
    program: str
    arguments: tuple[str, ...]
    arm: str
    profile: str
    confs: Mapping[str, str]
    secret_confs: Mapping[str, str] = Field(default_factory=dict)
    environment: Mapping[str, str]
    connection: str
    spark_binary: str
    kafka: str | None = None
    engine: str
    private: Path
    java_class: str | None = None
    job_file: Path | None = None

    @property
    def name(self) -> str:
        """The name of the application in Spark."""
        return f"nexmark {self.label}"

    def with_confs(self, confs: Mapping[str, str]) -> Self:
        """Return the same with more confs, which go before its own."""
        return self.model_copy(update={"confs": {**self.confs, **confs}})

    def with_arguments(self, arguments: Sequence[str]) -> Self:
        """Return the same with more arguments."""
        return self.model_copy(update={"arguments": (*self.arguments, *arguments)})


class Submission(Model):
    """An application and what happens around it.

    Attributes:
        directories: emptied before every try; the first one is the application's own.
        renames: pairs of paths; the first is renamed to the second when it has succeeded.
    """

    application: SparkApplication
    directories: Annotated[tuple[Path, ...], Field(min_length=1)]
    renames: tuple[tuple[Path, Path], ...] = ()

    @property
    def label(self) -> str:
        """What messages call the application."""
        return self.application.label

    @property
    def instance_name(self) -> str:
        """What Airflow's pages call the instance of a mapped task that runs it."""
        return self.label

    @property
    def directory(self) -> ApplicationDirectory:
        """The directory that the application fills."""
        return ApplicationDirectory(self.directories[0])

    @property
    def query_name(self) -> str:
        """The query that it runs, '' if it runs none or several."""
        return ""

    @property
    def repetition(self) -> Run | None:
        """The repetition that it is, None for an application that is not timed."""
        return None

    @property
    def history_server_url(self) -> str | None:
        """The history server that can show its event log; None without one."""
        return None


class EventDump(Submission):
    """The application that writes the events of the verification runs for the reference."""

    kind: Literal["events"] = "events"


class SharedQuery(Model):
    """A query among those that one application verifies."""

    arguments: tuple[str, ...]
    directories: tuple[Path, ...]


class SharedVerification(Submission):
    """The application that verifies all queries of a night."""

    kind: Literal["verifications"] = "verifications"
    queries: Mapping[str, SharedQuery]


class QueryVerification(Submission):
    """The application that verifies one query.

    `baseline` runs after it: the same on the baseline, where no reference says what is right.
    """

    kind: Literal["verification"] = "verification"
    query: str
    baseline: Submission | None = None

    @property
    def query_name(self) -> str:
        """The query that it verifies."""
        return self.query


class NoVerification(Model):
    """There is nothing to verify before an application of a person's own is timed."""

    kind: Literal["no verification"] = "no verification"


class Repetition(Submission):
    """A timed application.

    Attributes:
        outcome: `counts`, or `ignored` for one that is only for flame graphs: its failure is none
            of the night, and the samplers' figures of it are not judged.
        spark_version: the version of its build.
        history_server: the address of the history server of its cluster, if it has one.
    """

    kind: Literal["repetition"] = "repetition"
    run: Run
    outcome: Literal["counts", "ignored"] = "counts"
    spark_version: str = ""
    history_server: str | None = None

    @property
    def instance_name(self) -> str:
        """The query, the build with its arm, and the repetition."""
        build = f"{self.spark_version} {self.run.arm}".strip()
        return f"{self.run.query}: {build}, repetition {self.run.number}"

    @property
    def query_name(self) -> str:
        """The query that it runs."""
        return self.run.query

    @property
    def repetition(self) -> Run | None:
        """The repetition that it is."""
        return self.run

    @property
    def history_server_url(self) -> str | None:
        """The history server that can show its event log; None without one."""
        return self.history_server

    @property
    def counts(self) -> bool:
        """Whether its figures, and its failure, are the night's."""
        return self.outcome == "counts"

    @property
    def is_of_later_round(self) -> bool:
        """Whether no task before it has made the clusters whole for its query."""
        return self.run.stage != FIRST_ROUND


class NextTurn(Model):
    """Stands for the next submission of a file of turns."""

    kind: Literal["next turn"] = "next turn"
    turns: Path

    def claim(self, instance: int) -> "AnySubmission":
        """Return the submission that a mapped instance runs."""
        return read_submission(TurnFile(self.turns).claim(instance))


class NothingToSubmit(Model):
    """There is nothing to submit."""

    kind: Literal["nothing"] = "nothing"
    reason: str


AnySubmission = (
    EventDump
    | SharedVerification
    | QueryVerification
    | NoVerification
    | Repetition
    | NextTurn
    | NothingToSubmit
)
_ANY: TypeAdapter[AnySubmission] = TypeAdapter(
    Annotated[AnySubmission, Field(discriminator="kind")]
)


def written(submission: AnySubmission) -> Json:
    """Return a submission as JSON that an XCom can hold."""
    return submission.model_dump(mode="json")


def read_submission(value: Mapping[str, JsonValue]) -> AnySubmission:
    """Return the submission in the JSON that `written` made; ValueError for anything else."""
    return _ANY.validate_json(json.dumps(value))
