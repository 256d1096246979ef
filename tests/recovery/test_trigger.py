"""When a kill is due."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

from nexmark.recovery.kill_plan import Aim, Kill, Trigger


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("v1")


def trigger(root: Path, aim: Aim, *, since: float = 0.0, delay: float = 0.0) -> Trigger:
    kill = Kill(after_batch=0, delay=delay, aim=aim)
    return Trigger(kill, root / "checkpoint", root / "scratch", since, random.Random(1))


def test_a_kill_waits_for_the_commit_before_it(tmp_path: Path) -> None:
    waiting = trigger(tmp_path, "any")
    write(tmp_path, "checkpoint/offsets/0")
    assert not waiting.is_due()
    write(tmp_path, "checkpoint/commits/0")
    assert waiting.is_due()


def test_a_kill_waits_for_its_delay_after_the_commit(tmp_path: Path) -> None:
    write(tmp_path, "checkpoint/commits/0")
    waiting = trigger(tmp_path, "any", delay=0.2)
    assert not waiting.is_due()
    time.sleep(0.25)
    assert waiting.is_due()


def test_a_kill_of_an_upload_waits_for_it(tmp_path: Path) -> None:
    write(tmp_path, "checkpoint/commits/0", "checkpoint/offsets/1")
    waiting = trigger(tmp_path, "upload")
    assert not waiting.is_due()
    write(tmp_path, "checkpoint/state/0/0/.2.zip.1.tmp")
    assert waiting.is_due()


def test_a_kill_of_a_restore_waits_for_a_store_that_is_not_open(tmp_path: Path) -> None:
    write(tmp_path, "checkpoint/commits/0")
    waiting = trigger(tmp_path, "restore", since=time.time() + 1)
    assert not waiting.is_due()
    write(tmp_path, "scratch/spark-1/StateStoreId-1/workingDir-1/1.sst")
    assert not waiting.is_due(), "a store from before"
    since = time.time() - 1
    write(tmp_path, "checkpoint/commits/0")
    os.utime(tmp_path / "checkpoint/commits/0", (since - 9, since - 9))
    assert trigger(tmp_path, "restore", since=since).is_due()


def test_a_kill_of_a_restart_comes_within_seconds_of_it(tmp_path: Path) -> None:
    assert not trigger(tmp_path, "restart", since=time.time()).is_due()
    assert trigger(tmp_path, "restart", since=time.time() - 13).is_due()
