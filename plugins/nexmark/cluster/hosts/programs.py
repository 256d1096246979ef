"""Runs a program of `nexmark_jobs.host` on a host without this package.

The command is a small constant loader. It reads one line of JSON with the sources and the request
from its standard input, so they do not appear in the host's list of processes. The program reads
the rest of the standard input.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from nexmark_jobs.host import ports, processes

_LOADER = """\
import json, sys, types
sent = json.loads(sys.stdin.buffer.readline())
for name, source in sent["modules"]:
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
print(json.dumps(module.main(sent["request"])))
"""
#: The modules that programs may import, in this order.
_LIBRARY = (processes, ports)


def program_command(python: str) -> list[str]:
    """Returns the command that runs the program on its standard input.

    It runs without site-packages: a program can import only the standard library.
    """
    return [python, "-I", "-S", "-c", _LOADER]


def program_input(program: ModuleType, request: Mapping[str, Any]) -> bytes:
    """Returns the first line for `program_command`. The last line of its output is the result."""
    before = _LIBRARY[: _LIBRARY.index(program)] if program in _LIBRARY else _LIBRARY
    sources = [[x.__name__, inspect.getsource(x)] for x in (*before, program)]
    return json.dumps({"modules": sources, "request": dict(request)}).encode() + b"\n"


def program_result(output: bytes) -> dict[str, Any]:
    """Returns the result in the output of a program; ValueError if there is none.

    Earlier output, for example of the host's shell, is ignored.
    """
    lines = output.strip().splitlines()
    result = json.loads(lines[-1]) if lines else None
    if not isinstance(result, dict):
        raise ValueError("the program printed no result")
    return result
