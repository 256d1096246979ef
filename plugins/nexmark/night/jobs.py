"""Copies the jobs by content for deployment, so that no later edit reaches them."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

from nexmark.engines.build import Manifest, scan
from nexmark.errors import NexmarkError
from nexmark_jobs.host.leases import locked


def deploy_jobs(target: Path) -> tuple[str, Path]:
    """Copy `nexmark_jobs` to `<target>/<id>/nexmark_jobs`, where no later edit reaches it.

    Returns the id (hash of the content) and the directory of the package.
    """
    spec = importlib.util.find_spec("nexmark_jobs")
    if spec is None or spec.origin is None:
        raise NexmarkError("nexmark_jobs cannot be imported; run `make env`")
    source = Path(spec.origin).parent
    manifest: Manifest = scan(source)
    directory = target / manifest.id
    package = directory / "nexmark_jobs"
    with locked(target / ".lock"):
        if not _is_whole(package, manifest):
            _replace_copy(source, directory)
    return manifest.id, package


def _is_whole(package: Path, manifest: Manifest) -> bool:
    return package.is_dir() and scan(package).id == manifest.id


def _replace_copy(source: Path, directory: Path) -> None:
    """Copy `source` into `directory`, which is there whole or not at all.

    A damaged one is moved aside: who reads one of its files keeps that file.
    """
    copy = directory.with_name(f".{directory.name}-{os.getpid()}")
    damaged = directory.with_name(f".{directory.name}-damaged-{os.getpid()}")
    for path in (copy, damaged):
        shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(source, copy / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    if directory.exists():
        directory.rename(damaged)
    copy.rename(directory)
    shutil.rmtree(damaged, ignore_errors=True)
