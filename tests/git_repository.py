"""A small git repository, made by a test, without the settings of who runs it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nexmark.config import paths

#: A file of Spark whose change can make a streaming query slower.
STATE_STORE = "sql/core/src/main/scala/org/apache/spark/sql/execution/streaming/state/Store.scala"
_WHO = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "2026-11-03T04:00:00Z",
    "GIT_COMMITTER_DATE": "2026-11-03T04:00:00Z",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


@dataclass(frozen=True)
class GitRepository:
    """A repository with a working tree, on the branch main."""

    path: Path

    @classmethod
    def make(cls, path: Path) -> GitRepository:
        path.mkdir(parents=True)
        made = cls(path)
        made.git("init", "--quiet", "--initial-branch=main")
        return made

    def git(self, *arguments: str) -> str:
        run = subprocess.run(
            ["git", "-C", str(self.path), *arguments],
            env={**os.environ, **_WHO},
            capture_output=True,
            text=True,
            check=True,
        )
        return run.stdout.strip()

    def commit(self, title: str, files: Mapping[str, str]) -> str:
        """Write files, commit them, and return the hash of the commit."""
        for name, text in files.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", title)
        return self.git("rev-parse", "HEAD")

    def name_in_copy_of_conf(self, conf: Path) -> None:
        """Copy the shipped configuration to ``conf``; its engines have this clone, and a forge."""
        shutil.copytree(paths.repository() / "include" / "conf", conf)
        engines = conf / "engines.yaml"
        forge = "https://forge.example/{{ old }}..{{ new }}"
        named = f'repository: {{clone: "{self.path}", compare: "{forge}"}}'
        text, count = re.subn("repository: .*", named, engines.read_text(), count=1)
        assert count == 1
        engines.write_text(text)
