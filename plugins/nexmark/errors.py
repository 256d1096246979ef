"""The one exception base for conditions that a user can put right."""

from __future__ import annotations


class NexmarkError(Exception):
    """What is wrong, where, and the remedy, in one line; commands print it and exit with 1."""

    def __init__(self, text: str) -> None:
        """`text` may quote other programs; it becomes one line."""
        super().__init__(" ".join(text.split()))


__all__ = ["NexmarkError"]
