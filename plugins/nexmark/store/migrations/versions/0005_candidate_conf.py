"""A night keeps the Spark confs that its candidate alone had: it is a trial, and no baseline.

Revision: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("night", sa.Column("candidate_conf", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("night", "candidate_conf")
