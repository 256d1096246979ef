"""A rollout from the params of a person: a new one, or one that goes on."""

from __future__ import annotations

from datetime import UTC, datetime

from nexmark.config import BUILD_DAG_ID, Config, pick
from nexmark.engines import parse_source
from nexmark.errors import NexmarkError
from nexmark.night.params import RolloutParams
from nexmark.night.planning import make_night, spark_confs
from nexmark.rollout.state import Rollout, RolloutStage, file_of, parse_stages

_FIRST = ("build", "against", "candidate_conf", "stages", "name", "repetitions")


def rollout_of(asked: RolloutParams, config: Config) -> Rollout:
    """The rollout that is asked for: a new one, written, or the one to resume.

    NexmarkError for what cannot be.
    """
    if asked.resume is None:
        if asked.accept is not None:
            raise NexmarkError("accept: needs resume, the name of a rollout; give both")
        return _begun(asked, config)
    if any(getattr(asked, name) for name in _FIRST):
        raise NexmarkError("resume: a rollout keeps its first params; give no other")
    return Rollout.read(asked.resume)


def _begun(asked: RolloutParams, config: Config) -> Rollout:
    if asked.build is None and not asked.candidate_conf:
        raise NexmarkError("nothing to roll out: give confs or a build")
    if not asked.stages:
        raise NexmarkError("stages: none are given; write them like 'q0,q1; q2-q8; all'")
    engine = config.engine(asked.engine)
    workload = pick("workload", asked.workload or engine.workload, config.workloads)
    old = str(parse_source(asked.against)) if asked.against else str(engine.build)
    new = Rollout(
        name=asked.name or f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}",
        engine=engine.name,
        workload=workload.name,
        cluster=asked.cluster or config.cluster_of(engine),
        build=str(parse_source(asked.build)) if asked.build else old,
        against=old,
        repetitions=asked.repetitions or config.gate.pairs,
        conf=spark_confs(asked.candidate_conf),
        stages=tuple(RolloutStage(queries=x) for x in parse_stages(asked.stages, workload.queries)),
    )
    if file_of(new.name).exists():
        raise NexmarkError(f"name: rollout {new.name} is there; resume it, or name another")
    if new.build == new.against and not new.conf:
        raise NexmarkError(f"build: {new.build} is the old arm as well; give another, or confs")
    make_night(config, engine.name, BUILD_DAG_ID, "", {**new.params, "queries": None})
    new.write()
    return new
