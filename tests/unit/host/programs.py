"""Running a program as a host runs it: by the loader, with nothing of this package to import."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

from nexmark.cluster.hosts.host import program_command, program_input, program_result


def attempt(
    program: ModuleType, request: dict[str, Any], data: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        program_command(sys.executable),
        input=program_input(program, request) + data,
        capture_output=True,
        timeout=60,
        check=False,
    )


def run(program: ModuleType, request: dict[str, Any], data: bytes = b"") -> dict[str, Any]:
    done = attempt(program, request, data)
    assert done.returncode == 0, done.stderr.decode()
    return program_result(done.stdout)
