"""The history of a query, and the newest night of a DAG, are found without reading all rows.

Revision: 0006
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_verdict_query_metric", "verdict", ["query", "metric"])
    op.create_index("ix_night_dag_id_started", "night", ["dag_id", "started"])


def downgrade() -> None:
    op.drop_index("ix_night_dag_id_started", "night")
    op.drop_index("ix_verdict_query_metric", "verdict")
