"""Tables of a person's own, laid out in files so that every run reads the same micro-batches.

<directory>/tables.json           what is known of each table: `LaidOutTable`
<directory>/NAME/00000-00.parquet a part of the rows of a micro-batch

Every micro-batch of a table has the same number of files, because Spark counts files, not rows. The
files are in the order of their names, and so are their modification times, by which Spark reads.
`nexmark.inputs` writes such a directory.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from nexmark_jobs.errors import UsageError

_TABLES_FILE = "tables.json"


@dataclass(frozen=True)
class LaidOutTable:
    """A table in a directory.

    Attributes:
        name: its name, and the name of its directory.
        rows: the number of rows of each micro-batch; of a static table, one number.
        files_per_batch: the number of files of each micro-batch.
        static: whether it is no stream, but there as a whole from the start.
        event_time: the column of the event time; None for none.
        watermark: how much later than newer rows a row may come, as Spark writes it; None for none.
    """

    name: str
    rows: tuple[int, ...]
    files_per_batch: int
    static: bool = False
    event_time: str | None = None
    watermark: str | None = None


def write_tables(directory: Path, tables: list[LaidOutTable]) -> None:
    """Write what is known of the tables in a directory."""
    text = json.dumps([asdict(table) for table in tables], indent=1) + "\n"
    (directory / _TABLES_FILE).write_text(text, encoding="utf-8")


def read_tables(directory: Path) -> list[LaidOutTable]:
    """Return the tables in a directory; UsageError if it has none."""
    try:
        content = json.loads((directory / _TABLES_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        problem = f"{directory} holds no {_TABLES_FILE}"
        raise UsageError(f"--source: {problem}; give a directory of laid out tables") from None
    return [LaidOutTable(**{**each, "rows": tuple(each["rows"])}) for each in content]
