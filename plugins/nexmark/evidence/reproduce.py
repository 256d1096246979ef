"""The command that measures a query of a night again, as a line for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from nexmark.model import SUITE
from nexmark.secrets import shown as hidden
from nexmark.secrets import without_secrets
from nexmark.store import Store
from nexmark.store.table_rows import NightRow

_FEWEST_PAIRS = 3
_PROGRAM = ("nexmark", "build")


def reproduce(store: Store, night: NightRow, query: str) -> str:
    """Return the line that measures the candidate against what ``query`` was compared with.

    Where the night compared it with nothing, it measures the candidate alone. A
    password in the URL of a build is not shown: it has to be put in again.
    """
    values = {
        "BUILD": store.build(night.build_id).source,
        "AGAINST": _against(store, night, query),
        "QUERIES": ",".join(night.queries) if query == SUITE else query,
        "WORKLOAD": night.workload,
        "CLUSTER": night.cluster,
        "ENGINE": night.engine,
    }
    if night.repetitions >= _FEWEST_PAIRS or not values["AGAINST"]:
        values["REPETITIONS"] = str(night.repetitions)
    shown = {name: without_secrets(value) for name, value in values.items() if value}
    confs = {str(key): hidden(str(key), str(x)) for key, x in (night.candidate_conf or {}).items()}
    line = _command(shown, confs)
    is_broken = any(row.red and row.query == query for row in store.compatibility(night.id))
    return f"{line} --compatibility" if is_broken else line


def _against(store: Store, night: NightRow, query: str) -> str:
    """Return the build that a query was compared with, "" for none."""
    build = (night.baselines or {}).get(query)
    if query == SUITE:
        build = next(iter((night.baselines or {}).values()), None)
    if build is None:
        runs = {x.query: x.baseline_run for x in store.verdicts(night.id) if x.decides}
        run = runs.get(query)
        build = store.night(run).build_id if run else None
    return store.build(str(build)).source if build else ""


def _command(values: Mapping[str, str], confs: Mapping[str, str]) -> str:
    words = [*_PROGRAM]
    for name, value in values.items():
        words += [f"--{name.lower()}", value]
    for key, value in confs.items():
        words += ["--candidate-conf", f"{key}={value}"]
    return shlex.join(words)
