"""A file that keeps the runs of a long measurement, so that the same command can go on with it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nexmark.errors import NexmarkError


@dataclass
class KeptRuns:
    """The runs of one measurement, kept in a file that has a line of JSON for each.

    Attributes:
        of: What is measured, in words: a file that keeps runs of something else is refused.
        file: The file.
        figures: The figures of each run, by its round and its arm.
    """

    of: str
    file: Path
    figures: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the runs of an earlier command; NexmarkError if that measured something else."""
        for line in self.file.read_text().splitlines() if self.file.exists() else ():
            kept = json.loads(line)
            if kept["of"] != self.of:
                held = f"holds runs of {kept['of']}, not of {self.of}"
                raise NexmarkError(f"{self.file}: {held}; name another file")
            self.figures[kept["round"], kept["arm"]] = kept

    def keep(self, number: int, arm: str, figures: Mapping[str, Any]) -> None:
        """Add the figures of a run of the round `number`, and write them to the file."""
        self.figures[number, arm] = dict(figures)
        with self.file.open("a") as file:
            print(json.dumps({"of": self.of, "round": number, "arm": arm, **figures}), file=file)
