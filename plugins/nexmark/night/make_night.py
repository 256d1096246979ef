"""Makes the plan of a night from what a DAG run was asked for.

Free of Airflow, so that `nexmark run` can report a wrong param before Airflow is even imported.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from nexmark import engines
from nexmark.config import Config, Gate, Span, Workload, pick
from nexmark.config.document import place_of, problem_of
from nexmark.config.fields import KNOWN_QUERIES, SparkConf, known_queries
from nexmark.config.models import BUILD_DAG_ID, SIGNOFF_DAG_ID
from nexmark.config.own_jobs import Job
from nexmark.errors import NexmarkError, suggest
from nexmark.inputs.input_files import with_input_hash
from nexmark.model import CPU, Mode, query_name
from nexmark.night.changed_jobs import changed_jobs
from nexmark.night.kinds import kind_of
from nexmark.night.kinds.own import to_plan
from nexmark.night.night_plan import Night
from nexmark.night.params import NightParams, RolloutParams
from nexmark.secrets import fingerprinted
from nexmark_jobs.redaction import is_secret

#: People use these DAGs to try something.
TRIALS = frozenset({BUILD_DAG_ID, SIGNOFF_DAG_ID})


def make_night(
    config: Config, engine: str, dag_id: str, run_id: str, params: Mapping[str, object]
) -> Night:
    """Return the plan of a DAG run; NexmarkError for a param that names nothing.

    A build on demand (param `build`) is the candidate; the engine gives every other param that is
    empty. Such a run does not test the gate: the nights do, and it doubles the cost of a query.
    Where a person chose what is compared, the rules of a comparison hold.

    Args:
        config: The configuration.
        engine: The name of the engine.
        dag_id: The DAG.
        run_id: The run of it.
        params: What the run was given.
    """
    asked = NightParams.of(params)
    engine_config = pick("engine", engine, config.engines)
    changed = _changed_jobs(config, asked)
    if changed:
        same_build = asked.against or _candidate(asked) or str(engine_config.build)
        given = {"against": same_build, "queries": asked.queries or list(changed)}
        asked = asked.model_copy(update=given)
    name = asked.workload or engine_config.workload
    workload: Workload = pick("workload", name, config.workloads)
    teaching = teaches(dag_id, asked)
    gate = config.gate if teaching else config.gate.for_comparison()
    gate = _gate(gate, workload, asked)
    mode = gate.mode
    if asked.pairs:
        if mode != Mode.PAIRED:
            raise NexmarkError(f"pairs: a night in mode {mode} has none; give repetitions")
        gate = gate.with_pairs(asked.pairs)
    repetitions = asked.repetitions or (gate.pairs if mode == Mode.PAIRED else 0)
    least = kind_of(workload).least_pairs()
    if mode != Mode.BOUNDS and 0 < repetitions < least:
        few = f"repetitions: {repetitions} are too few for a verdict in mode {mode}"
        raise NexmarkError(f"{few}; give at least {least}, or mode bounds")
    if repetitions:
        workload = workload.model_copy(update={"repetitions": repetitions})
    if scale := asked.verify_scale:
        workload = _verified_more(workload, scale)
    if asked.batches:
        workload = _of_batches(workload, asked.batches)
    queries = select_queries(asked.queries, workload, config)
    jobs = {
        name: with_input_hash(to_plan(config.jobs[name])) for name in queries if name in config.jobs
    }
    for name, job in jobs.items():
        _check_kind(name, job, workload)
    candidate_jobs = {
        name: to_plan(job).model_copy(update={"input_sha256": jobs[name].input_sha256})
        for name, job in changed.items()
        if name in jobs
    }
    candidate, against = _candidate(asked), asked.against
    cluster = pick("cluster", asked.cluster or config.cluster_of(engine_config), config.clusters)
    is_checked = kind_of(workload).runs_own_inputs and bool(candidate_jobs)
    span = workload.compatibility or (Span() if asked.compatibility or is_checked else None)
    return Night(
        dag_id=dag_id,
        run_id=run_id,
        engine=engine_config.model_copy(update={"conf": fingerprinted(engine_config.conf)}),
        workload=workload,
        cluster=kind_of(workload).cluster(workload, cluster),
        gate=gate,
        mode=mode,
        queries=queries,
        candidate=engines.parse_source(candidate) if candidate else engine_config.build,
        candidate_conf=spark_confs(asked.candidate_conf),
        teaches=teaching,
        compatibility=span if asked.compatibility is not False else None,
        against=dict.fromkeys(queries, engines.parse_source(against)) if against else {},
        jobs=jobs,
        candidate_jobs=candidate_jobs,
        candidate_job=asked.candidate_job or "",
    )


def _changed_jobs(config: Config, asked: NightParams) -> dict[str, Job]:
    """Return the versions of jobs that the candidate runs, by name; NexmarkError for none."""
    directory = asked.candidate_job
    return changed_jobs(directory, config.jobs, config.broken_jobs) if directory else {}


def teaches(dag_id: str, asked: NightParams) -> bool:
    """Tell whether the gate learns from such a night.

    It does not learn from a build on demand or a sign-off, nor if a person gave the candidate, its
    confs, its jobs or the build to compare with.
    """
    chosen = (_candidate(asked), asked.candidate_conf, asked.candidate_job, asked.against)
    return dag_id not in TRIALS and not any(chosen)


def spark_confs(value: Mapping[str, object] | None) -> dict[str, str]:
    """Return the Spark confs of the candidate alone; NexmarkError for a bad one or a secret."""
    try:
        confs = TypeAdapter(SparkConf).validate_python(dict(value or {}), strict=True)
    except ValidationError as errors:
        raise NexmarkError(f"candidate_conf: {_first_problem(errors)}") from None
    for name, text in confs.items():
        if is_secret(name, text):
            problem = f"{name} is a secret, and Airflow keeps what a run was given"
            remedy = "put it into the engine's conf in include/conf/engines.yaml"
            raise NexmarkError(f"candidate_conf: {problem}; {remedy}")
    return dict(confs)


def _check_kind(name: str, job: Job, workload: Workload) -> None:
    """Refuse a job of a person's own that nights of a workload's kind cannot run."""
    kind = kind_of(workload)
    has_own_input = job.application is not None or job.own_tables is not None
    if kind.runs_own_jobs and (kind.runs_own_inputs or not has_own_input):
        return
    problem = f"{name} is a job of your own"
    if kind.runs_own_jobs:
        problem = f"{name} is an application, or reads files of your own"
    remedy = "take a workload without kind, or leave the job out"
    raise NexmarkError(
        f"queries: {problem}, and workload {workload.name} is of kind {workload.kind}; {remedy}"
    )


def _verified_more(workload: Workload, scale: float) -> Workload:
    """Return `workload` with the number of verification events multiplied by `scale`.

    NexmarkError for too many events.
    """
    size = workload.verify.model_dump() | {"events": round(workload.verify.events * scale)}
    try:
        return Workload.model_validate({**workload.model_dump(), "verify": size})
    except ValidationError as errors:
        problem = f"workload {workload.name}: {_first_problem(errors)}"
        raise NexmarkError(f"verify_scale: {problem}") from None


def _of_batches(workload: Workload, batches: int) -> Workload:
    """Return a soak workload with a number of batches for each query; NexmarkError for another."""
    if workload.soak is None:
        problem = f"workload {workload.name} is of kind {workload.kind}"
        raise NexmarkError(f"batches: {problem}; only a soak workload takes a number of batches")
    events = batches * workload.rows_per_batch
    changed = {**workload.model_dump(), "events": events, "sizes": {}}
    try:
        return Workload.model_validate(changed)
    except ValidationError as errors:
        problem = f"workload {workload.name}: {_first_problem(errors)}"
        raise NexmarkError(f"batches: {problem}") from None


def _first_problem(errors: ValidationError) -> str:
    """Return the first of the errors: its key, the problem and the remedy."""
    error = cast(Mapping[str, Any], errors.errors(include_url=False)[0])
    at = place_of(error)
    return f"{'.'.join(map(str, at))}: {problem_of(error, Workload, at)}"


def with_snapshot(night: Night, params: Mapping[str, object], moment: datetime | None) -> Night:
    """Return `night` with the snapshot build of its date as candidate, if its engine has snapshots.

    A candidate that the params name goes before the snapshot.

    Args:
        night: The night as its params make it.
        params: The params of the DAG run.
        moment: The date of the DAG run; None if it has none.

    Raises:
        MissingBuild: There is no snapshot of this date.
        NexmarkError: The DAG run has no date, which says which snapshot is meant.
    """
    snapshots = night.engine.snapshots
    if snapshots is None or _candidate(NightParams.of(params)):
        return night
    if moment is None:
        problem = f"the DAG run has none, and engine {night.engine.name} has a build for each date"
        remedy = "trigger it with a logical date, or give a candidate"
        raise NexmarkError(f"logical date: {problem}; {remedy}")
    return night.model_copy(update={"candidate": engines.snapshot(snapshots, moment.date())})


def _candidate(asked: NightParams) -> str:
    return asked.build or asked.candidate or ""


def _gate(gate: Gate, workload: Workload, asked: NightParams) -> Gate:
    """Return the gate of a night; a build to compare with is for pairs."""
    against = asked.against
    mode = asked.mode or (Mode.PAIRED if against else gate.modes.get(workload.name, gate.mode))
    if kind_of(workload).is_judged_by_pairs_only:
        if mode == Mode.BOUNDS:
            problem = f"{workload.name} is of kind {workload.kind}, which is judged by pairs"
            raise NexmarkError(f"mode: workload {problem}; take mode paired")
        gate = kind_of(workload).gate(gate)
    if mode == Mode.PAIRED and workload.bounds_only:
        steady = workload.events // workload.rows_per_batch - workload.warmup_batches
        problem = f"{workload.name} is too short for pairs: {steady} steady batch a repetition"
        remedy = "take another workload (compare, nightly), or mode bounds"
        raise NexmarkError(f"workload: {problem}, else the start of the JVM; {remedy}")
    if against and mode != Mode.PAIRED:
        problem = f"nights in mode {mode} measure no second build; leave out mode, or against"
        raise NexmarkError(f"against: {problem}")
    changes: dict[str, object] = {"mode": mode}
    if mode == Mode.BOUNDS:
        changes["metric"] = CPU
    if asked.build:
        changes["self_test"] = 0.0
    if asked.budget_minutes:
        changes["budget_minutes"] = asked.budget_minutes
    return gate.model_copy(update=changes)


def select_queries(
    value: str | Sequence[str] | None, workload: Workload, config: Config
) -> tuple[str, ...]:
    """Return the queries to run, in the order of `KNOWN_QUERIES`, then the jobs of a person's own.

    NexmarkError for an unknown name, or the name of a job whose files have a mistake.

    Args:
        value: A list, or names separated by commas; empty stands for the workload's own.
        workload: The workload.
        config: The configuration, with the jobs that there are.
    """
    names = query_names(value) or workload.queries
    for name in names:
        if name not in KNOWN_QUERIES and name in config.broken_jobs:
            raise NexmarkError(config.broken_jobs[name])
    known = (*KNOWN_QUERIES, *config.jobs)
    _check_known(names, known)
    return tuple(name for name in known if name in names)


def _check_known(names: Iterable[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise NexmarkError(f"queries: unknown query {name!r}; {suggest(name, known)}")


def param_problem(name: str, value: object) -> str:
    """Return what is wrong with one param of a night or rollout, in one line; "" for nothing."""
    try:
        asked = RolloutParams.of({name: value})
        _check_known(query_names(asked.queries), known_queries())
        spark_confs(asked.candidate_conf)
        for build in filter(None, (asked.build, asked.candidate, asked.against)):
            engines.parse_source(build)
    except NexmarkError as error:
        return str(error)
    return ""


def query_names(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names in a list, or in a text that separates them by commas; none in a blank text.

    Q5 is q5. NexmarkError for an empty name among others, which Airflow refuses as well.
    """
    if not isinstance(value, str):
        return tuple(query_name(name) for name in value or ())
    names = tuple(query_name(name) for name in value.split(","))
    if names == ("",):
        return ()
    if "" in names:
        raise NexmarkError(f"queries: an empty name in {value!r}; write them like q1,q5")
    return names
