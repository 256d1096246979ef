"""A directory that fills up out of sight and appears at once."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path


class Staging:
    """A sibling of a directory, on the same file system, that becomes the directory.

    Driver and executors must share that file system.
    """

    def __init__(self, target: Path) -> None:
        """Create nothing yet; `target` is the directory to be."""
        self._target = target
        # No leading dot: Spark finds no files below a directory that begins with one.
        self.path = target.parent / f"{target.name}.{uuid.uuid4().hex}.tmp"

    def publish(self, child: str) -> None:
        """Make the directory `child` of the staging directory the target, and drop the rest."""
        if self._target.is_dir():
            self._target.rmdir()  # refuses if somebody has filled it meanwhile
        (self.path / child).rename(self._target)
        self.discard()

    def discard(self) -> None:
        """Remove the staging directory."""
        shutil.rmtree(self.path, ignore_errors=True)
