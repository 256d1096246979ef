"""Acceptances can be taken back: a row of its own says so, nothing is changed or deleted.

Revision: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

REFUSED = "withdrawals are only ever added"

SQLITE_APPEND_ONLY = f"""
CREATE TRIGGER withdrawal_no_{{0}} BEFORE {{0}} ON withdrawal
BEGIN SELECT RAISE(ABORT, '{REFUSED}'); END
"""

POSTGRESQL_APPEND_ONLY = (
    f"""
CREATE FUNCTION withdrawal_is_append_only() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION '{REFUSED}'; END $$
""",
    """
CREATE TRIGGER withdrawal_append_only BEFORE UPDATE OR DELETE ON withdrawal
FOR EACH ROW EXECUTE FUNCTION withdrawal_is_append_only()
""",
)


def upgrade() -> None:
    op.create_table(
        "withdrawal",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("acceptance_id", sa.Integer(), nullable=False),
        sa.Column("who", sa.String(length=255), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("withdrawn", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["acceptance_id"], ["acceptance.id"], name="fk_withdrawal_acceptance_id_acceptance"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_withdrawal"),
        sa.UniqueConstraint("acceptance_id", name="uq_withdrawal_acceptance_id"),
    )
    if op.get_bind().dialect.name == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(SQLITE_APPEND_ONLY.format(change))
    elif op.get_bind().dialect.name == "postgresql":
        for statement in POSTGRESQL_APPEND_ONLY:
            op.execute(statement)


def downgrade() -> None:
    op.drop_table("withdrawal")
