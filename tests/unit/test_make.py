"""What a person gives to make reaches the command in the very letters, and only what is given."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from nexmark.config.paths import repository

_FILES = ("pyproject.toml", "requirements.lock", "requirements-dev.lock")
#: In place of `nexmark`: shows what it was called with.
_PROGRAM = '#!/bin/bash\nprintf "<%s>" "$@"\n'


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with the Makefile, where the environment is there already."""
    binaries = tmp_path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    shutil.copy(repository() / "Makefile", tmp_path)
    for name in (*_FILES, "requirements-bootstrap.lock", ".venv/bin/uv", ".venv/.run"):
        (tmp_path / name).touch()
    (binaries / "nexmark").write_text(_PROGRAM)
    (binaries / "nexmark").chmod(0o755)
    return tmp_path


def called(directory: Path, *arguments: str, **environment: str) -> str:
    """What the command is called with, after its name."""
    clean = {"PATH": os.environ["PATH"], **environment}
    done = subprocess.run(
        ["make", *arguments], cwd=directory, env=clean, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.partition(">")[2]


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        (["run"], ""),
        (["run", "QUERIES="], "<--queries><>"),
        (["run", "QUERIES=$(x)"], "<--queries><$(x)>"),
        (["run", "QUERIES=$(shell touch made)"], "<--queries><$(shell touch made)>"),
        (["run", "QUERIES=$$"], "<--queries><$$>"),
        (["run", "QUERIES=`id` $HOME \"'"], "<--queries><`id` $HOME \"'>"),
        (["run", "QUERIES=q1,,q2", "REPETITIONS="], "<--queries><q1,,q2><--repetitions><>"),
        (["run", "ENGINE=\n"], "<--engine><>"),
        (["ui"], ""),
        (["ui", "EXAMPLE=yes"], "<--example>"),
        (["ui", "EXAMPLE=no"], ""),
    ],
)
def test_what_is_given_is_passed_as_it_is(
    directory: Path, arguments: list[str], passed: str
) -> None:
    assert called(directory, *arguments) == passed
    assert not (directory / "made").exists()


def test_the_environment_is_taken_as_the_command_line(directory: Path) -> None:
    assert called(directory, "run", QUERIES="$(x)", ENGINE="") == "<--engine><><--queries><$(x)>"
