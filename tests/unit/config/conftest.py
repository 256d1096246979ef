"""A copy of the configuration that ships, for tests that change it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nexmark.config.paths import repository


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    copy = tmp_path / "conf"
    shutil.copytree(repository() / "include" / "conf", copy)
    return copy
