"""Keep releases on a host: Spark builds and jobs, each in a directory named by its content.

    <root>/releases/<name>/              a complete release: renamed to this at the end
    <root>/releases/<name>/.release.json its digest; touched on use
    <root>/releases/.<name>-PID-TICKS/   a release that this process is unpacking
    <root>/incoming/<name>.tar.part      a release on its way; an interrupted copy is resumed

By `do` of the request:

    look    {root, name, digest} -> {whole, part_bytes, part_sha256}
    receive {root, name, digest, offset, bytes, sha256, unpacked_bytes} and the tar from `offset`
            on as data -> {}
    prune   {root, name, keep}   -> {removed: [name]}: of the kind of `name` (spark, jobs)

The digest is the one of `nexmark.engines.build`. This program computes it again from the
unpacked files, and before each night from all files of the release, because a byte that a disk has
changed keeps size and time. It takes about a second for the 500 MB of Spark, on all hosts at once.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import select
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Any, BinaryIO

from nexmark_jobs.host.leases import locked
from nexmark_jobs.host.processes import OWNER_VARIABLE, Process, environment_of, identify, pids

_INDEX = ".release.json"
_PART = ".tar.part"
_CHUNK = 1 << 20
#: Disk space that must stay free after a release is unpacked.
_SPARE_BYTES = 64 << 20
#: A copy that receives nothing for this time has lost its sender.
_IDLE_S = 30.0
#: How long to wait for an earlier copy to notice the loss and release the lock.
_LOCK_S = _IDLE_S + 10.0


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Carry the request out; see the module."""
    do, root = request["do"], Path(request["root"])
    if do == "look":
        return look(root, request["name"], request["digest"])
    if do == "receive":
        return _receive(request, root, sys.stdin.buffer)
    if do == "prune":
        return {"removed": prune(root, request["name"], request["keep"])}
    raise SystemExit(f"releases: cannot {do!r}")


def look(root: Path, name: str, digest: str) -> dict[str, Any]:
    """Return whether the release is complete (then it counts as used), else its partial copy.

    Removes the remains of interrupted copies of other releases.
    """
    sweep(root, but=name)
    if _is_whole(root / "releases" / name, digest):
        os.utime(root / "releases" / name / _INDEX)
        return {"whole": True, "part_bytes": 0, "part_sha256": ""}
    part = _part(root, name)
    size, sha256 = (part.stat().st_size, _sha256(part)) if part.is_file() else (0, "")
    return {"whole": False, "part_bytes": size, "part_sha256": sha256}


def prune(root: Path, name: str, keep: int) -> list[str]:
    """Remove all releases of the kind of `name`, except the `keep` most recently used ones.

    Also keeps `name` itself, and every release that a living process of ours has in its command or
    environment.
    """

    def last_use(release: Path) -> float:
        try:
            return (release / _INDEX).stat().st_mtime
        except OSError:
            return 0.0

    kind = name.rpartition("-")[0]
    like = (root / "releases").glob(f"{kind}-*")
    releases = [release for release in like if release.name.rpartition("-")[0] == kind]
    releases.sort(key=last_use, reverse=True)
    removed = []
    for directory in releases[keep:]:
        if directory.name != name and not in_use(directory):
            _remove(directory)
            removed.append(directory.name)
    return removed


def sweep(root: Path, but: str = "") -> list[str]:
    """Remove the remains of interrupted copies, except active copies and copies of `but`."""
    removed = []
    for path in sorted((root / "incoming").glob(f"*{_PART}")):
        if path == _part(root, but):
            continue
        with contextlib.suppress(TimeoutError, FileNotFoundError), locked(path, wait_s=0):
            path.unlink()
            removed.append(str(path))
    for path in sorted((root / "releases").glob(".*")):
        maker = path.name.split("-")[-2:]
        if all(number.isdigit() for number in maker) and not Process(*map(int, maker)).alive:
            shutil.rmtree(path, ignore_errors=True)
            removed.append(str(path))
    return removed


def _receive(request: dict[str, Any], root: Path, source: BinaryIO) -> dict[str, Any]:
    name, digest = request["name"], request["digest"]
    part = _part(root, name)
    try:
        for directory in (part.parent, root / "releases"):
            directory.mkdir(parents=True, exist_ok=True)
        _see_room(root, request["bytes"] - request["offset"], request["unpacked_bytes"])
        with locked(part, _LOCK_S):
            if _is_whole(root / "releases" / name, digest):  # another copy was first
                part.unlink()
                return {}
            _append(part, request["offset"], source)
            _check(part, request["bytes"], request["sha256"])
            try:
                _install(part, root / "releases" / name, digest)
            finally:
                part.unlink()
    except TimeoutError:
        raise SystemExit(f"another copy of {name} goes on; wait until it has ended") from None
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise SystemExit(f"{name}: {error}; see {root} and who owns it") from None
        part.unlink(missing_ok=True)
        raise SystemExit(f"the disk of {root} is full; make room, then try again") from None
    return {}


def _see_room(root: Path, incoming_bytes: int, release_bytes: int) -> None:
    """Raise SystemExit if the disk has no room for the archive and the release together."""
    incoming, releases = root / "incoming", root / "releases"
    if incoming.stat().st_dev == releases.stat().st_dev:
        needs = {root: incoming_bytes + release_bytes}
    else:
        needs = {incoming: incoming_bytes, releases: release_bytes}
    for place, size in needs.items():
        free, needed = shutil.disk_usage(place).free >> 20, (size + _SPARE_BYTES) >> 20
        if free < needed:
            raise SystemExit(f"{place} has {free} MiB free and needs {needed} MiB; make room there")


def _append(part: Path, offset: int, source: BinaryIO) -> None:
    """Write the data after the first `offset` bytes, until the sender closes."""
    with part.open("r+b") as file:
        file.truncate(offset)
        file.seek(offset)
        while select.select([source], [], [], _IDLE_S)[0]:
            data = source.read1(_CHUNK)  # type: ignore[attr-defined]
            if not data:
                return
            file.write(data)
    raise SystemExit(f"nothing has come for {_IDLE_S:.0f} s; see the network")


def _check(part: Path, size: int, sha256: str) -> None:
    length = part.stat().st_size
    if length < size:
        raise SystemExit(f"the copy was interrupted after {length} of {size} bytes; try again")
    if length != size or _sha256(part) != sha256:
        part.unlink()
        raise SystemExit("received bytes are not the sent ones (SHA-256); try again, then see disk")


def _install(part: Path, target: Path, digest: str) -> None:
    me = identify(os.getpid()) or Process(os.getpid(), 0)
    temporary = target.with_name(f".{target.name}-{me.pid}-{me.start_ticks}")
    try:
        _unpack(part, temporary)
        if _digest(temporary) != digest:
            raise SystemExit(f"{target.name} has another digest here than {digest}; deploy again")
        (temporary / _INDEX).write_text(json.dumps({"digest": digest}))
        os.sync()
        if target.exists():
            _remove(target)
        temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _unpack(part: Path, target: Path) -> None:
    with tarfile.open(part, "r:") as archive:
        for member in archive:
            path = target / member.name
            source = archive.extractfile(member) if member.isreg() else None
            if source is None or ".." in path.parts or Path(member.name).is_absolute():
                raise SystemExit(f"{member.name}: only files below a release belong into it")
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                shutil.copyfileobj(source, file)
            path.chmod(member.mode & 0o755)


def _digest(release: Path) -> str:
    """Return the digest of all files but the index and compiled Python files, which may change."""
    lines = []
    for path in release.rglob("*"):
        name = path.relative_to(release).as_posix()
        if name != _INDEX and path.is_file() and "__pycache__" not in path.parts:
            lines.append(f"{name}\0{_sha256(path)}\n")
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()[:16]


def _is_whole(release: Path, digest: str) -> bool:
    try:
        index = json.loads((release / _INDEX).read_text())
        return bool(index["digest"] == digest == _digest(release))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _remove(release: Path) -> None:
    """Remove a release, its index first: what an interruption leaves never looks complete."""
    (release / _INDEX).unlink(missing_ok=True)
    shutil.rmtree(release)


def in_use(release: Path) -> bool:
    """Return whether a living process of this package has it in its command or environment."""
    wanted = str(release).encode()
    for pid in pids():
        with contextlib.suppress(OSError):
            environment = environment_of(pid)
            if OWNER_VARIABLE.encode() not in environment:
                continue
            if wanted in environment + Path(f"/proc/{pid}/cmdline").read_bytes():
                return True
    return False


def _part(root: Path, name: str) -> Path:
    return root / "incoming" / f"{name}{_PART}"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
