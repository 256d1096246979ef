"""Resolves a build source to a build on this machine, through a cache of builds.

<cache>/<version>-<id>/           one build, as fetched
<cache>/<version>-<id>.json       its manifest
<cache>/sources/<key>.json        source -> build, so that it is fetched once
<cache>/directories/<key>.json    manifest of a build that is used in place
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from nexmark.config import BuildSource
from nexmark.engines.build import Build, BuildError, Manifest, find_spark_home, scan, spark_version
from nexmark.engines.fetch import Say, fetch_release, fetch_tarball
from nexmark_jobs.host.leases import locked

log = logging.getLogger(__name__)

_LOCK_TIMEOUT_S = 1800.0


def resolve(
    source: BuildSource, cache: Path, *, full_check: bool = False, say: Say = log.info
) -> Build:
    """The build of `source`, fetched into `cache` unless it is there.

    What is there is checked first: file sizes and times, every byte with `full_check`; one that
    fails is fetched again. Two processes fetch the same source once. Raises BuildError.
    """
    if source.directory is not None:
        return _in_place(Path(source.directory).expanduser().resolve(), cache, source, full_check)
    key = hashlib.sha256(str(source).encode()).hexdigest()[:24]
    index = cache / "sources" / f"{key}.json"
    index.parent.mkdir(parents=True, exist_ok=True)
    with _lock(index.with_suffix(".lock"), str(source), say):
        build = _cached(index, cache, source, full_check, say)
        return build or _fetch(index, cache, source, say)


def _cached(
    index: Path, cache: Path, source: BuildSource, full_check: bool, say: Say
) -> Build | None:
    try:
        name = str(json.loads(index.read_text())["build"])
    except (OSError, ValueError, KeyError):
        return None
    manifest = Manifest.read(cache / f"{name}.json")
    directory = cache / name
    if manifest is None or not directory.is_dir():
        return None
    home = find_spark_home(directory)
    changed = manifest.changed(home, full=full_check)
    if changed:
        say(f"{directory}: {len(changed)} files changed, e.g. {changed[0]}; fetching it again")
        shutil.rmtree(directory)
        return None
    return Build(manifest.id, spark_version(home), home, str(source))


def _fetch(index: Path, cache: Path, source: BuildSource, say: Say) -> Build:
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
    partial = index.with_suffix(".tmp")
    partial.write_text(json.dumps({"source": str(source), "build": name}))
    partial.replace(index)
    say(f"build {manifest.id} is Spark {version} from {source}")
    return Build(manifest.id, version, cache / name / home.relative_to(temporary), str(source))


def _is_whole(cache: Path, name: str) -> bool:
    """Whether another source has the same content in the cache already."""
    manifest = Manifest.read(cache / f"{name}.json")
    if manifest is None or not (cache / name).is_dir():
        return False
    return not manifest.changed(find_spark_home(cache / name))


def _in_place(directory: Path, cache: Path, source: BuildSource, full_check: bool) -> Build:
    if not directory.is_dir():
        raise BuildError(f"build {source}: there is no such directory; correct the path")
    home = find_spark_home(directory)
    key = hashlib.sha256(str(home).encode()).hexdigest()[:24]
    stored = cache / "directories" / f"{key}.json"
    manifest = Manifest.read(stored)
    if manifest is None or manifest.changed(home, full=full_check):
        manifest = scan(home)
        stored.parent.mkdir(parents=True, exist_ok=True)
        manifest.write(stored)
    return Build(manifest.id, spark_version(home), home, str(source))


@contextmanager
def _lock(path: Path, what: str, say: Say) -> Iterator[None]:
    """Holds the lock file `path`; any end of this process frees it."""

    def waiting() -> None:
        say(f"waiting for another process that fetches {what}")

    with ExitStack() as stack:
        try:
            stack.enter_context(locked(path, _LOCK_TIMEOUT_S, waiting))
        except TimeoutError:
            raise BuildError(
                f"build {what}: another process has held {path} for {_LOCK_TIMEOUT_S:.0f} s; "
                "end it and try again"
            ) from None
        yield
