"""Bring a Spark build to this machine: a PyPI release, a tarball or a snapshot, kept in a cache.

<cache>/<version>-<id>/           one build, as fetched
<cache>/<version>-<id>.json       its manifest
<cache>/sources/<key>.json        source -> build, so that it is fetched once
<cache>/directories/<key>.json    manifest of a build that is used in place
"""

import hashlib
import json
import logging
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import date
from functools import partial
from http.client import HTTPResponse
from pathlib import Path

from nexmark.config import BuildSource, Snapshots
from nexmark.engines.build import (
    Build,
    BuildError,
    Manifest,
    find_spark_home,
    manifest_in_place,
    scan,
    spark_version,
)
from nexmark.engines.cached_builds import note_use
from nexmark.engines.jvm import check_path
from nexmark.engines.prerequisites import (
    disk_problem,
    java_problem,
    job_python_problem,
    spark_problem,
)
from nexmark.engines.revisions import revision_of
from nexmark.errors import FinalError
from nexmark.home import write_text
from nexmark.model import Say
from nexmark_jobs.host.leases import locked

_CHUNK = 1 << 20
_TIMEOUT_S = 60
_INSTALL_TIMEOUT_S = 1800
#: Bytes that one release needs: download, wheel and unpacked files.
_RELEASE_BYTES = 2_500_000_000
#: How many times as large as the tarball an unpacked Spark is, at most.
_EXPANSION = 2


class UnusableBuild(BuildError, FinalError):
    """A Spark build that cannot run here, or with these jobs."""


def fetch_release(version: str, target: Path, say: Say) -> None:
    """Install `pyspark==version` without its dependencies into the new directory `target`."""
    _need_space(target, _RELEASE_BYTES)
    say(f"fetching pyspark {version} from the package index")
    requirement = f"pyspark=={version}"
    command = [*_installer(), "--no-deps", "--target", str(target), requirement]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        late = f"not installed within {_INSTALL_TIMEOUT_S} s"
        raise BuildError(f"{requirement}: {late}; check the network") from None
    if run.returncode != 0:
        reason = " ".join((run.stderr or run.stdout).split())[-300:]
        remedy = "check the version and the network"
        raise BuildError(f"{requirement}: cannot be installed: {reason}; {remedy}")


def _installer() -> list[str]:
    """Return the command of uv, beside this Python or on the PATH; of pip if there is no uv."""
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.is_file() else shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]


def fetch_tarball(location: str, sha512: str, target: Path, say: Say) -> None:
    """Unpack a tarball into a new directory, after a check of its SHA-512.

    Args:
        location: The path or the URL of the tarball.
        sha512: The digest that it has to have.
        target: The new directory.
        say: Called with each line of progress.

    Raises:
        BuildError: It cannot be read or unpacked, or it has another digest.
    """
    if "://" not in location:
        archive = Path(location).expanduser()
        if not archive.is_file():
            raise BuildError(f"tarball {location}: there is no such file; correct the path")
        _need_space(target, _EXPANSION * archive.stat().st_size)
        _unpack(archive, location, sha512, target)
        return
    archive = target.with_name(target.name + ".download")
    try:
        say(f"downloading {location}")
        _download(location, archive)
        _unpack(archive, location, sha512, target)
    finally:
        archive.unlink(missing_ok=True)


def _download(url: str, archive: Path) -> None:
    try:
        opened = closing(urllib.request.urlopen(url, timeout=_TIMEOUT_S))
        with opened as response, archive.open("wb") as file:
            expected = int(response.headers.get("Content-Length") or 0)
            _need_space(archive, (1 + _EXPANSION) * expected)
            shutil.copyfileobj(response, file, _CHUNK)
            received = file.tell()
    except (OSError, ValueError, urllib.error.URLError) as error:
        raise BuildError(f"tarball {url}: cannot be downloaded: {error}; check the URL") from None
    if expected and received != expected:
        raise BuildError(f"tarball {url}: only {received} of {expected} bytes came; try again")


def _unpack(archive: Path, location: str, sha512: str, target: Path) -> None:
    """Unpack a tarball whose SHA-512 is right; BuildError for any other.

    Args:
        archive: The file on this machine.
        location: Where it came from, for messages.
        sha512: The digest that it has to have.
        target: The new directory.
    """
    with archive.open("rb") as packed:
        digest = hashlib.file_digest(packed, "sha512").hexdigest()
    if digest != sha512.lower():
        problem = f"SHA-512 is {digest}, but {sha512.lower()} was expected"
        remedy = "correct sha512, or get the file again"
        raise BuildError(f"tarball {location}: {problem}; {remedy}")
    try:
        with tarfile.open(archive, mode="r:*") as tar:
            tar.extractall(target, filter="data")
    except (tarfile.TarError, EOFError, OSError) as error:
        problem = f"cannot be unpacked: {error}; give a .tgz of a Spark build"
        raise BuildError(f"tarball {location}: {problem}") from None


def _need_space(target: Path, needed: int) -> None:
    if problem := disk_problem(target.parent, needed):
        raise BuildError(problem)


_LOOK_TIMEOUT_S = 60
#: The largest file in which a SHA-512 is looked for, in bytes.
_CHECKSUM_BYTES = 1 << 16
_NOT_THERE = (404, 410)


class MissingBuild(BuildError):
    """A date has no build; this is no failure, because a build is not made every day."""


def snapshot(snapshots: Snapshots, day: date) -> BuildSource:
    """Return the build of `day` with its SHA-512.

    Raises:
        MissingBuild: The date has no build.
        BuildError: It cannot be found out whether the date has a build.
    """
    tarball, checksum = snapshots.of(day)
    try:
        with closing(_open(checksum)) as response:
            text = response.read(_CHECKSUM_BYTES).decode("utf-8", errors="replace")
        sha512 = _sha512(checksum, text)
        _open(tarball, "HEAD").close()
    except FileNotFoundError as error:
        raise MissingBuild(f"no build for {day}: {error} is not there") from None
    except (OSError, ValueError) as error:
        problem = f"{checksum} or {tarball} cannot be asked for: {error}"
        remedy = "check the network and `snapshots` in include/conf/engines.yaml"
        raise BuildError(f"build for {day}: {problem}; {remedy}") from None
    return BuildSource(tarball=tarball, sha512=sha512)


def _open(location: str, method: str = "GET") -> HTTPResponse:
    """Return the response for a path or URL; FileNotFoundError if there is no such file."""
    is_url = "://" in location
    url = location if is_url else Path(location).expanduser().absolute().as_uri()
    try:
        request = urllib.request.Request(url, method=method)
        response: HTTPResponse = urllib.request.urlopen(request, timeout=_LOOK_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code in _NOT_THERE:
            raise FileNotFoundError(location) from None
        raise
    except urllib.error.URLError as error:
        if isinstance(error.reason, FileNotFoundError | IsADirectoryError):  # file://
            raise FileNotFoundError(location) from None
        raise
    return response


def _sha512(location: str, text: str) -> str:
    """Return the digest in a checksum file: of `sha512sum`, of `gpg --print-md`, or alone."""
    digests = set(re.findall(r"(?<![0-9a-f])[0-9a-f]{128}(?![0-9a-f])", text.lower()))
    if not digests:
        words = "".join(text.rpartition(":")[2].split()).lower()
        digests = set(re.findall(r"^[0-9a-f]{128}$", words))
    if len(digests) != 1:
        remedy = "publish what `sha512sum` prints of the tarball"
        raise BuildError(
            f"{location}: {len(digests)} SHA-512 digests in it, one is needed; {remedy}"
        )
    return str(digests.pop())


log = logging.getLogger(__name__)

_LOCK_TIMEOUT_S = 1800.0


def resolve(
    source: BuildSource, cache: Path, *, full_check: bool = False, say: Say = log.info
) -> Build:
    """Return the build of `source`, and fetch it if the cache lacks it.

    A build in the cache is checked first, and fetched again if it has changed. Two processes fetch
    the same source once.

    Args:
        source: Where the build comes from.
        cache: The directory of builds.
        full_check: Whether every byte is checked, not only sizes and times of files.
        say: Called with each line of progress.

    Raises:
        BuildError: The build cannot be fetched, or is no Spark.
    """
    check_path(cache, "NEXMARK_HOME")
    if source.directory is not None:
        return _in_place(Path(source.directory).expanduser().resolve(), cache, source, full_check)
    key = hashlib.sha256(str(source).encode()).hexdigest()[:24]
    index = cache / "sources" / f"{key}.json"
    index.parent.mkdir(parents=True, exist_ok=True)
    with _lock(index.with_suffix(".lock"), str(source), say):
        return _cached(index, cache, source, full_check, say) or _fetch(index, cache, source, say)


def usable(
    source: BuildSource, cache: Path, *, full_check: bool = False, say: Say = log.info
) -> Build:
    """Return the build of `source` as `resolve` does, if it can run here.

    Args:
        source: Where the build comes from.
        cache: The directory of builds.
        full_check: Whether every byte is checked, not only sizes and times of files.
        say: Called with each line of progress.

    Raises:
        UnusableBuild: This Spark cannot run here; of a release, this is known before its fetch.
        BuildError: The build cannot be fetched, or is no Spark.
    """
    _refuse(source.pypi)
    build = resolve(source, cache, full_check=full_check, say=say)
    _refuse(build.version)
    return build


def _refuse(version: str | None) -> None:
    if version is None:
        return
    if problem := spark_problem(version):
        raise UnusableBuild(problem)
    if problem := java_problem(version) or job_python_problem(version):
        raise UnusableBuild(f"Spark {version}: {problem}")


def _cached(index: Path, cache: Path, source: BuildSource, full: bool, say: Say) -> Build | None:
    """Return the build that a source had before, if it is whole.

    Args:
        index: The file with the name of the build.
        cache: The directory of builds.
        source: Where the build comes from.
        full: Whether every byte is checked.
        say: Called if it has to be fetched again.
    """
    try:
        name = str(json.loads(index.read_text())["build"])
    except (OSError, ValueError, KeyError):
        return None
    manifest = Manifest.read(cache / f"{name}.json")
    directory = cache / name
    if manifest is None or not directory.is_dir():
        return None
    home = find_spark_home(directory)
    if changed := manifest.changed(home, full=full):
        say(f"{directory}: {len(changed)} files changed, e.g. {changed[0]}; fetching it again")
        shutil.rmtree(directory)
        return None
    note_use(index)
    return _build(manifest, home, source)


def _fetch(index: Path, cache: Path, source: BuildSource, say: Say) -> Build:
    """Fetch a build into the cache, and note in `index` which one it is.

    Args:
        index: The file with the name of the build.
        cache: The directory of builds.
        source: Where the build comes from.
        say: Called with each line of progress.
    """
    temporary = cache / f".{index.stem}"
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        if source.pypi is not None:
            fetch_release(source.pypi, temporary, say)
        else:
            fetch_tarball(str(source.tarball), str(source.sha512), temporary, say)
        home = find_spark_home(temporary)
        manifest, version = scan(home), spark_version(home)
        name = f"{version}-{manifest.id}"
        if not _is_whole(cache, name):
            shutil.rmtree(cache / name, ignore_errors=True)
            temporary.rename(cache / name)
            manifest.write(cache / f"{name}.json")
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    write_text(index, json.dumps({"source": str(source), "build": name}))
    say(f"build {manifest.id} is Spark {version} from {source}")
    return _build(manifest, cache / name / home.relative_to(temporary), source)


def _build(manifest: Manifest, home: Path, source: BuildSource) -> Build:
    """Return the build in a directory, with what its files say of it."""
    revision = revision_of(home, str(source))
    return Build(manifest.id, spark_version(home), home, str(source), revision)


def _is_whole(cache: Path, name: str) -> bool:
    """Return whether the cache has the same content already, from another source."""
    manifest = Manifest.read(cache / f"{name}.json")
    if manifest is None or not (cache / name).is_dir():
        return False
    return not manifest.changed(find_spark_home(cache / name))


def _in_place(directory: Path, cache: Path, source: BuildSource, full_check: bool) -> Build:
    """Return a build that is used where it is, with a manifest in the cache.

    Args:
        directory: The directory of the build.
        cache: The directory of builds.
        source: The directory as it was named, for messages.
        full_check: Whether every byte is checked.
    """
    if not directory.is_dir():
        raise BuildError(f"build {source}: there is no such directory; correct the path")
    home = find_spark_home(directory)
    check_path(home, f"build {source}")
    stored = manifest_in_place(home, cache)
    manifest = Manifest.read(stored)
    if manifest is None or manifest.changed(home, full=full_check):
        manifest = scan(home)
        stored.parent.mkdir(parents=True, exist_ok=True)
        manifest.write(stored)
    return _build(manifest, home, source)


@contextmanager
def _lock(path: Path, what: str, say: Say) -> Iterator[None]:
    waiting = partial(say, f"waiting for another process that fetches {what}")
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(path, _LOCK_TIMEOUT_S, waiting))
        except TimeoutError:
            late = f"another process has held {path} for {_LOCK_TIMEOUT_S:.0f} s"
            raise BuildError(f"build {what}: {late}; end it and try again") from None
        yield
