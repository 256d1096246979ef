"""A rollout as far as it has come, and its file, with which another command can go on.

The file is <home>/rollouts/<name>.json. A person writes the stages as `q0,q1; q2-q8; all`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field, ValidationError

from nexmark.config import BUILD_DAG_ID, Config, SparkConf, paths, pick
from nexmark.config.fields import Model
from nexmark.engines import parse_source
from nexmark.errors import NexmarkError, suggest
from nexmark.home import write_private
from nexmark.model import Mode, query_name
from nexmark.night.make_night import make_night, spark_confs
from nexmark.night.params import RolloutParams

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


StageState: TypeAlias = Literal["waiting", "green", "red", "undecided", "accepted"]


class QueryStep(Model):
    """The outcome of one query in its stage.

    `ratio` is the CPU per event of the new arm, divided by the CPU per event of the old arm; `lo`
    and `hi` are its interval. `red` says why the query is red, `undecided` why it is neither red
    nor OK; "" if it is not. `outcome` is what
    the upgrade does to a running query; None for a query without state. `forward`: how the new arm
    went on from a checkpoint of the old arm; `backward`: how the old arm went on from a checkpoint
    of the new arm. `carried` is the reason for the outcome.
    """

    query: str
    verdict: str | None = None
    ratio: float | None = None
    lo: float | None = None
    hi: float | None = None
    red: str = ""
    undecided: str = ""
    outcome: str | None = None
    forward: str | None = None
    backward: str | None = None
    carried: str = ""


class RolloutStage(Model):
    """Queries that get the new arm together.

    `night` is the run that measured them. `why` says what was red or undecided in it, `evidence` is
    the path of its page, and `accepted` says who accepted the stage, when and why.
    """

    queries: tuple[str, ...]
    state: StageState = "waiting"
    night: str | None = None
    why: str = ""
    evidence: str = ""
    steps: tuple[QueryStep, ...] = ()
    accepted: str = ""

    @property
    def stopping(self) -> list[QueryStep]:
        """The queries that are red or undecided."""
        return [step for step in self.steps if step.red or step.undecided]

    @property
    def is_done(self) -> bool:
        """Whether the next stage may begin."""
        return self.state in ("green", "accepted")


class Rollout(Model):
    """A rollout of a new arm (`build` with `conf`) in place of an old one (`against`).

    With `go_on_undecided` a stage that is undecided does not stop it: a person has said so.
    """

    name: str
    engine: str
    workload: str
    cluster: str
    build: str
    against: str
    repetitions: int
    go_on_undecided: bool = False
    conf: SparkConf = Field(default_factory=dict)
    begun: datetime = Field(default_factory=lambda: datetime.now(UTC))
    stages: tuple[RolloutStage, ...]

    @property
    def stopped(self) -> RolloutStage | None:
        """The stage that is red or undecided, if there is one."""
        stopping = ("red", "undecided")
        return next((stage for stage in self.stages if stage.state in stopping), None)

    @property
    def next(self) -> int | None:
        """The place of the first stage that is not done; None after the last."""
        return next((i for i, stage in enumerate(self.stages) if not stage.is_done), None)

    @property
    def params(self) -> Mapping[str, object]:
        """The params of its nights, without the queries."""
        same = {"engine", "workload", "cluster", "build", "against", "repetitions"}
        of_rollout = {"candidate_conf": dict(self.conf), "mode": Mode.PAIRED, "compatibility": True}
        return self.model_dump(include=same) | of_rollout

    def with_stage(self, place: int, stage: RolloutStage) -> Rollout:
        """Replace the stage at a place, write the rollout to its file, and return it."""
        stages = (*self.stages[:place], stage, *self.stages[place + 1 :])
        changed = self.model_copy(update={"stages": stages})
        changed.write()
        return changed

    def write(self) -> None:
        """Write the rollout to its file, in one step."""
        write_private(file_of(self.name), self.model_dump_json(indent=1) + "\n")

    @classmethod
    def read(cls, name: str) -> Rollout:
        """Return the rollout of that name; NexmarkError if there is none, or its file is wrong."""
        path = file_of(name)
        try:
            return cls.model_validate_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            known = sorted(each.stem for each in path.parent.glob("*.json"))
            names = f"there are: {', '.join(known)}" if known else "there is none yet"
            raise NexmarkError(f"resume: no rollout {name!r}; {names}") from None
        except ValidationError as errors:
            error = errors.errors(include_url=False)[0]
            place = ".".join(map(str, error["loc"]))
            raise NexmarkError(f"{path}: {place}: {error['msg']}; begin a new rollout") from None


def file_of(name: str) -> Path:
    """Return the path of the file of a rollout; NexmarkError for a name that is no file name."""
    if not _NAME.fullmatch(name):
        raise NexmarkError(f"rollout {name!r}: write a name with letters, digits, ., _ and -")
    return paths.home() / "rollouts" / f"{name}.json"


_ALL = "all"


def parse_stages(text: str, known: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the queries of each stage; `known` has the queries of the workload, in order.

    In the text, `q2-q8` stands for all queries from q2 to q8, and `all` for those that no earlier
    stage has. NexmarkError for an unknown query, for a query that is named twice, and for an empty
    stage.
    """
    stages: list[tuple[str, ...]] = []
    for number, stage in enumerate(text.split(";"), start=1):
        before = {query for each in stages for query in each}
        queries = [query for word in stage.split(",") for query in _named(word.strip(), known)]
        if stage.strip() == _ALL:
            queries = [query for query in known if query not in before]
        where = f"stages: stage {number}"
        if not queries:
            raise NexmarkError(f"{where}: {stage.strip()!r} has no query left; leave it out")
        if twice := [query for query in queries if query in before or queries.count(query) > 1]:
            raise NexmarkError(f"{where}: {twice[0]} is named twice; name it once")
        stages.append(tuple(query for query in known if query in queries))
    return tuple(stages)


def _named(word: str, known: Sequence[str]) -> Iterator[str]:
    """Yield the queries that a word names."""
    if word == _ALL or not word:
        return
    first, dash, last = (query_name(part) for part in word.partition("-"))
    for name in (first, last) if dash else (first,):
        if name not in known:
            raise NexmarkError(f"stages: no query {name!r} in the workload; {suggest(name, known)}")
    if not dash:
        yield first
        return
    if known.index(last) < known.index(first):
        raise NexmarkError(f"stages: {word!r} goes backwards; write {last}-{first}")
    yield from known[known.index(first) : known.index(last) + 1]


_FIRST = ("build", "against", "candidate_conf", "stages", "name", "repetitions", "go_on_undecided")


def rollout_of(asked: RolloutParams, config: Config) -> Rollout:
    """Return a new rollout, or the one to resume, by the params of a person.

    NexmarkError for params that are wrong or do not fit together.
    """
    if asked.resume is None:
        if asked.accept is not None:
            raise NexmarkError("accept: needs resume, the name of a rollout; give both")
        return _begin(asked, config)
    if any(getattr(asked, name) for name in _FIRST):
        raise NexmarkError("resume: a rollout keeps its first params; give no other")
    return Rollout.read(asked.resume)


def _begin(asked: RolloutParams, config: Config) -> Rollout:
    """Return a new rollout, which is written to its file.

    A night of it is planned before that, so that wrong params fail here.
    """
    if asked.build is None and not asked.candidate_conf:
        raise NexmarkError("nothing to roll out: give confs or a build")
    if not asked.stages:
        raise NexmarkError("stages: none are given; write them like 'q0,q1; q2-q8; all'")
    engine = config.engine(asked.engine)
    name = asked.workload or config.comparison_workload(engine)
    workload = pick("workload", name, config.workloads)
    old = str(parse_source(asked.against)) if asked.against else str(engine.build)
    new = Rollout(
        name=asked.name or f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}",
        engine=engine.name,
        workload=workload.name,
        cluster=asked.cluster or config.cluster_of(engine),
        build=str(parse_source(asked.build)) if asked.build else old,
        against=old,
        repetitions=asked.repetitions or config.gate.for_comparison().pairs,
        go_on_undecided=bool(asked.go_on_undecided),
        conf=spark_confs(asked.candidate_conf),
        stages=tuple(
            RolloutStage(queries=queries)
            for queries in parse_stages(asked.stages, workload.queries)
        ),
    )
    if file_of(new.name).exists():
        raise NexmarkError(
            f"name: there is a rollout {new.name} already; resume it, or name another"
        )
    if new.build == new.against and not new.conf:
        raise NexmarkError(f"build: {new.build} is the old arm as well; give another, or confs")
    make_night(config, engine.name, BUILD_DAG_ID, "", {**new.params, "queries": None})
    new.write()
    return new
