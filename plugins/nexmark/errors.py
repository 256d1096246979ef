"""Errors that a user can put right: the base class, the errors of `include/conf`, and remedies."""

import difflib
from collections.abc import Iterable


class NexmarkError(Exception):
    """An error in one line: problem, place and remedy; commands print it and exit with 1."""

    def __init__(self, text: str) -> None:
        """`text` may quote other programs; it becomes one line."""
        super().__init__(" ".join(text.split()))


class FinalError(NexmarkError):
    """An error that a second try does not mend: a task that meets it is not tried again."""


class ConfigError(NexmarkError):
    """`file:line: key: what is wrong; remedy`, in one line."""


class KeyedError(ValueError):
    """A value that is wrong at a place below the one that is checked: the keys down to it."""

    def __init__(self, keys: tuple[str, ...], problem: str) -> None:
        """Name the problem of the value at `keys`."""
        super().__init__(problem)
        self.keys = keys


def suggest(name: object, known: Iterable[str]) -> str:
    """Return the remedy for an unknown name: the nearest known one, else all of them.

    >>> suggest("q55", ["q5", "q6"])
    "did you mean 'q5'?"
    """
    names = list(known)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known: {', '.join(names)}" if names else "none is known"
