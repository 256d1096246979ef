"""The changes of the schema since the first one, in order; a new database is made from the rows.

Each change runs within the transaction of the connection; ``versions`` keeps the number of the last
one.
"""

from collections.abc import Callable

import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Column, Connection

from nexmark.config import BUILD_DAG_ID, SIGNOFF_DAG_ID
from nexmark.model import CPU, Mode
from nexmark.store import versions
from nexmark.store.table_base import NAME, append_only


def migrate(connection: Connection, current: str, revision: str) -> None:
    """Bring the schema from the revision ``current`` to another, newer one."""
    op = Operations(MigrationContext.configure(connection))
    for number, change in CHANGES.items():
        if current < number <= revision:
            change(op)
    versions.write(connection, revision)


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
    append_only("acceptance", op.get_bind())
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
    op.create_table(
        "canary",
        *_of_night("canary"),
        Column("host", sa.String(255), nullable=False),
        Column("group", NAME, nullable=False),
        Column("moment", NAME, nullable=False),
        Column("metric", NAME, nullable=False),
        Column("value", sa.Double),
        Column("taken", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_canary_night_id", "canary", ["night_id"])
    unique = ["night_id", "kind", "query", "gate_version"]
    op.create_table(
        "self_test",
        *_of_night("self_test"),
        Column("kind", NAME, nullable=False),
        Column("query", NAME, nullable=False),
        Column("size", sa.Double, nullable=False),
        Column("value", NAME, nullable=False),
        *(Column(name, sa.Double) for name in ("ratio", "lo", "hi")),
        Column("gate_version", sa.BigInteger, nullable=False),
        Column("judged", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint(*unique, name=f"uq_self_test_{'_'.join(unique)}"),
    )


def _withdrawals(op: Operations) -> None:
    """Acceptances can be taken back: a row of its own says so, nothing is changed or deleted."""
    reference = "fk_withdrawal_acceptance_id_acceptance"
    op.create_table(
        "withdrawal",
        Column("id", sa.Integer, nullable=False),
        Column("acceptance_id", sa.Integer, nullable=False),
        Column("who", sa.String(255), nullable=False),
        Column("reason", sa.Text, nullable=False),
        Column("withdrawn", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["acceptance_id"], ["acceptance.id"], name=reference),
        sa.PrimaryKeyConstraint("id", name="pk_withdrawal"),
        sa.UniqueConstraint("acceptance_id", name="uq_withdrawal_acceptance_id"),
    )
    append_only("withdrawal", op.get_bind())


def _parts(op: Operations) -> None:
    """Add the operators and stages of each repetition."""
    op.add_column("repetition", Column("parts_problem", sa.Text))
    op.create_table(
        "part",
        Column("repetition_id", sa.Integer, nullable=False),
        Column("place", sa.Integer, nullable=False),
        Column("kind", NAME, nullable=False),
        Column("name", sa.Text, nullable=False),
        Column("cpu_s", sa.Double),
        Column("parent", sa.Integer),
        Column("depth", sa.Integer, nullable=False),
        Column("stage", sa.Integer),
        Column("covers", sa.JSON, nullable=False),
        Column("metrics", sa.JSON, nullable=False),
        sa.ForeignKeyConstraint(
            ["repetition_id"],
            ["repetition.id"],
            name="fk_part_repetition_id_repetition",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repetition_id", "place", name="pk_part"),
    )


def _candidate_conf(op: Operations) -> None:
    """A night keeps the Spark confs that its candidate alone had."""
    op.add_column("night", Column("candidate_conf", sa.JSON))


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


def _figures(op: Operations) -> None:
    """A repetition keeps the figures of metrics that have no column of their own."""
    op.add_column("repetition", Column("figures", sa.JSON))


def _compatibility(op: Operations) -> None:
    """A night keeps whether running queries survive its candidate."""
    texts = ("forward", "backward", "checkpoint", "reason")
    op.create_table(
        "compatibility",
        *_of_night("compatibility"),
        Column("query", NAME, nullable=False),
        Column("baseline_build", sa.String(255), nullable=False),
        Column("outcome", NAME, nullable=False),
        Column("red", sa.Boolean, nullable=False),
        Column("plans", NAME, nullable=False),
        *(Column(name, sa.Text, nullable=False) for name in texts),
        *(Column(name, sa.Text) for name in ("baseline_plan", "candidate_plan")),
        Column("checked", sa.DateTime(timezone=True), nullable=False),
        sa.UniqueConstraint("night_id", "query", name="uq_compatibility_night_id_query"),
    )


def _latency(op: Operations) -> None:
    """A paced repetition keeps the latencies of all of its events."""
    op.add_column("repetition", Column("latency", sa.Text))


def _experiments(op: Operations) -> None:
    """Add the arms of experiments with their cost and saving."""
    whole = (("pairs", False), ("size", False), ("state_rows", True), ("exchanges", True))
    op.create_table(
        "experiment",
        Column("id", sa.Integer, nullable=False),
        Column("run", sa.String(400), nullable=False),
        Column("measured", sa.DateTime(timezone=True), nullable=False),
        *(
            Column(name, NAME, nullable=False)
            for name in ("name", "spark_version", "query", "arm", "outcome")
        ),
        *(Column(name, sa.Text, nullable=False) for name in ("question", "told")),
        *(Column(name, sa.BigInteger, nullable=empty) for name, empty in whole),
        *(
            Column(name, sa.Double)
            for name in ("cpu_s_per_mevent", "saves", "lo", "hi", "wall_s", "text_gain")
        ),
        Column("text", sa.Text),
        Column("attribution", sa.JSON),
        sa.PrimaryKeyConstraint("id", name="pk_experiment"),
    )
    op.create_index("ix_experiment_run", "experiment", ["run"])


def _broker_bench(op: Operations) -> None:
    """The figures of brokers are kept."""
    op.create_table(
        "broker_bench",
        Column("id", sa.Integer, nullable=False),
        Column("cluster", sa.Text, nullable=False),
        Column("measured", sa.DateTime(timezone=True), nullable=False),
        Column("figures", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_broker_bench"),
    )


CHANGES: dict[str, Callable[[Operations], None]] = {
    "0002": _paired_nights,
    "0003": _withdrawals,
    "0004": _parts,
    "0005": _candidate_conf,
    "0006": _indices_of_history,
    "0007": _what_teaches,
    "0008": _figures,
    "0009": _compatibility,
    "0010": _latency,
    "0011": _experiments,
    "0012": _broker_bench,
}


def _mode() -> Column[str]:
    return Column("mode", NAME, nullable=False, server_default=Mode.BOUNDS.value)


def _of_night(table: str) -> tuple[sa.schema.SchemaItem, ...]:
    """Return what every table of a night begins with: its key, and the night's."""
    reference = f"fk_{table}_night_id_night"
    return (
        Column("id", sa.Integer, nullable=False),
        Column("night_id", sa.String(400), nullable=False),
        sa.ForeignKeyConstraint(["night_id"], ["night.id"], name=reference),
        sa.PrimaryKeyConstraint("id", name=f"pk_{table}"),
    )
