"""What an inspection found: a column per question and a row per host, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class HostReport:
    """What was found on a host: `cells` by column of the table, and what is wrong, a line each."""

    host: str
    cells: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def note(self, column: str, text: str, problem: str = "") -> None:
        """Fill a cell; a problem marks it and is told below the table."""
        self.cells[column] = f"{text} !" if problem else text
        if problem:
            self.problems.append(f"host {self.host}: {problem}")


@dataclass(frozen=True)
class Inspection:
    """The reports of all hosts."""

    reports: tuple[HostReport, ...]

    @property
    def problems(self) -> list[str]:
        """What keeps a night from being run."""
        return [problem for report in self.reports for problem in report.problems]

    @property
    def warnings(self) -> list[str]:
        """What makes figures worse than they could be."""
        return [warning for report in self.reports for warning in report.warnings]

    def __str__(self) -> str:
        """The table; `!` marks what is wrong."""
        columns = list(dict.fromkeys(c for report in self.reports for c in report.cells))
        rows = [["host", *columns]]
        rows += [[r.host, *(r.cells.get(c, "-") for c in columns)] for r in self.reports]
        widths = [max(len(row[i]) for row in rows) for i in range(len(columns) + 1)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
                 for row in rows]  # fmt: skip
        return "\n".join(lines)


__all__ = ["HostReport", "Inspection"]
