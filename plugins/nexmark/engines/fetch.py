"""Bringing a Spark build into a directory: a PyPI release, a tarball, or the newest snapshot."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from datetime import date
from http.client import HTTPResponse
from pathlib import Path
from typing import IO

from nexmark.config import BuildSource, Snapshots
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

    It unpacks nothing before the SHA-512 of the whole file is known to be `sha512`.
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
    """Downloads `url` to `archive`; returns its SHA-512."""
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


_LOOK_TIMEOUT_S = 60
#: A file with a SHA-512 in it is never larger, bytes.
_CHECKSUM_BYTES = 1 << 16
_NOT_THERE = (404, 410)


class MissingBuild(BuildError):
    """A date has no build. This is no failure: not every night has one."""


def snapshot(snapshots: Snapshots, day: date) -> BuildSource:
    """The build of `day`, with the SHA-512 published beside it; does not fetch it.

    MissingBuild if the tarball or its checksum does not exist, BuildError if this cannot be found
    out or the checksum is not valid.
    """
    tarball, checksum = snapshots.of(day)
    try:
        sha512 = _sha512(checksum, _read(checksum))
        _look_for(tarball)
    except FileNotFoundError as error:
        raise MissingBuild(f"no build for {day}: {error} is not there") from None
    except (OSError, ValueError) as error:
        raise BuildError(
            f"build for {day}: {checksum} or {tarball} cannot be asked for: {error}; "
            "check the network and `snapshots` in include/conf/engines.yaml"
        ) from None
    return BuildSource(tarball=tarball, sha512=sha512)


def _read(location: str) -> str:
    if "://" in location:
        with closing(_open(location)) as response:
            content = response.read(_CHECKSUM_BYTES)
    else:
        path = Path(location).expanduser()
        if not path.is_file():
            raise FileNotFoundError(location)
        with path.open("rb") as file:
            content = file.read(_CHECKSUM_BYTES)
    return content.decode("utf-8", errors="replace")


def _look_for(location: str) -> None:
    if "://" in location:
        _open(location, "HEAD").close()
    elif not Path(location).expanduser().is_file():
        raise FileNotFoundError(location)


def _open(url: str, method: str = "GET") -> HTTPResponse:
    """The response; FileNotFoundError if the server has no such file."""
    try:
        request = urllib.request.Request(url, method=method)
        response: HTTPResponse = urllib.request.urlopen(request, timeout=_LOOK_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code in _NOT_THERE:
            raise FileNotFoundError(url) from None
        raise
    except urllib.error.URLError as error:
        if isinstance(error.reason, FileNotFoundError):  # file://
            raise FileNotFoundError(url) from None
        raise
    return response


def _sha512(location: str, text: str) -> str:
    """Return the digest in a checksum file: of `sha512sum`, of `gpg --print-md`, or alone."""
    found = set(re.findall(r"(?<![0-9a-f])[0-9a-f]{128}(?![0-9a-f])", text.lower()))
    if not found:
        words = "".join(text.rpartition(":")[2].split()).lower()
        found = set(re.findall(r"^[0-9a-f]{128}$", words))
    if len(found) != 1:
        raise BuildError(
            f"{location}: {len(found)} SHA-512 digests in it, one is needed; "
            "publish what `sha512sum` prints of the tarball"
        )
    return str(found.pop())
