"""A file that keeps the runs of a long measurement, so that the same command can go on with it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nexmark.errors import NexmarkError


@dataclass
class KeptRuns:
    """The runs of one measurement, a line of JSON each: the same command goes on after the last.

    `of` is what is measured; a file of anything else is refused. `found` is by round and arm.
    """

    of: str
    file: Path
    found: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take what an earlier command has measured; NexmarkError if that asked for others."""
        for line in self.file.read_text().splitlines() if self.file.exists() else ():
            kept = json.loads(line)
            if kept["of"] != self.of:
                held = f"holds runs of {kept['of']}, not of {self.of}"
                raise NexmarkError(f"{self.file}: {held}; name another file")
            self.found[kept["round"], kept["arm"]] = kept

    def keep(self, number: int, arm: str, figures: Mapping[str, Any]) -> None:
        """Add a run."""
        self.found[number, arm] = dict(figures)
        with self.file.open("a") as file:
            print(json.dumps({"of": self.of, "round": number, "arm": arm, **figures}), file=file)
