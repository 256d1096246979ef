"""What can be wrong with the input of a validation, as one line for a person."""

from __future__ import annotations

__all__ = ["EventsError", "ExpectationsError", "OutputError"]


class ExpectationsError(ValueError):
    """A validation that cannot be made. The text is one line: what, where, remedy."""


class EventsError(ExpectationsError):
    """The events cannot be read, or are not Nexmark events."""


class OutputError(ExpectationsError):
    """The query's output cannot be read."""
