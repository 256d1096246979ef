"""A worker that is killed is there again, and what it had started is not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from nexmark.recovery.daemons import WORKER
from nexmark_jobs.host.processes import end, kill, owned, owner_mark, start_detached, with_word
from tests.waiting import wait_for


def test_a_worker_is_killed_with_its_executors_and_started_again(tmp_path: Path) -> None:
    mark, log = owner_mark(tmp_path, "local"), tmp_path / "worker.log"
    child = [sys.executable, "-c", "import time; time.sleep(60)"]
    program = (
        f"import os, subprocess; print(os.environ['OWN'], flush=True); subprocess.run({child})"
    )
    command = [sys.executable, "-c", program, WORKER]
    worker = start_detached(command, {**os.environ, "OWN": "a=b"}, mark, log)
    try:
        wait_for(lambda: len(owned(mark)) == 2, within_s=30)
        before = owned(mark)
        kill(worker, again=True)
        wait_for(lambda: len(owned(mark)) == 2, within_s=30)
        assert not set(before) & set(owned(mark))
        assert len(with_word(mark, WORKER)) == 1
        wait_for(lambda: log.read_text() == "a=b\na=b\n", within_s=30)
        assert not kill(worker, again=True)
    finally:
        end(owned(mark), grace_s=0)
