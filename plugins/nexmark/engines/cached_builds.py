"""List the builds in the cache with the time of their last use, and remove one.

Builds of commits, which a bisection has made, are among them (`nexmark.bisect.built_commits`).
"""

import json
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from nexmark.engines.build import (
    BuildError,
    Manifest,
    find_spark_home,
    manifest_in_place,
    spark_version,
)
from nexmark_jobs.host.leases import locked

#: The directory into which a file or a directory is renamed before it is deleted.
PRUNED = ".pruned"


@dataclass(frozen=True)
class CachedBuild:
    """A build that was fetched, `<version>-<id>`, with what it was fetched from, or that was built.

    `version` is its version of Spark, `id` the hash of its content, "" if that is not known.
    `indexes` are the files that lead from a source to it (`fetch`), `manifest` is the file with its
    manifest. `used` is when it was last resolved, in epoch seconds: the newest time of `uses`.
    """

    name: str
    version: str
    id: str
    cache: Path
    directory: Path
    manifest: Path
    sources: tuple[str, ...]
    indexes: tuple[Path, ...]
    uses: tuple[Path, ...]
    used: float


def cached_builds(cache: Path) -> list[CachedBuild]:
    """Return the builds in a cache, also one whose removal was interrupted."""
    sources: dict[str, list[tuple[str, Path]]] = {}
    for index in sorted((cache / "sources").glob("*.json")):
        with suppress(OSError, ValueError, KeyError):
            known = json.loads(index.read_text())
            sources.setdefault(str(known["build"]), []).append((str(known["source"]), index))
    builds = []
    for manifest in sorted(cache.glob("*.json")):
        if Manifest.read(manifest) is None:
            continue
        of_build = sources.get(manifest.stem, [])
        indexes = tuple(index for _, index in of_build)
        version, _, build_id = manifest.stem.rpartition("-")
        builds.append(
            CachedBuild(
                name=manifest.stem,
                version=version,
                id=build_id,
                cache=cache,
                directory=cache / manifest.stem,
                manifest=manifest,
                sources=tuple(source for source, _ in of_build),
                indexes=indexes,
                uses=(manifest, *indexes),
                used=_last_use((manifest, *indexes)),
            )
        )
    return [*builds, *_builds_of_commits(cache)]


#: The directory of the builds of commits: `<key>/<commit>`.
COMMITS = "commits"


def _builds_of_commits(cache: Path) -> Iterator[CachedBuild]:
    """Yield the builds that were made of commits; what is being built is left out."""
    for directory in sorted((cache / COMMITS).glob("[!.]*/[!.]*")):
        try:
            home = find_spark_home(directory)
            version = spark_version(home)
        except BuildError:
            continue
        manifest = manifest_in_place(home, cache)
        known = Manifest.read(manifest)
        yield CachedBuild(
            name=str(directory.relative_to(cache)),
            version=version,
            id=known.id if known else "",
            cache=cache,
            directory=directory,
            manifest=manifest,
            sources=(f"directory:{directory}",),
            indexes=(),
            uses=(directory, manifest),
            used=_last_use((directory, manifest)),
        )


def note_use(index: Path) -> None:
    """Note that the build of a source is used now; the least recently used is removed first."""
    with suppress(OSError):
        os.utime(index)


def set_build_aside(build: CachedBuild) -> Path | None:
    """Rename a build, so that nothing finds it any more, and return its new directory.

    Change nothing and return None if another process fetches or checks the build just now, or has
    used it since `cached_builds`. The next removal finishes an interrupted one.
    """
    with ExitStack() as held:
        try:
            for index in build.indexes:
                held.enter_context(locked(index.with_suffix(".lock"), wait_s=0))
        except TimeoutError:
            return None
        if _last_use(build.uses) > build.used:
            return None
        aside = build.cache / PRUNED / uuid.uuid4().hex
        aside.mkdir(parents=True)
        if build.directory.exists():
            build.directory.rename(aside / build.directory.name)
        for file in (*build.indexes, build.manifest):
            file.unlink(missing_ok=True)
    return aside


def _last_use(files: Iterable[Path]) -> float:
    """Return the newest time of some files, in epoch seconds; 0 if none is there."""
    times = []
    for file in files:
        with suppress(OSError):
            times.append(file.stat().st_mtime)
    return max(times, default=0.0)
