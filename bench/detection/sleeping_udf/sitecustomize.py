"""Makes every Python UDF sleep: 3 ms in each 100 calls. For PYTHONPATH of Spark's Python workers.

Python runs a module of this name when it starts. The jobs themselves stay as they are.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import time
from collections.abc import Callable
from typing import Any

SLEEP_S = 0.003
CALLS = 100


def sleeping(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same function, which now and then sleeps first."""
    calls = itertools.count(1)

    @functools.wraps(function)
    def slow(*arguments: Any, **named: Any) -> Any:
        if next(calls) % CALLS == 0:
            time.sleep(SLEEP_S)
        return function(*arguments, **named)

    return slow


def reading(read_command: Callable[..., Any]) -> Callable[..., Any]:
    """Return the worker's reader of functions, which hands out sleeping ones."""

    @functools.wraps(read_command)
    def read(*arguments: Any, **named: Any) -> Any:
        command = read_command(*arguments, **named)
        if isinstance(command, tuple) and len(command) == 2 and callable(command[0]):
            return sleeping(command[0]), command[1]
        return command

    return read


def install() -> None:
    """Let the workers that are forked from this process read sleeping functions."""
    worker: Any = importlib.import_module("pyspark.worker")
    worker.read_command = reading(worker.read_command)


if __name__ == "sitecustomize":
    install()
