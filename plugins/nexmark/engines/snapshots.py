"""Nightly builds that are named by their date: which one is there, and its checksum."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from contextlib import closing
from datetime import date
from http.client import HTTPResponse
from pathlib import Path

from nexmark.config import BuildSource, Snapshots
from nexmark.engines.build import BuildError

_TIMEOUT_S = 60
#: A file with a SHA-512 in it is never larger, bytes.
_CHECKSUM_BYTES = 1 << 16
_NOT_THERE = (404, 410)


class MissingBuild(BuildError):
    """There is no build of a date. That is no fault: not every night has one."""


def snapshot(snapshots: Snapshots, day: date) -> BuildSource:
    """The build of `day`, with the SHA-512 that is published beside it; nothing is fetched yet.

    MissingBuild when the tarball or its checksum is not there, BuildError when that cannot be told
    or the checksum is none.
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
    """The response; FileNotFoundError where the server says that there is nothing."""
    try:
        request = urllib.request.Request(url, method=method)
        response: HTTPResponse = urllib.request.urlopen(request, timeout=_TIMEOUT_S)
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
    """The digest in a checksum file: of `sha512sum`, of `gpg --print-md`, or by itself."""
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


__all__ = ["MissingBuild", "snapshot"]
