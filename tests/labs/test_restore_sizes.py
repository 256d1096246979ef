"""Restarts by size that are interrupted: nothing is measured twice."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from nexmark.engines import Build
from nexmark.errors import NexmarkError
from nexmark.labs import restore_sizes
from nexmark.labs.restore_sizes import Growth, Restarted, restarts
from nexmark.recovery.remote_storage import RemoteStorage

BUILD = Build("b", "4.3.0", Path("/spark"), "pypi:4.3.0")


class _NotedRuns(restore_sizes._Runs):
    """Runs that run no Spark, and note what they were asked to do."""

    calls: list[str] = []  # noqa: RUF012

    def grow(self, checkpoint: Path, size_mb: int) -> tuple[float, int]:
        checkpoint.mkdir(exist_ok=True)
        grown = checkpoint / "grown"
        found = [*(grown.read_text().split() if grown.exists() else []), str(size_mb)]
        grown.write_text(" ".join(found))
        self.calls.append(f"grow {' '.join(found)}")
        return float(size_mb), 10

    def with_changelogs(self, checkpoint: Path) -> int:
        return 15

    def restart(self, checkpoint: Path, mode: str, place: str, state_mb: float) -> Restarted:
        assert (checkpoint / "grown").exists()
        self.calls.append(f"{checkpoint.name} {place}")
        return Restarted(mode, place, state_mb, 1.0, 2.0, 3.0)


def test_an_interrupted_table_goes_on_after_its_last_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore_sizes, "_Runs", _NotedRuns)
    monkeypatch.setattr(_NotedRuns, "calls", calls := [])
    growth, keep = Growth("q20", 1000, 1, 100, 2, RemoteStorage()), tmp_path / "keep"
    said: list[str] = []

    def ask() -> list[Restarted]:
        return list(restarts(BUILD, growth, [64, 128], {}, said.append, keep))

    whole = list(restarts(BUILD, growth, [64, 128], {}, said.append))
    asked = calls.copy()
    assert asked[0] == "grow 64"
    assert "grow 64 128" in asked, "the state of the size before grows further"
    assert len(whole) == 16
    for taken in (3, 11):
        calls.clear()
        found = restarts(BUILD, growth, [64, 128], {}, said.append, keep)
        assert list(islice(found, taken)) == whole[:taken]
        found.close()  # type: ignore[attr-defined]
    calls.clear()
    assert ask() == whole
    assert calls == asked[-5:], "all but the restarts of before"
    calls.clear()
    assert ask() == whole
    assert calls == []
    other = Growth("q20", 1000, 2, 100, 2, RemoteStorage())
    with pytest.raises(NexmarkError, match="name another file"):
        next(restarts(BUILD, other, [64], {}, said.append, keep))
