"""The confs that a checkpoint carries: a run that goes on from it takes them from there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_PARTITIONS = "spark.sql.shuffle.partitions"
_FORMATS = {
    "spark.sql.streaming.aggregation.stateFormatVersion": "aggregation format",
    "spark.sql.streaming.join.stateFormatVersion": "join format",
    "spark.sql.streaming.stateStore.encodingFormat": "encoding",
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "checkpoint format",
}
_USUAL = "unsaferow"


def carried_confs(checkpoint: Path) -> dict[str, str]:
    """The confs in the offset log of a checkpoint; empty if no batch was begun."""
    offsets = sorted(
        (path for path in (checkpoint / "offsets").glob("*") if path.name.isdigit()),
        key=lambda path: int(path.name),
    )
    if not offsets:
        return {}
    lines = offsets[0].read_text(encoding="utf-8").splitlines()
    found: dict[str, str] = json.loads(lines[1]).get("conf", {})  # the first line is a version
    return found


def in_words(confs: Mapping[str, str], operators: str) -> str:
    """Provider, partitions, and the formats that matter to `operators`, the names of them."""
    formats = {key: name for key, name in _FORMATS.items() if confs.get(key) not in (None, _USUAL)}
    provider = confs.get(_PROVIDER, "").rsplit(".", 1)[-1].removesuffix("StateStoreProvider")
    said = [provider, f"partitions {confs[_PARTITIONS]}" if _PARTITIONS in confs else ""]
    for key, name in formats.items():
        is_of_all = name in ("encoding", "checkpoint format")
        if is_of_all or name.removesuffix(" format") in operators:
            said.append(f"{name} {confs[key]}")
    return ", ".join(filter(None, said))


def overruled(carried: Mapping[str, str], wanted: Mapping[str, str], who: str) -> list[str]:
    """The confs that `who` has set and the checkpoint overrules, in words."""
    return [
        f"{who} asked for {key}={value}, the checkpoint has {carried[key]}"
        for key, value in wanted.items()
        if key in carried and carried[key] != value
    ]
