"""Read a repository of a person with git: nothing is changed, fetched or asked for."""

import os
import re
import subprocess
from pathlib import Path

from nexmark.errors import NexmarkError

#: A revision as builds and git name it: a hash, or its first digits.
REVISION = re.compile(r"[0-9a-f]{7,64}")

_TIMEOUT_S = 60.0
_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C.UTF-8",
}


class GitError(NexmarkError):
    """Git cannot do what was asked for; one line."""


def git(repository: Path, *arguments: str, timeout_s: float = _TIMEOUT_S) -> str:
    """Return what git prints in a repository.

    Args:
        repository: A directory of the repository.
        arguments: The command and its arguments; a value of a person never begins with `-`.
        timeout_s: How long git may take.

    Raises:
        GitError: It failed, took longer, or is not installed.
    """
    command = ["git", "-C", str(repository), "-c", "core.quotePath=false", *arguments]
    try:
        run = subprocess.run(
            command,
            env=git_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
        )
    except FileNotFoundError:
        raise GitError("git is not installed; install it") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"git {arguments[0]}: not done within {timeout_s:g} s") from None
    if run.returncode != 0:
        lines = run.stderr.strip().splitlines() or [f"exit code {run.returncode}"]
        raise GitError(f"git {arguments[0]}: {lines[0]}")
    return run.stdout


def git_environment() -> dict[str, str]:
    """Return the environment of git; variables of a git that runs this command are left out."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | _QUIET
