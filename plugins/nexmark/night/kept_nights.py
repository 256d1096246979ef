"""The nights whose run directories are still there, by their names, and whether one still runs."""

import difflib
import json

from nexmark.config import paths
from nexmark.errors import NexmarkError
from nexmark.model import LATEST, RunKey
from nexmark.night.deployments import Deployments
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import RunDirectory

_LISTED = 5


def kept_night(name: str, engine: str | None = None) -> Night:
    """Return the night of a name, or of what is unique in it; NexmarkError where there is none.

    `latest` is the newest night, of `engine` if it is given.
    """
    kept = _names()
    if name == LATEST and kept:
        nights = (_read(whole, *ids) for whole, ids in kept.items())
        if night := next((each for each in nights if engine in (None, each.engine.name)), None):
            return night
        raise NexmarkError(f"run latest: no night of engine {engine!r} is kept; give its name")
    if name in kept:
        return _read(name, *kept[name])
    for matches in (
        [whole for whole, (_, run) in kept.items() if name == run],
        [whole for whole in kept if name and name in whole],
    ):
        if len(matches) == 1:
            return _read(matches[0], *kept[matches[0]])
        if matches:
            raise NexmarkError(f"run {name!r} may be any of: {_listed(matches)}; give the whole")
    where = paths.home() / "runs"
    if not kept:
        raise NexmarkError(f"run {name!r}: no night is kept in {where}; NEXMARK_HOME names another")
    near = difflib.get_close_matches(name, kept, n=_LISTED, cutoff=0.3) or list(kept)
    raise NexmarkError(f"run {name!r} is not kept in {where}; the nearest are: {_listed(near)}")


def check_over(night: Night) -> None:
    """Refuse a night that was not deployed, and one that still has its cluster; NexmarkError."""
    Deployments.read(night)
    for cluster in night.clusters.values():
        lease = cluster.holder()
        if lease is None or (lease.dag_id, lease.run_id) != (night.dag_id, night.run_id):
            continue
        ended = [
            process
            for process in (lease.holder, lease.command)
            if process is not None and not process.alive
        ]
        if not ended:
            raise NexmarkError(
                f"run {night.name}: has cluster {cluster.config.name} still; wait until it has"
                " ended, or clear its task stop_cluster if it has"
            )


def _names() -> dict[str, tuple[str, str]]:
    """Return the DAG and run ids by the name of the night, newest first."""
    ids: dict[str, tuple[str, str]] = {}
    for directory in RunDirectory.planned():
        dag, run = _ids(directory)
        ids[str(RunKey(dag, run))] = dag, run
    return ids


def _ids(directory: RunDirectory) -> tuple[str, str]:
    """Return the ids in a plan; of a damaged one what its directories are named."""
    try:
        plan = json.loads(directory.night.read_text(encoding="utf-8"))
        return str(plan["dag_id"]), str(plan["run_id"])
    except (OSError, ValueError, TypeError, KeyError):
        return directory.path.parent.name, directory.path.name


def _read(name: str, dag: str, run: str) -> Night:
    try:
        return Night.read(dag, run)
    except (ValueError, AttributeError, OSError) as error:  # pydantic's is a ValueError
        path = RunDirectory.of(dag, run).night
        why = f"{error}".splitlines()[0]
        raise NexmarkError(
            f"run {name}: {path} cannot be read ({why}); it is damaged, or of another version"
        ) from None


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
