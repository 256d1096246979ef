"""What became of a query's verification run, kept beside its output.

<run directory>/<query>/verification.json
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from nexmark.config.fields import Model

_NAME = "verification.json"


class Verification(Model):
    """Whether the verified result is right, and if not, why (a line per failed expectation)."""

    success: bool
    failures: tuple[str, ...] = ()
    evaluated: int = 0
    statistics: Mapping[str, float | int | None] = Field(default_factory=dict)

    def write(self, directory: Path) -> None:
        """Write it into the query's directory."""
        directory.mkdir(parents=True, exist_ok=True)
        (directory / _NAME).write_text(self.model_dump_json(indent=1))

    @classmethod
    def read(cls, directory: Path) -> Verification | None:
        """The verification of the query in `directory`; None if it did not get so far."""
        try:
            return cls.model_validate_json((directory / _NAME).read_text())
        except FileNotFoundError:
            return None


__all__ = ["Verification"]
