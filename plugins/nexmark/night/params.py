"""The params of a night: one description, from which forms and commands are made."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.config import JsonDict

from nexmark.config import known_queries
from nexmark.config.gate_rules import WrittenMode
from nexmark.errors import NexmarkError
from nexmark.model import MIN_PAIRS, Mode
from nexmark_jobs.redaction import SECRET_NAMES, SECRET_VALUES

BUILD = "pypi:4.3.0, tarball:PATH-OR-URL#sha512=HEX or directory:PATH"


def _query_schema(schema: JsonDict) -> None:
    """Add the names of queries, and of the jobs that there are now, to a schema."""
    names = list(known_queries())
    listed = "|".join(f"[{name[0]}{name[0].upper()}]{name[1:]}" for name in names)  # Q5 is q5
    schema |= {
        "items": {"type": "string", "pattern": rf"^\s*({listed})\s*$"},
        "uniqueItems": True,
        "pattern": rf"^\s*(({listed})\s*(,\s*({listed})\s*)*)?$",
        "examples": [*names],
    }


_Build = Annotated[str, Field(max_length=4096)]
_Text = Annotated[str, Field(max_length=2000)]
_Name = Annotated[str, Field(max_length=100)]


class NightParams(BaseModel):
    """The params of a night; None stands for what `include/conf` says.

    The forms of the DAGs (`nexmark.dag.dag_params`) and the options of the commands
    (`nexmark.cli.shared_options`) have title, description and limits from here.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    engine: str | None = Field(
        None, description="The version line, with its confs: include/conf/engines.yaml."
    )
    build: _Build | None = Field(None, description=f"{BUILD}.")
    candidate: _Build | None = Field(
        None,
        title="Candidate build",
        description=f"{BUILD}; empty: the engine's build, or its build of the date, "
        "in include/conf/engines.yaml.",
    )
    against: _Build | None = Field(
        None,
        description="The build that every query is compared with, in pairs, written as the "
        "candidate is; empty: the build that was accepted for each.",
    )
    workload: str | None = Field(
        None, description="The workload: an entry of include/conf/workloads.yaml."
    )
    cluster: str | None = Field(None, description="Where Spark runs: include/conf/clusters.yaml.")
    queries: str | list[str] | None = Field(
        None,
        description="A list, or names separated by commas; empty: the workload's.",
        json_schema_extra=_query_schema,
    )
    repetitions: int | None = Field(
        None,
        ge=1,
        le=100,
        description="Timed repetitions, or pairs, of each query; empty: what the workload says, "
        "or in mode paired the gate.",
    )
    pairs: int | None = Field(
        None,
        ge=MIN_PAIRS,
        le=1000,
        description="This number of pairs of each query and no more (REGRESSION and FASTER "
        "need 4); empty: rounds of pairs, until each query is decided.",
    )
    budget_minutes: float | None = Field(
        None,
        gt=0,
        le=10_000,
        description="Minutes after which no further round of pairs begins; empty: what "
        "include/conf/gate.yaml says.",
    )
    batches: int | None = Field(
        None,
        ge=100,
        le=10_000_000,
        description="Batches of each timed repetition of a soak workload; empty: what the "
        "workload says.",
    )
    candidate_conf: dict[str, object] | None = Field(
        None,
        title="Candidate's Spark confs",
        description="Spark confs of the candidate alone, to test a setting instead of a build; "
        "no secrets: Airflow keeps what a run was given.",
        json_schema_extra={
            "additionalProperties": {
                "type": ["string", "number", "boolean"],
                "not": {"type": "string", "pattern": SECRET_VALUES},
            },
            "propertyNames": {"not": {"pattern": SECRET_NAMES}},
        },
    )
    candidate_job: _Build | None = Field(
        None,
        title="Candidate's jobs",
        description="A directory with changed files of jobs of your own: the candidate runs these, "
        "the baseline those in include/conf/jobs, by default both on the same build.",
    )
    mode: WrittenMode | None = Field(
        None,
        title="Mode",
        description="bounds: medians against the accepted run; paired: against the accepted "
        "build, measured in the same night; empty: what include/conf/gate.yaml says.",
        json_schema_extra={"enum": [None, *(mode.value for mode in Mode)]},
    )
    compatibility: bool | None = Field(
        None,
        description="Whether running queries survive the change: baseline and candidate go on from "
        "each other's checkpoints; empty: what the workload says, and yes for changed jobs.",
    )
    verify_scale: float | None = Field(
        None,
        gt=0,
        le=1000,
        title="Scale of the verification",
        description="Multiplies the workload's verify events, which prove the results right.",
    )

    @classmethod
    def of(cls, params: Mapping[str, object]) -> Self:
        """Return the params of a mapping, as Airflow has them; NexmarkError for a bad one."""
        given = {name: value for name, value in params.items() if value != ""}
        try:
            return cls.model_validate(given)
        except ValidationError as errors:
            error = errors.errors(include_url=False)[0]
            name, value = error["loc"][0], error["input"]
            text = error["msg"][:1].lower() + error["msg"][1:]
            raise NexmarkError(f"{name}: {value!r}: {text}; correct it") from None


class RolloutParams(NightParams):
    """The params of a rollout, beside the params that it shares with its nights."""

    stages: _Text | None = Field(None, description="Queries by stage: 'q0,q1; q2-q8; all'.")
    name: _Name | None = Field(None, description="To resume it by; empty: the time.")
    resume: _Name | None = Field(None, description="Go on with the rollout of that name.")
    accept: _Text | None = Field(None, description="With resume: why the stage may go on.")
    go_on_undecided: bool | None = Field(
        None, description="A stage that is neither OK nor FASTER, and not red, does not stop it."
    )


@cache
def _schemas() -> dict[str, Any]:
    """Return the JSON schemas of all params, made once: each task of a night builds its DAG."""
    return dict(RolloutParams.model_json_schema()["properties"])


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON schema of a param as a form wants it: one list of types, "null" first."""
    schema = dict(_schemas()[name])
    schema.pop("default", None)
    types: list[str] = []
    for option in schema.pop("anyOf", ()):
        types.append(option["type"])
        schema = {**{k: v for k, v in option.items() if k != "type"}, **schema}
    if types:
        schema["type"] = sorted(types, key=lambda kind: kind != "null")
    return schema


def help_of(name: str) -> str:
    """Return what an option of a command says about a param."""
    return str(RolloutParams.model_fields[name].description)
