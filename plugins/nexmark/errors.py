"""Define the errors that a user can correct: the base class, errors of `include/conf`, remedies."""

import difflib
from collections.abc import Iterable


class NexmarkError(Exception):
    """An error in one line: problem, place and remedy; commands print it and exit with 2."""

    def __init__(self, text: str) -> None:
        """Make the error from `text`, which may quote other programs; it becomes one line."""
        super().__init__(" ".join(text.split()))


class FinalError(NexmarkError):
    """An error that a second try does not correct: a task that raises it is not tried again."""


class ConfigError(NexmarkError):
    """An error in `include/conf`: `file:line: key: what is wrong; remedy`, in one line."""


class KeyedError(ValueError):
    """A wrong value somewhere below the value that is checked; `keys` lead from there to it."""

    def __init__(self, keys: tuple[str, ...], problem: str) -> None:
        """Make the error from the keys of the value and its problem."""
        super().__init__(problem)
        self.keys = keys


def suggest(name: object, known: Iterable[str]) -> str:
    """Return the remedy for an unknown name: the most similar known name, else all known names.

    >>> suggest("q55", ["q5", "q6"])
    "did you mean 'q5'?"
    """
    names = list(known)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known: {', '.join(names)}" if names else "none is known"
