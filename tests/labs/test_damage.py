"""Each kind of damage changes what it says, and nothing else."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from nexmark.errors import NexmarkError
from nexmark.labs.damage import DAMAGES, damage

LAST = 2


def checkpoint(root: Path, state: str) -> Path:
    """A checkpoint of three batches, with the files that a state store has."""
    for log in ("offsets", "commits"):
        (root / log).mkdir(parents=True)
        for batch in range(LAST + 1):
            (root / log / str(batch)).write_text(f"v1\n{batch}")
    (root / "metadata").write_text('{"id":"x"}')
    store = root / "state" / "0" / "1"
    (store / "SSTs").mkdir(parents=True)
    (root / "state" / "0" / "_metadata").mkdir()
    (root / "state" / "0" / "_metadata" / "metadata").write_text("v1")
    for version in range(1, LAST + 2):
        if state == "zip":
            with zipfile.ZipFile(store / f"{version}.zip", "w") as archive:
                named = [{"dfsSstFileName": f"{name}-{version}.sst"} for name in ("small", "big")]
                archive.writestr("metadata", "v1\n" + json.dumps({"sstFiles": named}))
            (store / "SSTs" / f"small-{version}.sst").write_bytes(b"s" * 10)
            (store / "SSTs" / f"big-{version}.sst").write_bytes(b"b" * 99)
        else:
            (store / f"{version}.{state}").write_bytes(b"d" * 50)
    return root


def contents(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file()
    }


ZIP, DELTA, SST = "state/0/1/3.zip", "state/0/1/3.delta", "state/0/1/SSTs/big-3.sst"


@pytest.mark.parametrize(
    ("kind", "state", "changed"),
    [
        ("offsets truncated", "delta", "offsets/2"),
        ("offsets missing", "delta", "offsets/2"),
        ("offsets of the batch before", "delta", "offsets/2"),
        ("commit half-written", "delta", "commits/2"),
        ("commit empty", "delta", "commits/2"),
        ("commit missing", "delta", "commits/2"),
        ("metadata missing", "delta", "metadata"),
        ("operator metadata missing", "delta", "state/0/_metadata/metadata"),
        ("state file missing", "zip", ZIP),
        ("state file missing", "delta", DELTA),
        ("state file before it missing", "delta", "state/0/1/2.delta"),
        ("state file before it missing", "zip", ""),
        ("state file truncated", "zip", ZIP),
        ("state files of the batch before", "zip", ZIP),
        ("state file empty", "changelog", "state/0/1/3.changelog"),
        ("state file zeros", "zip", ZIP),
        ("state file byte flipped", "delta", DELTA),
        ("SST missing", "zip", SST),
        ("SST missing", "delta", ""),
        ("SST byte flipped", "zip", SST),
        ("SST byte flipped", "changelog", ""),
    ],
)
def test_a_kind_of_damage(tmp_path: Path, kind: str, state: str, changed: str) -> None:
    root = checkpoint(tmp_path, state)
    before = contents(root)
    assert damage(kind, root) == bool(changed)
    after = contents(root)
    different = {name for name in before if after.get(name) != before[name]}
    assert different == ({changed} if changed else set())
    assert ("missing" in kind) == (len(after) < len(before)) or not changed


def test_every_kind_is_tested() -> None:
    tested = next(m for m in test_a_kind_of_damage.pytestmark if m.name == "parametrize")
    assert {case[0] for case in tested.args[1]} == set(DAMAGES)


def test_a_stale_file_has_the_content_of_the_batch_before(tmp_path: Path) -> None:
    root = checkpoint(tmp_path, "zip")
    damage("state files of the batch before", root)
    assert (root / ZIP).read_bytes() == (root / "state/0/1/2.zip").read_bytes()


def test_a_checkpoint_without_a_batch_cannot_be_damaged(tmp_path: Path) -> None:
    with pytest.raises(NexmarkError, match="no batch is committed"):
        damage("commit empty", tmp_path)
