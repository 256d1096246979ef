"""What an operator reads beside a DAG in Airflow."""

from __future__ import annotations

from nexmark.config import Engine

_NIGHTLY = """
# Nexmark on {name}

Runs the Nexmark queries on the Spark build `{build}`, proves each result, measures it, and
compares it with the accepted baseline. Red means: a regression, a wrong result, a query that is
missing, or a night that could not be run.

## When it is red

Look at the **verdict** task's log first: it names the queries and the reason. If `verdict` did not
run, the first red task from the left is the cause.

| red task | what it means | what to do |
|---|---|---|
| preflight | something is missing or wrong, here or on a host | do what its lines say |
| reap | another night has used the cluster for hours | wait, or end that DAG run |
| deploy | the build could not be fetched, verified or sent | check URL, checksum, network, disk |
| start_cluster | Spark's master or a worker did not start | see its last words in the log |
| dump_events | the events for the reference are not there | read the Spark log in the task |
| *q*.verify, *q*.repetition | the Spark application failed twice | read its log in the task |
| *q*.plan | the cluster had died and could not be started anew | see the host that it names |
| *q*.*start/stop*_samplers | samples of a host are missing: INVALID | see the host that it names |
| *q*.expectations | **the result is wrong** | the log names expectations and rows |
| *q*.record | a measurement could not be stored | check the results database |
| verdict | a regression, a wrong result or a missing query | see below |
| stop_cluster | a host was not reached to be cleaned | nothing: the next `reap` does it |

**A regression**: compare the candidate's build id with the baseline's in the table; run the DAG
again with `queries` set to the query and more `repetitions`. If it stays, it is real: report it, or
accept it (DAG `nexmark_accept`, with the reason) and the run becomes the new baseline.

**A wrong result** is never accepted: it is a bug of the build, of the query or of the reference.

**No baseline**: the night is green and says so. Accept a run to have one.

**INVALID without a wrong result**: the repetition ran, but a part of the cluster was lost under it
(an executor, a sampler, a host): its figures are not used. The reason names it.

A night that was killed leaves nothing to clean: the next night's `reap` ends what is left. Tasks
that stay `scheduled` for ever wait for the pool: `airflow pools set nexmark_cluster 1 "Spark"`.

The run directory (`preflight` and `report` name it) has everything: `cluster/` logs of master and
workers, `data_docs/` of the expectations, and for each query its result files, samples and Spark
event logs.

## Params

`queries` (a list or `q1,q5`; empty: what the workload says), `workload`, `repetitions`, `candidate`
(a build to test instead of the engine's own), `cluster`.
"""

_ACCEPT = """
# Accept a night as the baseline

Later nights of the same engine, workload and cluster are compared with the run that is accepted
here. Give the run id (on the DAG run's page and under the table of the night), why, and who accepts
it: all three are stored. Queries that are wrong or lack a repetition are left out.

## When it is red

When it is red, its log says which of the three is missing or why the run cannot be accepted;
nothing was changed.
"""


def nightly_doc(engine: Engine) -> str:
    """The `doc_md` of an engine's DAG."""
    return _NIGHTLY.format(name=engine.name, build=engine.build)


def accept_doc() -> str:
    """The `doc_md` of `nexmark_accept`."""
    return _ACCEPT


__all__ = ["accept_doc", "nightly_doc"]
