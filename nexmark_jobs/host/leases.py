"""Claim and release hosts: a lease is a file that one installation at a time can write.

As a program on the host of the master, where installations on several machines share the hosts:

    claim {path, owner, night, hold_s}  -> {held: {owner, night, age_s} or null}
    release {path, owner}               -> {}

`owner` begins the marks of all processes of one installation; `night` is for messages. Another
owner's lease counts while a process of that owner runs on this host, and for `hold_s` seconds after
it was claimed last (a night has no process here before its master starts).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from nexmark_jobs.host.processes import marked
from nexmark_jobs.host.whole_files import write_whole

_POLL_S = 0.02
_LOCK_WAIT_S = 30.0


@contextlib.contextmanager
def locked(
    path: Path, wait_s: float = _LOCK_WAIT_S, waiting: Callable[[], None] | None = None
) -> Iterator[None]:
    """Lock `path` for one process at a time; the end of the process unlocks it.

    The holder may remove the file.

    Args:
        path: the file of the lock; it is made.
        wait_s: seconds to wait for other processes.
        waiting: called once if another process has the lock.

    Raises:
        TimeoutError: other processes had the lock all the time.
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + wait_s
    while True:
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if waiting:
                    waiting()
                waiting = None
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{path} is locked by another process") from None
            else:
                if os.fstat(file.fileno()).st_nlink:  # the last holder has not removed it
                    yield
                    return
                continue
        time.sleep(_POLL_S)


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Carry the request out; see the module."""
    path, owner = Path(request["path"]), request["owner"]
    with locked(path.with_name(f"{path.name}.lock")):
        if request["do"] == "release":
            lease = _read(path)
            if lease and lease["owner"] == owner and not marked(owner):
                path.unlink(missing_ok=True)
            return {}
        if request["do"] != "claim":
            raise SystemExit(f"leases: cannot {request['do']!r}")
        lease = _read(path)
        if lease and lease["owner"] != owner:
            age = time.time() - lease["claimed"]
            if 0 <= age < request["hold_s"] or marked(lease["owner"]):
                return {"held": {"owner": lease["owner"], "night": lease["night"], "age_s": age}}
        claimed = {"owner": owner, "night": request["night"], "claimed": time.time()}
        write_whole(path, json.dumps(claimed))
        return {"held": None}


def _read(path: Path) -> dict[str, Any] | None:
    """Return the lease in `path`, or None; SystemExit with the remedy if it is damaged."""
    try:
        lease = json.loads(path.read_text(encoding="utf-8"))
        claimed = float(lease["claimed"])
        return {"owner": str(lease["owner"]), "night": str(lease["night"]), "claimed": claimed}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        held = "so it counts as held; if no night runs on these hosts, remove it"
        raise SystemExit(f"the lease {path} cannot be read ({error}), {held}") from None
