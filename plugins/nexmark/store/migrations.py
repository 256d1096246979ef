"""The changes of the schema since the first release, in order.

A new database is made from the rows. Each change runs within the transaction of the connection;
``versions`` keeps the number of the last one. A released change is never edited.
"""

from collections.abc import Callable

from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import JSON, BigInteger, Column, Connection, String

from nexmark.store import versions


def _add_further_pairs(op: Operations) -> None:
    op.add_column("verdict", Column("further_pairs", BigInteger))


def _add_revisions(op: Operations) -> None:
    op.add_column("build", Column("revision", String(64)))


def _add_started_by(op: Operations) -> None:
    op.add_column("night", Column("started_by", String(255)))
    op.execute(
        "UPDATE night SET started_by = 'scheduled' WHERE run_id LIKE 'scheduled!_!_%' ESCAPE '!'"
    )


def _add_ageing(op: Operations) -> None:
    op.add_column("repetition", Column("ageing", JSON))


def _add_indexes_of_pages(op: Operations) -> None:
    op.drop_index("ix_night_engine", "night")
    place = ["engine", "workload", "cluster"]
    op.create_index("ix_night_engine_workload_cluster_started", "night", [*place, "started"])
    op.create_index("ix_verdict_value", "verdict", ["value"])


def _add_changes(op: Operations) -> None:
    column = Column(versions.CHANGES, BigInteger, nullable=False, server_default="0")
    op.add_column(versions.TABLE, column)


CHANGES: dict[str, Callable[[Operations], None]] = {
    "0014": _add_further_pairs,
    "0015": _add_revisions,
    "0016": _add_started_by,
    "0017": _add_ageing,
    "0018": _add_indexes_of_pages,
    "0019": _add_changes,
}
"""By the number of the schema that a change makes; the first one is ``versions.FIRST`` plus 1."""


def migrate(connection: Connection, current: str, revision: str) -> None:
    """Bring the schema from the revision ``current`` to another, newer one."""
    op = Operations(MigrationContext.configure(connection))
    for number, change in CHANGES.items():
        if current < number <= revision:
            change(op)
    versions.write(connection, revision)
