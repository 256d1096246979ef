"""The changes of the schema since the first one, in order; a new database is made from the rows.

Each change runs within the transaction of the connection. ``alembic_version`` has the number of the
last one. A table that has not changed since it was new is made from its rows here, too; a change of
such a table has to write out first how it was new, or migrations from before it fail (and a test).
"""

from collections.abc import Callable

import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Column, Connection

from nexmark.config import BUILD_DAG_ID, SIGNOFF_DAG_ID
from nexmark.model import CPU, Mode
from nexmark.store.table_base import NAME, append_only
from nexmark.store.table_rows import NightRow


def migrate(connection: Connection, current: str, revision: str) -> None:
    """Bring the schema from the revision ``current`` to another, newer one."""
    op = Operations(MigrationContext.configure(connection))
    for number, change in CHANGES.items():
        if current < number <= revision:
            change(op)
    connection.execute(sa.text("UPDATE alembic_version SET version_num = :n"), {"n": revision})


def _paired_nights(op: Operations) -> None:
    """Both arms, stages, canary, self-test, their verdicts; acceptances that expire."""
    for column in (
        _mode(),
        Column("baselines", sa.JSON),
        Column("seed", sa.BigInteger),
        Column("gate_spec", sa.JSON),
        Column("grade", sa.String(255)),
        Column("grade_reason", sa.Text),
    ):
        op.add_column("night", column)
    with op.batch_alter_table("repetition") as table:
        table.add_column(Column("stage", sa.BigInteger, nullable=False, server_default="1"))
        table.add_column(Column("position", sa.BigInteger))
        unique = ["night_id", "query", "arm", "stage", "number"]
        table.drop_constraint("uq_repetition_night_id_query_arm_number", type_="unique")
        table.create_unique_constraint(f"uq_repetition_{'_'.join(unique)}", unique)
    with op.batch_alter_table("acceptance") as table:
        table.add_column(Column("metric", NAME, nullable=False, server_default=CPU))
        table.add_column(Column("build_id", sa.String(255)))
        table.add_column(Column("size", sa.Double))
        table.add_column(Column("expires", sa.DateTime(timezone=True)))
        table.add_column(Column("link", sa.Text))
        table.create_foreign_key("fk_acceptance_build_id_build", "build", ["build_id"], ["id"])
    op.execute(
        "UPDATE acceptance SET build_id ="
        " (SELECT build_id FROM night WHERE night.id = acceptance.night_id)"
    )
    # The triggers of 0001 went with the table they were on.
    append_only(NightRow.metadata.tables["acceptance"], op.get_bind())
    with op.batch_alter_table("verdict") as table:
        table.alter_column("bound", existing_type=sa.Double, nullable=True)
        table.add_column(_mode())
        table.add_column(Column("decides", sa.Boolean, nullable=False, server_default=sa.true()))
        for name in ("lo", "hi", "mde", "shift", "spread", "noise"):
            table.add_column(Column(name, sa.Double))
        for name in ("pairs", "fresh_pairs"):
            table.add_column(Column(name, sa.BigInteger))
        for name in ("drift_slower", "drift_faster"):
            table.add_column(Column(name, sa.Double, nullable=False, server_default="0"))
        table.add_column(Column("baseline_build", sa.Text))
        table.add_column(Column("acceptance_id", sa.Integer))
        link = ("fk_verdict_acceptance_id_acceptance", "acceptance", ["acceptance_id"], ["id"])
        table.create_foreign_key(*link)
    _make(op, "canary")
    _make(op, "self_test")


def _parts(op: Operations) -> None:
    """Add the operators and stages of each repetition."""
    op.add_column("repetition", Column("parts_problem", sa.Text))
    _make(op, "part")


def _indices_of_history(op: Operations) -> None:
    """The history of a query, and the newest night of a DAG, are found without reading all rows."""
    op.create_index("ix_verdict_query_metric", "verdict", ["query", "metric"])
    op.create_index("ix_night_dag_id_started", "night", ["dag_id", "started"])


def _what_teaches(op: Operations) -> None:
    """A night keeps whether the gate learns from it.

    Nights of before did not keep what was given by hand. They teach as they did, but for sign-offs.
    """
    teaches = Column("teaches", sa.Boolean, nullable=False, server_default=sa.true())
    op.add_column("night", teaches)
    night = sa.table(
        "night", sa.column("dag_id"), sa.column("candidate_conf"), sa.column("teaches", sa.Boolean)
    )
    by_hand = night.c.dag_id.in_([BUILD_DAG_ID, SIGNOFF_DAG_ID])
    trial = by_hand | night.c.candidate_conf.is_not(None)
    op.execute(sa.update(night).where(trial).values(teaches=False))


CHANGES: dict[str, Callable[[Operations], None]] = {
    "0002": _paired_nights,
    "0003": lambda op: _make(op, "withdrawal"),
    "0004": _parts,
    "0005": lambda op: op.add_column("night", Column("candidate_conf", sa.JSON)),
    "0006": _indices_of_history,
    "0007": _what_teaches,
    "0008": lambda op: op.add_column("repetition", Column("figures", sa.JSON)),
    "0009": lambda op: _make(op, "compatibility"),
    "0010": lambda op: op.add_column("repetition", Column("latency", sa.Text)),
    "0011": lambda op: _make(op, "experiment"),
    "0012": lambda op: _make(op, "broker_bench"),
}


def _mode() -> Column[str]:
    return Column("mode", NAME, nullable=False, server_default=Mode.BOUNDS.value)


def _make(op: Operations, table: str) -> None:
    """Make a table that has not changed since."""
    NightRow.metadata.tables[table].create(op.get_bind(), checkfirst=False)
