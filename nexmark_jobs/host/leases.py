"""The leases of hosts: files that are claimed in one step, whoever else claims at that moment.

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
    """Lock `path` for one process at a time; any end of the process unlocks it.

    The holder may remove the file. `waiting` is called once if another process has it. TimeoutError
    if others have it for `wait_s` seconds; OSError if the file cannot be written.
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
            found = _read(path)
            if found and found["owner"] == owner and not marked(owner):
                path.unlink(missing_ok=True)
            return {}
        if request["do"] != "claim":
            raise SystemExit(f"leases: cannot {request['do']!r}")
        found = _read(path)
        if found and found["owner"] != owner:
            age = time.time() - found["claimed"]
            if 0 <= age < request["hold_s"] or marked(found["owner"]):
                return {"held": {"owner": found["owner"], "night": found["night"], "age_s": age}}
        claimed = {"owner": owner, "night": request["night"], "claimed": time.time()}
        write_whole(path, json.dumps(claimed))
        return {"held": None}


def _read(path: Path) -> dict[str, Any] | None:
    """The lease in `path`, None if there is none; SystemExit with the remedy if it is damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        claimed = float(found["claimed"])
        return {"owner": str(found["owner"]), "night": str(found["night"]), "claimed": claimed}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        held = "so it counts as held; if no night runs on these hosts, remove it"
        raise SystemExit(f"the lease {path} cannot be read ({error}), {held}") from None
