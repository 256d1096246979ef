"""A slower version of a job of each kind: SQL over Nexmark's events, an application, own files.

Each row is put through a loop of its own, so the rows stay as they are and the tasks take longer.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.nights.files_job import JOB

APPLICATION, SQL = "orders", "counted_bids"


def loop(column: str, turns: int) -> str:
    """Return an expression that is 0, after some turns for each row."""
    return f"size(filter(sequence(1, {turns} + CAST({column} AS INT)), number -> number < 0))"


#: By job, its file, and what the change puts there in place of what.
SLOWER = {
    SQL: (f"{SQL}.sql", "max(price)", f"max(price + {loop('bidder % 100', 12_000)})"),
    JOB: (f"{JOB}.py", "plus_one(amount)", f"plus_one(amount) + {loop('amount', 50_000)}"),
    APPLICATION: (
        "orders.py",
        'where("amount > 50")',
        f'where("amount > 50").where("{loop("amount", 100_000)} = 0")',
    ),
}


def write_slower(jobs: Path, directory: Path, *slower: str) -> Path:
    """Copy all jobs to a new directory, some of them slower; return the directory."""
    shutil.copytree(jobs, directory)
    for job in slower:
        file, old, new = SLOWER[job]
        text = (directory / file).read_text()
        assert old in text
        (directory / file).write_text(text.replace(old, new))
    return directory
