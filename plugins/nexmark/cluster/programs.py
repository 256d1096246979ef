"""Running a program of `nexmark_jobs.host` on a host that has nothing of this package.

A small constant loader is the command; the sources and the request come over its standard input,
so that nothing of them shows in the host's list of processes. After that line of JSON the rest of
the standard input is the program's.
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
#: What programs may import, in this order.
_LIBRARY = (processes, ports)


def program_command(python: str) -> list[str]:
    """The command that runs whatever program is on its standard input.

    Without site-packages: nothing but the standard library is imported, whatever is installed.
    """
    return [python, "-I", "-S", "-c", _LOADER]


def program_input(program: ModuleType, request: Mapping[str, Any]) -> bytes:
    """What `program_command` reads first: one line. The last line of its output is the result."""
    before = _LIBRARY[: _LIBRARY.index(program)] if program in _LIBRARY else _LIBRARY
    sources = [[x.__name__, inspect.getsource(x)] for x in (*before, program)]
    return json.dumps({"modules": sources, "request": dict(request)}).encode() + b"\n"


def program_result(output: bytes) -> dict[str, Any]:
    """The result in the output of a program; ValueError if there is none.

    What the host's shell may have printed before it does not matter.
    """
    lines = output.strip().splitlines()
    result = json.loads(lines[-1]) if lines else None
    if not isinstance(result, dict):
        raise ValueError("the program printed no result")
    return result


__all__ = ["program_command", "program_input", "program_result"]
