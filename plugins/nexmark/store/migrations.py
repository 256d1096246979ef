"""The changes of the schema since the first one, in order; a new database is made from the rows.

Each change runs within the transaction of the connection. ``alembic_version`` has the number of the
last one. A table or a column that has not changed since it was new is taken from the rows; whoever
changes it writes out here how it was when it was new. A test migrates from every revision.
"""

from collections.abc import Callable

import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations

from nexmark.config import BUILD_DAG_ID, SIGNOFF_DAG_ID
from nexmark.store.table_base import append_only
from nexmark.store.table_rows import NightRow

_TABLES = NightRow.metadata.tables


def migrate(connection: sa.Connection, current: str, revision: str) -> None:
    """Bring the schema from the revision ``current`` to another, newer one."""
    op = Operations(MigrationContext.configure(connection))
    for number, change in CHANGES.items():
        if current < number <= revision:
            change(op)
    connection.execute(sa.text("UPDATE alembic_version SET version_num = :n"), {"n": revision})


def _paired_nights(op: Operations) -> None:
    """Both arms, stages, canary, self-test, their verdicts; acceptances that expire."""
    for name in ("mode", "baselines", "seed", "gate_spec", "grade", "grade_reason"):
        _add(op, "night", name)
    with op.batch_alter_table("repetition") as table:
        for name in ("stage", "position"):
            table.add_column(_TABLES["repetition"].c[name])
        unique = ["night_id", "query", "arm", "stage", "number"]
        table.drop_constraint("uq_repetition_night_id_query_arm_number", type_="unique")
        table.create_unique_constraint(f"uq_repetition_{'_'.join(unique)}", unique)
    with op.batch_alter_table("acceptance") as table:
        for name in ("metric", "size", "expires", "link"):
            table.add_column(_TABLES["acceptance"].c[name])
        table.add_column(sa.Column("build_id", sa.String(255)))
        table.create_foreign_key("fk_acceptance_build_id_build", "build", ["build_id"], ["id"])
    op.execute(
        "UPDATE acceptance SET build_id ="
        " (SELECT build_id FROM night WHERE night.id = acceptance.night_id)"
    )
    # The triggers of 0001 went with the table they were on.
    append_only(_TABLES["acceptance"], op.get_bind())
    with op.batch_alter_table("verdict") as table:
        table.alter_column("bound", existing_type=sa.Double, nullable=True)
        for name in (
            *("mode", "decides", "lo", "hi", "mde", "shift", "spread", "noise", "pairs"),
            *("fresh_pairs", "drift_slower", "drift_faster", "baseline_build"),
        ):
            table.add_column(_TABLES["verdict"].c[name])
        table.add_column(sa.Column("acceptance_id", sa.Integer))
        link = ("fk_verdict_acceptance_id_acceptance", "acceptance", ["acceptance_id"], ["id"])
        table.create_foreign_key(*link)
    _make(op, "canary")
    _make(op, "self_test")


def _parts(op: Operations) -> None:
    """Add the operators and stages of each repetition."""
    _add(op, "repetition", "parts_problem")
    _make(op, "part")


def _indices_of_history(op: Operations) -> None:
    """The history of a query, and the newest night of a DAG, are found without reading all rows."""
    op.create_index("ix_verdict_query_metric", "verdict", ["query", "metric"])
    op.create_index("ix_night_dag_id_started", "night", ["dag_id", "started"])


def _what_teaches(op: Operations) -> None:
    """A night keeps whether the gate learns from it.

    Nights of before did not keep what was given by hand. They teach as they did, but for sign-offs.
    """
    _add(op, "night", "teaches")
    by_hand = NightRow.dag_id.in_([BUILD_DAG_ID, SIGNOFF_DAG_ID])
    trial = by_hand | NightRow.candidate_conf.is_not(None)
    op.execute(sa.update(NightRow).where(trial).values(teaches=False))


CHANGES: dict[str, Callable[[Operations], None]] = {
    "0002": _paired_nights,
    "0003": lambda op: _make(op, "withdrawal"),
    "0004": _parts,
    "0005": lambda op: _add(op, "night", "candidate_conf"),
    "0006": _indices_of_history,
    "0007": _what_teaches,
    "0008": lambda op: _add(op, "repetition", "figures"),
    "0009": lambda op: _make(op, "compatibility"),
    "0010": lambda op: _add(op, "repetition", "latency"),
    "0011": lambda op: _make(op, "experiment"),
    "0012": lambda op: _make(op, "broker_bench"),
}


def _add(op: Operations, table: str, name: str) -> None:
    op.add_column(table, _TABLES[table].c[name])


def _make(op: Operations, table: str) -> None:
    _TABLES[table].create(op.get_bind(), checkfirst=False)
