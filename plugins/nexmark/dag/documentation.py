"""The `doc_md` of the DAGs: the texts beside a DAG in Airflow.

They name documents by their path in the repository (and in the wheel, `nexmark/site/docs`): Airflow
may run without a network.
"""

from __future__ import annotations

from nexmark.config import Engine

_WHEN_RED = """## When it is red

Read the log of the task **verdict** first: it names the queries and the reason. If `verdict` did
not run, the first red task from the left is the cause. `docs/a-red-night.md` shows each step.

| red task | what it means | what to do |
|---|---|---|
| preflight | something is missing or wrong, here or on a host | do what its lines say |
| reap | another night has held the cluster for hours | wait, or end that DAG run |
| deploy | the build could not be fetched, verified or sent | check URL, checksum, network, disk |
| start_cluster | Spark's master or a worker did not start | see its last words in the log |
| dump_events | the events for the reference are not there | read the Spark log in the task |
| verify | no application could verify the queries together; each does it alone | read its log |
| *q*.verify, *q*.repetition | the Spark application failed twice | read its log in the task |
| *q*.plan | the cluster was lost and could not be restarted | look at the host in its log |
| *q*.*start/stop*_samplers | samples of a host are missing: INVALID | look at the host in its log |
| *q*.expectations | **the result is wrong** | the log names expectations and rows |
| *q*.record | a measurement could not be stored | check the results database |
| confirmation.fresh | a suspect could not be measured again: SUSPECT | read its log |
| confirmation.flames | a suspect has no flame graphs; no verdict depends on them | read its log |
| compatibility | a running query would not survive the candidate | its log has both plans |
| confirmation.suspects | the suspects are not known | check the results database |
| verdict | a regression, a wrong result or a missing query | see below |
| stop_cluster | a host was not reached to be cleaned | nothing: the next `reap` does it |

**A regression**: compare the candidate's build id with the baseline's in the table. Run the DAG
again with `queries` set to the query and more `repetitions`. The lines `since build ...` in the log
of `report` group the regressions that began with the same build: one issue each. If it stays, it is
real. Report it, or accept it (DAG `nexmark_accept`, with the reason): then the run becomes the new
baseline. Clear `judge`, and this night is judged again with it. A result worse than the accepted
one is red again; so is an accepted one once its acceptance expires.

**A wrong result** cannot be accepted: it is a bug of the build, of the query or of the reference. A
result that is wrong *over the boundary events* is wrong on the bounds of a window or an auction, in
a tie, or at another edge that generated events rarely reach: `nexmark_jobs/boundary.py` has the
cases.

**INVALID: state incompatible, or silently wrong**: a query that runs on the baseline build does not
go on with the candidate, or not back. `compatibility.json` in the run directory has both plans;
`docs/compatibility.md` says what the classes mean. Such a night can be accepted.

**No baseline**: the night is green and says so. Accept a run to have one.

**INVALID without a wrong result**: the repetition ran, but its figures cannot be used. Either it
lost a part of the cluster (an executor, a sampler, a host), or twice an executor did less than its
share or a host stood still. The reason names the part. `docs/your-cluster.md` has the rules.

After a killed night there is nothing to clean: the next night's `reap` ends its processes. A lease
that cannot be read counts as held: `reap` names the file to remove if no night runs. Tasks
that stay `scheduled` wait for the pool: `airflow pools set nexmark_cluster 1 "Spark"`.

The run directory (`preflight` and `report` name it) has everything: `cluster/` with the logs of
master and workers, `data_docs/` of the expectations, and for each query its result files, samples
and Spark event logs.
"""

_NIGHTLY = """
# Nexmark on {name}

Runs the Nexmark queries on {build}, proves each result,
measures it, and compares it with the accepted baseline. Red means a regression, a wrong result, a
missing query, or a night that could not be run.

More: `docs/run-a-night.md`, `docs/read-the-result.md`, `docs/how-the-gate-decides.md`.

{when_red}

## Params

`queries` (a list or `q1,q5`; empty: the workload's), `workload`, `repetitions`, `candidate` (a
build to test instead of the engine's own), `candidate_conf` (Spark confs of the candidate alone, to
test a setting; no secrets; such a night cannot be accepted), `mode` (how the night is judged),
`against` (a build to compare with instead of the accepted one), `compatibility` (whether running
queries survive the change; empty: as the workload says), `cluster`. The gate learns nothing from a
night with a `candidate`, a `candidate_conf` or an `against`.
"""

_ON_DEMAND = """
# A Spark build on demand

Runs the Nexmark queries on any Spark build (param `build`), proves each result, and measures it in
pairs with the build of the param `against`. Without `against`, it compares with the build that was
accepted for the engine. Green means as right and as fast as the other build. The param `engine`
gives confs, workload and cluster, unless other params override them. The gate learns nothing from
these nights, and the night does not test the gate.

More: `docs/test-a-build.md`.

{when_red}

## Params

`build` (the candidate: `pypi:4.3.0`, `tarball:PATH-OR-URL#sha512=HEX`, `directory:PATH`), `against`
(written the same way), `candidate_conf` (Spark confs of the candidate alone; no secrets), `queries`
(a list or `q1,q5`; empty: the workload's), `repetitions` (pairs of each query), `engine`,
`workload`, `cluster`, `mode` (how the night is judged; `paired` if `against` is given),
`compatibility` (whether running queries survive the change).
"""

_ACCEPT = """
# Accept a night as the baseline

Later nights of the same engine, workload and cluster are compared with the run that you accept
here, and its red verdicts count as known. Give the run id (`run`; on the DAG run's page and under
the table of the night), the `reason`, and who accepts it (`by`): all three are stored. `queries`
accepts only some (`q5,q7`). `expires` sets an end: a day (2027-01-31) or a number of days (30d).
`link` keeps where the team decided. Queries with a wrong result or a missing repetition are
refused; the others are accepted.

No acceptance is ever changed or deleted. `nexmark withdraw --id ... --reason ...` takes one back
and is recorded too; `nexmark acks` lists all of them. More: `docs/a-red-night.md`.

## When it is red

The log has one line: the missing or wrong input, and the queries that were refused. Queries that it
does not name as the baseline keep their baseline.
"""

_SIGNOFF = """
# Sign a release off

Measures `build` against another one (`against`, for example the last release; empty: the build that
was accepted last) on all queries of `workload`, with twice the pairs of a night and results proven
on `verify_scale` times the events. Then a person decides: under *Required Actions* of the run, or
by the REST API. Nothing runs while it waits, and the cluster is free. The gate learns nothing from
it.

**Approve**: the run is green. **Reject**, or no answer in `timeout_days`: it is red. A red verdict
does not end the sign-off, it is shown: a person who approves a red night has to give a reason.
After either decision, `evidence` writes a bundle to `signoff/` in the run directory, and a copy
under `signoffs/` of the home: builds, hosts, confs, gate, verdicts, acceptances, the decision, who
and when. Its files are read-only; `nexmark verify DIR` says whether one was changed. More:
`docs/sign-a-release-off.md`.

`airflow dags test` cannot answer the question: it takes a scheduler (`make ui`).

## When it is red

| red task | what it means | what to do |
|---|---|---|
| decision | somebody rejected, or approved a red night without reason | its log has who and why |
| approval, `HITLRejectException` | the same, see `decision` | nothing |
| approval, `HITLTimeoutError` | nobody answered in time | clear `approval` to ask again |
| evidence | nobody was asked, or it could not be written | see the first red task, the disk |
| question | the report could not be read | check the results database |
| preflight | a param or the machine is wrong, or there is no baseline | read its log |
| any other | as in the nightly DAG of the engine: a task of the night | see there |

## Params

`build` and `against` (`pypi:4.3.0`, `tarball:PATH-OR-URL#sha512=HEX`, `directory:PATH`), `engine`
(the version line, with its confs), `workload`, `cluster`, `pairs` (of each query), `verify_scale`,
`compatibility` (whether running queries survive), `mode` (how the night is judged), `timeout_days`.

## To ask again

Clear `approval` and the tasks after it: the next decision has its own bundle, and the earlier
bundle stays. To make the approved build the baseline, run the command from the log of `decision`:
`nexmark accept --run ... --reason ...`.
"""


_EXPERIMENT = """
Is an optimisation worth it, and is it right? Measures the arms of one entry of
`include/conf/experiments.yaml` in turns, each application a task, one at a time on this machine;
compares the results row for row; and prints what each arm saves against the first one. `table` has
it in its log, and writes `experiment.html` and `experiment.json` into the run directory.
`nexmark experiment NAME` does the same without Airflow. More: `docs/try-an-optimisation.md`.

## When it is red

| red task | what it means | what to do |
|---|---|---|
| steps | a param, the configuration or a build is wrong | read its log |
| measure | an application failed | read its log; the table goes on without the arm |
| table | arms put out other rows, a result is wrong, or an arm failed | read the table in its log |

## Params

`name` (of the experiment), `sizes` (events per micro-batch), `pairs` (runs of each arm), `engine`.
"""


def experiment_doc() -> str:
    """The `doc_md` of `nexmark_experiment`."""
    return _EXPERIMENT


def nightly_doc(engine: Engine) -> str:
    """The `doc_md` of an engine's DAG."""
    build = f"the Spark build `{engine.build}`"
    if engine.snapshots is not None:
        build = "the Spark build of its date (a date without one is skipped, and green)"
    return _NIGHTLY.format(name=engine.name, build=build, when_red=_WHEN_RED.strip())


def on_demand_doc() -> str:
    """The `doc_md` of `nexmark_build`."""
    return _ON_DEMAND.format(when_red=_WHEN_RED.strip())


def signoff_doc() -> str:
    """The `doc_md` of `nexmark_signoff`."""
    return _SIGNOFF


def accept_doc() -> str:
    """The `doc_md` of `nexmark_accept`."""
    return _ACCEPT
