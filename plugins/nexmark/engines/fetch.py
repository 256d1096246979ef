"""Bringing a Spark build into a directory: a PyPI release, or a tarball with its SHA-512."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import IO

from nexmark.engines.build import BuildError
from nexmark.engines.prerequisites import disk_problem

Say = Callable[[str], None]

_CHUNK = 1 << 20
_TIMEOUT_S = 60
_INSTALL_TIMEOUT_S = 1800
#: Download, wheel and unpacked files of one release, bytes.
_RELEASE_BYTES = 2_500_000_000
#: Unpacked size / packed size of a Spark tarball, at most.
_EXPANSION = 2


def fetch_release(version: str, target: Path, say: Say) -> None:
    """Install `pyspark==version` without its dependencies into the new directory `target`."""
    _need_space(target, _RELEASE_BYTES)
    say(f"fetching pyspark {version} from the package index")
    requirement = f"pyspark=={version}"
    command = [*_installer(), "--no-deps", "--target", str(target), requirement]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise BuildError(
            f"{requirement}: not installed within {_INSTALL_TIMEOUT_S} s; check the network"
        ) from None
    if run.returncode != 0:
        reason = " ".join((run.stderr or run.stdout).split())[-300:]
        raise BuildError(
            f"{requirement}: cannot be installed: {reason}; check the version and the network"
        )


def _installer() -> list[str]:
    """uv beside this Python or on the PATH (it shares its cache); else pip."""
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.is_file() else shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def fetch_tarball(location: str, sha512: str, target: Path, say: Say) -> None:
    """Unpack the tarball at `location` (path or URL) into the new directory `target`.

    Nothing is unpacked before the SHA-512 of the whole file is found to be `sha512`.
    """
    if "://" not in location:
        archive = Path(location).expanduser()
        if not archive.is_file():
            raise BuildError(f"tarball {location}: there is no such file; correct the path")
        _need_space(target, _EXPANSION * archive.stat().st_size)
        with archive.open("rb") as file:
            found = hashlib.file_digest(file, "sha512").hexdigest()
        _check_digest(location, sha512, found)
        _unpack(archive, location, target)
        return
    archive = target.with_name(target.name + ".download")
    try:
        say(f"downloading {location}")
        _check_digest(location, sha512, _download(location, archive))
        _unpack(archive, location, target)
    finally:
        archive.unlink(missing_ok=True)


def _download(url: str, archive: Path) -> str:
    """Store what `url` gives in `archive`; its SHA-512."""
    digest = hashlib.sha512()
    try:
        with (
            closing(urllib.request.urlopen(url, timeout=_TIMEOUT_S)) as response,
            archive.open("wb") as file,
        ):
            expected = int(response.headers.get("Content-Length") or 0)
            _need_space(archive, (1 + _EXPANSION) * expected)
            received = _copy(response, file, digest.update)
    except (OSError, ValueError, urllib.error.URLError) as error:
        raise BuildError(f"tarball {url}: cannot be downloaded: {error}; check the URL") from None
    if expected and received != expected:
        raise BuildError(f"tarball {url}: only {received} of {expected} bytes came; try again")
    return digest.hexdigest()


def _copy(source: IO[bytes], target: IO[bytes], update: Callable[[bytes], None]) -> int:
    copied = 0
    while chunk := source.read(_CHUNK):
        update(chunk)
        target.write(chunk)
        copied += len(chunk)
    return copied


def _check_digest(location: str, expected: str, found: str) -> None:
    if found != expected.lower():
        raise BuildError(
            f"tarball {location}: SHA-512 is {found}, but {expected.lower()} was expected; "
            "correct sha512, or get the file again"
        )


def _unpack(archive: Path, location: str, target: Path) -> None:
    try:
        with tarfile.open(archive, mode="r:*") as tar:
            tar.extractall(target, filter="data")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise BuildError(
            f"tarball {location}: cannot be unpacked: {error}; give a .tgz of a Spark build"
        ) from None


def _need_space(target: Path, needed: int) -> None:
    problem = disk_problem(target.parent, needed)
    if problem:
        raise BuildError(problem)


__all__ = ["Say", "fetch_release", "fetch_tarball"]
