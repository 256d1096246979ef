"""When the nights that share a cluster have an answer: each waits for the one before it."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

from nexmark.config import Config
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import RunDirectory

#: What `starter_of` calls Airflow's schedule.
SCHEDULED = "scheduled"
_REMEDY = "budget_minutes in gate.yaml, another schedule or fewer queries in engines.yaml"


def answers_line(night: Night, config: Config, now: datetime) -> str:
    """Return when tonight's answers are due on the cluster of a scheduled night.

    A night is taken to last as long as the last scheduled one of its engine, or as this engine's
    if there is none. "" for a night that a person started, for one that has its cluster for itself,
    and where no earlier night says how long it lasts.

    Args:
        night: The night, which begins now.
        config: The configuration, with the schedules.
        now: The time (UTC).
    """
    ours = _length(night.engine.dag_id)
    if night.started_by != SCHEDULED or ours is None:
        return ""
    others = sorted(_starts(night, config, now))
    if not others:
        return ""
    free = now + ours
    due = [f"{night.engine.name} {free:%H:%M}"]
    waiting: list[str] = []
    for start, name, dag_id in others:
        if free > start:
            waiting.append(name)
        free = max(start, free) + (_length(dag_id) or ours)
        due.append(f"{name} {free:%H:%M}")
    line = f"cluster {night.cluster.name}: answers are due at {', '.join(due)} UTC"
    if not waiting:
        return line
    return f"{line}; {', '.join(waiting)} will have to wait for the cluster: change {_REMEDY}"


def _starts(night: Night, config: Config, now: datetime) -> Iterator[tuple[datetime, str, str]]:
    """Yield the next night within a day of each other engine on the cluster: start, name, DAG."""
    for engine in config.engines.values():
        start = engine.next_start(now)
        is_other = engine.name != night.engine.name
        on_cluster = config.cluster_of(engine) == night.cluster.name
        if is_other and on_cluster and start and start < now + timedelta(days=1):
            yield start, engine.name, engine.dag_id


def _length(dag_id: str) -> timedelta | None:
    """Return how long the applications of the newest scheduled night of a DAG took together."""
    for files in RunDirectory.planned(dag_id):
        spent = files.time_spent()
        if spent and json.loads(files.night.read_text()).get("started_by") == SCHEDULED:
            return timedelta(seconds=spent.whole_s)
    return None
