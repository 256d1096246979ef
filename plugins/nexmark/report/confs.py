"""The Spark confs of the arms of a query, and where they differ; what may be a secret is hidden."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nexmark.config.models import RESERVED_CONFS
from nexmark.store import BASELINE, CANDIDATE
from nexmark.store.errors import without_secrets
from nexmark.store.models import Repetition

HIDDEN = "***"
_SECRET = re.compile(r"secret|password|token|credential|access\.?key", re.IGNORECASE)
_ASSIGNED = re.compile(
    r"((?:secret|password|token|credential|access\.?key)[\w.-]*[=:]\s*)\S+", re.IGNORECASE
)
_FEW = 3


def confs_by_arm(
    repetitions: Iterable[Repetition], most: int | None = _FEW
) -> dict[str, dict[str, Any]]:
    """Return by arm the Spark confs that are not the defaults.

    What differs from one repetition to the next is a list; one of more than ``most`` is only told.
    """
    return {
        arm: {key: _one_or_few(values, most) for key, values in sorted(confs.items())}
        for arm, confs in sorted(_values(repetitions).items())
    }


def conf_differences(repetitions: Iterable[Repetition]) -> list[dict[str, Any]]:
    """Return the confs that candidate and baseline do not have in common, by key.

    ``set_by_harness`` marks what the benchmark itself has to set apart, a port or a directory say;
    the others come first.
    """
    values = _values(repetitions)
    if not {CANDIDATE, BASELINE} <= values.keys():
        return []
    ours, theirs = values[CANDIDATE], values[BASELINE]
    found = [
        {
            "key": key,
            CANDIDATE: _one_or_few(ours.get(key, ())),
            BASELINE: _one_or_few(theirs.get(key, ())),
            "set_by_harness": any(key == x or key.startswith(f"{x}.") for x in RESERVED_CONFS),
        }
        for key in sorted({*ours, *theirs})
        if set(ours.get(key, ())) != set(theirs.get(key, ()))
    ]
    return sorted(found, key=lambda x: (x["set_by_harness"], x["key"]))


def hidden(key: str, value: str) -> str:
    """Return a value as it may be shown under a key."""
    if key and _SECRET.search(key):
        return HIDDEN
    if ":" not in value and "=" not in value:
        return value  # neither a URL nor an assignment
    return _ASSIGNED.sub(rf"\1{HIDDEN}", without_secrets(value))


def without_any_secret(value: Any) -> Any:
    """Return plain data in which no text has a password, whoever wrote it there."""
    if isinstance(value, str):
        return hidden("", value)
    if isinstance(value, Mapping):
        return {key: without_any_secret(x) for key, x in value.items()}
    if isinstance(value, list | tuple):
        return [without_any_secret(x) for x in value]
    return value


def _values(repetitions: Iterable[Repetition]) -> dict[str, dict[str, list[str]]]:
    """Return by arm and key the values that its repetitions had."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in repetitions:
        confs: Mapping[Any, Any] = dict(row.confs) if row.confs else {}
        for key, value in confs.items():
            values = found.setdefault(row.arm, {}).setdefault(str(key), [])
            shown = hidden(str(key), str(value))
            if shown not in values:
                values.append(shown)
    return found


def _one_or_few(values: Sequence[str], most: int | None = None) -> Any:
    if not values:
        return None
    if len(values) == 1:
        return values[0]
    if most is None or len(values) <= most:
        return list(values)
    return f"{len(values)} values, as {values[0]}"


__all__ = ["HIDDEN", "conf_differences", "confs_by_arm", "hidden", "without_any_secret"]
