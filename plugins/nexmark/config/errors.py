"""Errors in the files of `include/conf`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from nexmark.errors import NexmarkError


class ConfigError(NexmarkError):
    """`file:line: key: what is wrong; remedy`, in one line."""


def suggest(name: object, known: Iterable[str]) -> str:
    """The remedy for an unknown name: the nearest known one, else all of them.

    >>> suggest("q55", ["q5", "q6"])
    "did you mean 'q5'?"
    """
    names = list(known)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known: {', '.join(names)}" if names else "none is known"


__all__ = ["ConfigError", "suggest"]
