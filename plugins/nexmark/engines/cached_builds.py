"""List the builds in the cache with the time of their last use, and remove one."""

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from nexmark.engines.build import Manifest
from nexmark_jobs.host.leases import locked

#: The directory into which a file or a directory is renamed before it is deleted.
PRUNED = ".pruned"


@dataclass(frozen=True)
class CachedBuild:
    """A build that was fetched: `<version>-<id>`, with what it was fetched from.

    `used` is when it was last resolved, in epoch seconds. `indexes` are the files that lead from a
    source to it (`fetch`).
    """

    name: str
    directory: Path
    sources: tuple[str, ...]
    indexes: tuple[Path, ...]
    used: float

    @property
    def version(self) -> str:
        """The version of Spark."""
        return self.name.rpartition("-")[0]

    @property
    def id(self) -> str:
        """The hash of its content."""
        return self.name.rpartition("-")[2]


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
        builds.append(
            CachedBuild(
                name=manifest.stem,
                directory=cache / manifest.stem,
                sources=tuple(source for source, _ in of_build),
                indexes=indexes,
                used=max(_times((manifest, *indexes)), default=0.0),
            )
        )
    return builds


def note_use(index: Path) -> None:
    """Note that the build of a source is used now; the least recently used is removed first."""
    with suppress(OSError):
        os.utime(index)


def set_build_aside(build: CachedBuild) -> Path | None:
    """Rename a build, so that nothing finds it any more, and return its new directory.

    Change nothing and return None if another process fetches or checks the build just now, or has
    used it since `cached_builds`. The next removal finishes an interrupted one.
    """
    cache = build.directory.parent
    with ExitStack() as held:
        try:
            for index in build.indexes:
                held.enter_context(locked(index.with_suffix(".lock"), wait_s=0))
        except TimeoutError:
            return None
        manifest = cache / f"{build.name}.json"
        if max(_times((manifest, *build.indexes)), default=0.0) > build.used:
            return None
        aside = cache / PRUNED / uuid.uuid4().hex
        aside.mkdir(parents=True)
        if build.directory.exists():
            build.directory.rename(aside / build.name)
        for file in (*build.indexes, manifest):
            file.unlink(missing_ok=True)
    return aside


def _times(files: tuple[Path, ...]) -> Iterator[float]:
    for file in files:
        with suppress(OSError):
            yield file.stat().st_mtime
