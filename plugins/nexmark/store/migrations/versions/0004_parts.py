"""What each operator and stage of a repetition did, as its event log told.

Revision: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("repetition", sa.Column("parts_problem", sa.Text(), nullable=True))
    op.create_table(
        "part",
        sa.Column("repetition_id", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=100), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("cpu_s", sa.Double(), nullable=True),
        sa.Column("parent", sa.Integer(), nullable=True),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("stage", sa.Integer(), nullable=True),
        sa.Column("covers", sa.JSON(), nullable=False),
        sa.Column("metrics", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repetition_id"],
            ["repetition.id"],
            name="fk_part_repetition_id_repetition",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("repetition_id", "place", name="pk_part"),
    )


def downgrade() -> None:
    op.drop_table("part")
    with op.batch_alter_table("repetition") as table:
        table.drop_column("parts_problem")
