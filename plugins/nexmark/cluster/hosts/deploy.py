"""Bring a release to all hosts at once: only the missing bytes, and complete or not at all.

`nexmark_jobs.host.releases` keeps the releases on a host. A release travels as an uncompressed tar
(over the networks of clusters, compressing would take longer than sending).
"""

import hashlib
import os
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from nexmark.cluster.hosts.host import Host, on_all
from nexmark.cluster.hosts.ssh import HostError, HostUnreachable
from nexmark.cluster.lease import ClusterError
from nexmark.engines.build import Manifest, scan
from nexmark.model import Say
from nexmark_jobs.host import releases

_LOOK_S = 120
_SEND_S = 1800
_PRUNE_S = 120
_ATTEMPTS = 3
_CHUNK = 256 * 1024
#: The time of all files in an archive: the same content makes the same archive.
_MTIME = 315532800  # 1980-01-01


@dataclass(frozen=True)
class DeployOutcome:
    """A transfer of a release to a host."""

    sent_bytes: int  # 0 if the host had the release
    resumed_bytes: int  # what the host had of it from an earlier, interrupted transfer
    seconds: float


def deploy_release(
    hosts: Sequence[Host], root: str, source: Path, name: str, digest: str, *, keep: int, say: Say
) -> dict[str, DeployOutcome | HostError]:
    """Bring the directory `source` to every host, as `<root>/releases/<name>`.

    Args:
        hosts: The hosts.
        root: The package's own directory on a host.
        source: The directory to bring.
        name: The name of the release.
        digest: The `Manifest.id` of the directory.
        keep: Each host keeps this number of last used releases of a kind (`name` up to the last
            dash).
        say: Called with each line of progress.

    Returns:
        The transfers by host.

    Raises:
        ClusterError: `source` does not have the digest.
    """
    with closing(_Archive(source, digest)) as archive:
        return on_all(hosts, lambda host: _deploy(host, root, archive, name, keep, say))


def _deploy(
    host: Host, root: str, archive: "_Archive", name: str, keep: int, say: Say
) -> DeployOutcome:
    """Bring a release to one host, in several attempts, and remove old releases there.

    Args:
        host: The host.
        root: The package's own directory on the host.
        archive: The release.
        name: Its name.
        keep: The number of last used releases of its kind that stay.
        say: Called with each line of progress.
    """
    begin = time.monotonic()
    sent = resumed = 0
    known: dict[str, Any] = {"root": root, "name": name, "digest": archive.digest}
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            present = host.call(releases, {"do": "look", **known}, timeout_s=_LOOK_S)
            if present["whole"]:
                break
            offset = archive.agreed(present["part_bytes"], present["part_sha256"])
            resumed = max(resumed, offset)
            request = {"do": "receive", **known, "offset": offset, **archive.description}
            host.call(releases, request, timeout_s=_SEND_S, data=archive.chunks(offset))
            sent += archive.description["bytes"] - offset
            break
        except HostUnreachable as error:
            if attempt == _ATTEMPTS:
                raise
            say(f"{error}; attempt {attempt + 1} of {_ATTEMPTS}")
    prune = {"do": "prune", "root": root, "name": name, "keep": keep}
    host.call(releases, prune, timeout_s=_PRUNE_S)
    seconds = time.monotonic() - begin
    how = f"sent, {sent / 1e6:.0f} MB in {seconds:.1f} s" if sent else "is there"
    say(f"{host.name}: {name} {how}")
    return DeployOutcome(sent, resumed, seconds)


class _Archive:
    """The tar of a directory in an unnamed file, made when the first host needs it."""

    def __init__(self, source: Path, digest: str) -> None:
        self.source = source
        self.digest = digest
        self._lock = threading.Lock()
        self._file: IO[bytes] | None = None
        self._description: dict[str, Any] = {}

    def close(self) -> None:
        if self._file:
            self._file.close()

    @property
    def description(self) -> dict[str, Any]:
        """Return its size `bytes` and `sha256`, and the `unpacked_bytes`."""
        self._made()
        return self._description

    def agreed(self, length: int, sha256: str) -> int:
        """Return `length` if the first `length` bytes have this hash, else 0."""
        if not 0 < length <= self.description["bytes"]:
            return 0
        hashed, descriptor = hashlib.sha256(), self._made().fileno()
        for offset in range(0, length, _CHUNK):
            hashed.update(os.pread(descriptor, min(_CHUNK, length - offset), offset))
        return length if hashed.hexdigest() == sha256 else 0

    def chunks(self, offset: int) -> Iterator[bytes]:
        """Yield the bytes from `offset` on; several hosts may read at the same time."""
        descriptor = self._made().fileno()
        while data := os.pread(descriptor, _CHUNK, offset):
            offset += len(data)
            yield data

    def _made(self) -> IO[bytes]:
        with self._lock:
            if self._file is None:
                try:
                    self._file = self._make()
                except OSError as error:
                    said = f"it cannot be packed beside itself: {error}; make room there"
                    raise ClusterError(f"{self.source}: {said}") from None
            return self._file

    def _make(self) -> IO[bytes]:
        manifest = scan(self.source)
        if manifest.id != self.digest:
            differs = f"its digest is {manifest.id} and not {self.digest}, so it was changed"
            raise ClusterError(f"{self.source}: {differs}; remove it, it is made again")
        file = tempfile.TemporaryFile(dir=self.source.parent)  # noqa: SIM115 - `close`
        try:
            _pack(self.source, manifest, file)
            file.seek(0)
            self._description = {
                "bytes": os.fstat(file.fileno()).st_size,
                "sha256": hashlib.file_digest(file, "sha256").hexdigest(),
                "unpacked_bytes": sum(record.size for record in manifest.files.values()),
            }
        except BaseException:
            file.close()
            raise
        return file


def _pack(source: Path, manifest: Manifest, target: IO[bytes]) -> None:
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, record in sorted(manifest.files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mtime = record.size, _MTIME
            member.mode = 0o755 if os.access(source / name, os.X_OK) else 0o644
            with (source / name).open("rb") as content:
                archive.addfile(member, content)
    target.flush()
