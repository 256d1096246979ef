"""The outcome of a query's verification run, kept beside its output.

<run directory>/<query>/verification.json
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from nexmark.config.fields import Model

_NAME = "verification.json"


class Verification(Model):
    """The answer on the verified results: right or not, and a line per failed expectation.

    `evaluated` counts the expectations. `statistics` describe the generated events; statistics of
    the boundary events have the prefix `boundary_`.
    """

    success: bool
    failures: tuple[str, ...] = ()
    evaluated: int = 0
    statistics: Mapping[str, float | int | None] = Field(default_factory=dict)

    def with_boundary(self, boundary: Verification) -> Verification:
        """This verification merged with the verification over the boundary events."""
        failures = (f"over the boundary events: {failure}" for failure in boundary.failures)
        numbers = {f"boundary_{name}": value for name, value in boundary.statistics.items()}
        return Verification(
            success=self.success and boundary.success,
            failures=(*self.failures, *failures),
            evaluated=self.evaluated + boundary.evaluated,
            statistics={**self.statistics, **numbers},
        )

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
