"""Paired nights: both arms, stages, canary, self-test, their verdicts; acceptances that expire.

Revision: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

REFUSED = "acceptances are only ever added"

SQLITE_APPEND_ONLY = f"""
CREATE TRIGGER acceptance_no_{{0}} BEFORE {{0}} ON acceptance
BEGIN SELECT RAISE(ABORT, '{REFUSED}'); END
"""

POSTGRESQL_APPEND_ONLY = (
    f"""
CREATE FUNCTION acceptance_is_append_only() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION '{REFUSED}'; END $$
""",
    """
CREATE TRIGGER acceptance_append_only BEFORE UPDATE OR DELETE ON acceptance
FOR EACH ROW EXECUTE FUNCTION acceptance_is_append_only()
""",
)

BUILD_OF_THE_NIGHT = """
UPDATE acceptance SET build_id = (SELECT build_id FROM night WHERE night.id = acceptance.night_id)
"""


def upgrade() -> None:
    _night()
    _repetition()
    _acceptance()
    _verdict()
    op.create_table(
        "canary",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("night_id", sa.String(length=400), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("group", sa.String(length=100), nullable=False),
        sa.Column("moment", sa.String(length=100), nullable=False),
        sa.Column("metric", sa.String(length=100), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("taken", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["night_id"], ["night.id"], name="fk_canary_night_id_night"),
        sa.PrimaryKeyConstraint("id", name="pk_canary"),
    )
    op.create_index("ix_canary_night_id", "canary", ["night_id"], unique=False)
    op.create_table(
        "self_test",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("night_id", sa.String(length=400), nullable=False),
        sa.Column("kind", sa.String(length=100), nullable=False),
        sa.Column("query", sa.String(length=100), nullable=False),
        sa.Column("size", sa.Double(), nullable=False),
        sa.Column("value", sa.String(length=100), nullable=False),
        sa.Column("ratio", sa.Double(), nullable=True),
        sa.Column("lo", sa.Double(), nullable=True),
        sa.Column("hi", sa.Double(), nullable=True),
        sa.Column("gate_version", sa.BigInteger(), nullable=False),
        sa.Column("judged", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["night_id"], ["night.id"], name="fk_self_test_night_id_night"),
        sa.PrimaryKeyConstraint("id", name="pk_self_test"),
        sa.UniqueConstraint(
            "night_id",
            "kind",
            "query",
            "gate_version",
            name="uq_self_test_night_id_kind_query_gate_version",
        ),
    )


def _night() -> None:
    for column in (
        sa.Column("mode", sa.String(length=100), nullable=False, server_default="bounds"),
        sa.Column("baselines", sa.JSON(), nullable=True),
        sa.Column("seed", sa.BigInteger(), nullable=True),
        sa.Column("gate_spec", sa.JSON(), nullable=True),
        sa.Column("grade", sa.String(length=255), nullable=True),
        sa.Column("grade_reason", sa.Text(), nullable=True),
    ):
        op.add_column("night", column)


def _repetition() -> None:
    with op.batch_alter_table("repetition") as table:
        table.add_column(sa.Column("stage", sa.BigInteger(), nullable=False, server_default="1"))
        table.add_column(sa.Column("position", sa.BigInteger(), nullable=True))
        table.drop_constraint("uq_repetition_night_id_query_arm_number", type_="unique")
        table.create_unique_constraint(
            "uq_repetition_night_id_query_arm_stage_number",
            ["night_id", "query", "arm", "stage", "number"],
        )


def _acceptance() -> None:
    cpu = "cpu_s_per_mevent"
    with op.batch_alter_table("acceptance") as table:
        table.add_column(
            sa.Column("metric", sa.String(length=100), nullable=False, server_default=cpu)
        )
        table.add_column(sa.Column("build_id", sa.String(length=255), nullable=True))
        table.add_column(sa.Column("size", sa.Double(), nullable=True))
        table.add_column(sa.Column("expires", sa.DateTime(timezone=True), nullable=True))
        table.add_column(sa.Column("link", sa.Text(), nullable=True))
        table.create_foreign_key("fk_acceptance_build_id_build", "build", ["build_id"], ["id"])
    op.execute(BUILD_OF_THE_NIGHT)  # the triggers of 0001 went with the table they were on
    if op.get_bind().dialect.name == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(SQLITE_APPEND_ONLY.format(change))
    elif op.get_bind().dialect.name == "postgresql":
        for statement in POSTGRESQL_APPEND_ONLY:
            op.execute(statement)


def _verdict() -> None:
    with op.batch_alter_table("verdict") as table:
        table.alter_column("bound", existing_type=sa.Double(), nullable=True)
        table.add_column(
            sa.Column("mode", sa.String(length=100), nullable=False, server_default="bounds")
        )
        table.add_column(
            sa.Column("decides", sa.Boolean(), nullable=False, server_default=sa.true())
        )
        for name in ("lo", "hi", "mde", "shift", "spread", "noise"):
            table.add_column(sa.Column(name, sa.Double(), nullable=True))
        for name in ("pairs", "fresh_pairs"):
            table.add_column(sa.Column(name, sa.BigInteger(), nullable=True))
        for name in ("drift_slower", "drift_faster"):
            table.add_column(sa.Column(name, sa.Double(), nullable=False, server_default="0"))
        table.add_column(sa.Column("baseline_build", sa.Text(), nullable=True))
        table.add_column(sa.Column("acceptance_id", sa.Integer(), nullable=True))
        table.create_foreign_key(
            "fk_verdict_acceptance_id_acceptance", "acceptance", ["acceptance_id"], ["id"]
        )


def downgrade() -> None:
    raise RuntimeError("there is no way back to 0001: it has no place for a second arm or stage")
