"""What an operator reads beside a DAG in Airflow."""

from __future__ import annotations

from nexmark.config import Engine

_WHEN_RED = """## When it is red

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
| confirmation.fresh | a suspect could not be measured again: SUSPECT | read its log |
| confirmation.flames | a suspect has no flame graphs; no verdict depends on them | read its log |
| confirmation.suspects | what looks changed is unknown | check the results database |
| verdict | a regression, a wrong result or a missing query | see below |
| stop_cluster | a host was not reached to be cleaned | nothing: the next `reap` does it |

**A regression**: compare the candidate's build id with the baseline's in the table; run the DAG
again with `queries` set to the query and more `repetitions`. The lines `since build ...` in the
log of `report` put what began with the same build together: one issue each. If it stays, it is
real: report it, or accept it (DAG `nexmark_accept`, with the reason) and the run becomes the new
baseline; clear `judge` to have this night judged with that. What is worse than was accepted is red
again, and so is what was accepted until a day, from that day on.

**A wrong result** is never accepted: it is a bug of the build, of the query or of the reference.

**No baseline**: the night is green and says so. Accept a run to have one.

**INVALID without a wrong result**: the repetition ran, but a part of the cluster was lost under it
(an executor, a sampler, a host): its figures are not used. The reason names it.

A night that was killed leaves nothing to clean: the next night's `reap` ends what is left. Tasks
that stay `scheduled` for ever wait for the pool: `airflow pools set nexmark_cluster 1 "Spark"`.

The run directory (`preflight` and `report` name it) has everything: `cluster/` logs of master and
workers, `data_docs/` of the expectations, and for each query its result files, samples and Spark
event logs.
"""

_NIGHTLY = """
# Nexmark on {name}

Runs the Nexmark queries on {build}, proves each result,
measures it, and compares it with the accepted baseline. Red means: a regression, a wrong result, a
query that is missing, or a night that could not be run.

{when_red}

## Params

`queries` (a list or `q1,q5`; empty: what the workload says), `workload`, `repetitions`, `candidate`
(a build to test instead of the engine's own), `candidate_conf` (Spark confs of the candidate alone:
test a setting; such a night cannot be accepted), `mode` (how it is judged), `against` (a build to
compare with instead of the accepted one), `cluster`.
"""

_ON_DEMAND = """
# A Spark build on demand

Runs the Nexmark queries on any Spark build (param `build`), proves each result, measures it, and
compares it: in pairs with the build of the param `against`, or, without one, with the build that
was accepted for the engine. Green means: as right and as fast as that. Confs, workload and cluster
are those of the param `engine` unless other params say otherwise. Its nights are not among those
that the gate learns from, and the gate is not tested on the way.

{when_red}

## Params

`build` (the candidate: `pypi:4.3.0`, `tarball:PATH-OR-URL#sha512=HEX`, `directory:PATH`), `against`
(written the same way), `queries` (a list or `q1,q5`; empty: what the workload says), `repetitions`
(pairs of each query), `engine`, `workload`, `cluster`, `mode` (how it is judged; paired where
`against` is given).
"""

_ACCEPT = """
# Accept a night as the baseline

Later nights of the same engine, workload and cluster are compared with the run that is accepted
here, and what was red in it is known. Give the run id (on the DAG run's page and under the table
of the night), why, and who accepts it: all three are stored. `queries` accepts some only
(`q5,q7`), `expires` until a day (2027-01-31) or for some days (30d), `link` keeps where it was
decided. Queries that are wrong or lack a repetition are left out.

Nothing accepted is ever changed or deleted; `make withdraw ID=... REASON=...` takes it back, which
is recorded too. `make acks` lists all of it.

## When it is red

When it is red, its log says in one line what is missing or wrong; nothing was changed.
"""

_SIGNOFF = """
# Sign a release off

Measures `build` against another one (`against`, the last release say; empty: what was accepted
last) on all queries of `workload`, with twice the pairs of a night and results proven on
`verify_scale` times the events. Then a person decides: under *Required Actions* of the run, or by
the REST API. Nothing runs while it waits, and the cluster is free.

**Approve**: the run is green. **Reject**, or no answer in `timeout_days`: it is red. A red verdict
does not end the sign-off, it is shown: who approves a red night has to give a reason. Whatever is
decided, `evidence` writes a bundle to `signoff/` in the run directory, and a copy under
`signoffs/` of the home: builds, hosts, confs, gate, verdicts, acceptances, the decision, who and
when. Its files are read-only; `python -m nexmark.report verify DIR` says whether one was changed.

`airflow dags test` cannot answer the question: it takes a scheduler (`make ui`).

## When it is red

| red task | what it means | what to do |
|---|---|---|
| decision | somebody rejected, or approved a red night without reason | its log has who and why |
| approval, `HITLRejectException` | the same, see `decision` | nothing |
| approval, `HITLTimeoutError` | nobody answered in time | clear `approval` to ask again |
| evidence | nobody was asked, or it could not be written | see the first red task, the disk |
| question | the report could not be read | check the results database |
| preflight | a param or the machine is wrong, or nothing to compare with | see its log |
| any other | as in the nightly DAG of the engine: a task of the night | see there |

To ask again, clear `approval` with what is after it: the next decision has a bundle of its own, and
the one before stays. To make the build the baseline after it was approved: the command that the log
of `decision` has, `make accept RUN=... REASON=...`.
"""


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


__all__ = ["accept_doc", "nightly_doc", "on_demand_doc", "signoff_doc"]
