"""The final table that the output rows of a query in a topic make."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nexmark.expectations.contract import contract
from nexmark_jobs.queries import QUERIES

if TYPE_CHECKING:
    from nexmark.kafka.topics import KafkaCluster


@contextmanager
def row_topic(servers: str) -> Iterator[tuple[KafkaCluster, str]]:
    """A new topic for output rows, in one partition, so that they keep their order."""
    from nexmark.kafka.topics import KafkaCluster

    kafka, topic = KafkaCluster(servers), f"nexmark-recovery-{uuid.uuid4().hex[:10]}"
    kafka.create(topic, 1)
    try:
        yield kafka, topic
    finally:
        kafka.delete(topic)


def table_of(values: Iterable[str | bytes], query: str, target: Path) -> int:
    """Write the final table to `target`, a new directory: `values` are rows as JSON, in order.

    Later rows replace earlier ones of the same key; without a key, equal rows count once.

    Returns:
        How many rows are there again, equal in all columns.
    """
    import duckdb

    target.mkdir()
    lines, columns, key = target / "rows.jsonl", contract(query).columns, QUERIES[query].key
    with lines.open("w") as file:
        for number, value in enumerate(values):
            print(json.dumps({"n": number, "row": json.loads(value)}), file=file)
    row = ", ".join(f"{column.name} VARCHAR" for column in columns)
    casts = ", ".join(
        f'CAST("row".{column.name} AS {column.type}) {column.name}' for column in columns
    )
    names = ", ".join(column.name for column in columns)
    of_key = f"PARTITION BY {', '.join(key)} ORDER BY n DESC" if key else f"PARTITION BY {names}"
    with duckdb.connect() as database:
        database.execute(
            f"CREATE TABLE found AS SELECT n, {casts} FROM read_json(?, columns = "
            f"{{n: 'BIGINT', row: 'STRUCT({row})'}}, format = 'newline_delimited')",
            [str(lines)],
        )
        database.execute(
            f"COPY (SELECT {names} FROM found QUALIFY row_number() OVER ({of_key}) = 1) "
            f"TO '{target / 'part-0.parquet'}'"
        )
        counted = f"SELECT count(*) - count(DISTINCT ({names})) FROM found"
        (repeated,) = database.execute(counted).fetchone() or (0,)
    lines.unlink()
    return int(repeated)
