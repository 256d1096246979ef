"""First schema: builds, nights, repetitions, sample series, validations, verdicts, acceptances.

Revision: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

APPEND_ONLY = """
CREATE TRIGGER acceptance_no_{0} BEFORE {0} ON acceptance
BEGIN SELECT RAISE(ABORT, 'acceptances are only ever added'); END
"""


def upgrade() -> None:
    op.create_table(
        "build",
        sa.Column("id", sa.String(length=255), nullable=False),
        sa.Column("version", sa.String(length=255), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("first_seen", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_build"),
    )
    op.create_table(
        "plan",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("skeleton_hash", sa.String(length=64), nullable=False),
        sa.Column("skeleton", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_plan"),
    )
    op.create_index("ix_plan_skeleton_hash", "plan", ["skeleton_hash"], unique=False)
    op.create_table(
        "night",
        sa.Column("id", sa.String(length=400), nullable=False),
        sa.Column("dag_id", sa.String(length=255), nullable=False),
        sa.Column("run_id", sa.String(length=255), nullable=False),
        sa.Column("engine", sa.String(length=100), nullable=False),
        sa.Column("workload", sa.String(length=100), nullable=False),
        sa.Column("cluster", sa.String(length=100), nullable=False),
        sa.Column("build_id", sa.String(length=255), nullable=False),
        sa.Column("jobs", sa.String(length=255), nullable=False),
        sa.Column("shape", sa.String(length=32), nullable=False),
        sa.Column("workload_spec", sa.JSON(), nullable=False),
        sa.Column("cluster_spec", sa.JSON(), nullable=False),
        sa.Column("queries", sa.JSON(), nullable=False),
        sa.Column("repetitions", sa.BigInteger(), nullable=False),
        sa.Column("directory", sa.Text(), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["build_id"], ["build.id"], name="fk_night_build_id_build"),
        sa.PrimaryKeyConstraint("id", name="pk_night"),
    )
    op.create_index("ix_night_engine", "night", ["engine"], unique=False)
    op.create_index("ix_night_started", "night", ["started"], unique=False)
    op.create_table(
        "acceptance",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("engine", sa.String(length=100), nullable=False),
        sa.Column("workload", sa.String(length=100), nullable=False),
        sa.Column("cluster", sa.String(length=100), nullable=False),
        sa.Column("query", sa.String(length=100), nullable=False),
        sa.Column("night_id", sa.String(length=400), nullable=False),
        sa.Column("who", sa.String(length=255), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("accepted", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["night_id"], ["night.id"], name="fk_acceptance_night_id_night"),
        sa.PrimaryKeyConstraint("id", name="pk_acceptance"),
    )
    op.create_index(
        "ix_acceptance_engine_workload_cluster_query",
        "acceptance",
        ["engine", "workload", "cluster", "query"],
        unique=False,
    )
    op.create_table(
        "repetition",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("night_id", sa.String(length=400), nullable=False),
        sa.Column("query", sa.String(length=100), nullable=False),
        sa.Column("arm", sa.String(length=100), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(length=100), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("recorded", sa.DateTime(timezone=True), nullable=False),
        sa.Column("result_path", sa.Text(), nullable=True),
        sa.Column("event_log_path", sa.Text(), nullable=True),
        sa.Column("event_log_bytes", sa.BigInteger(), nullable=True),
        sa.Column("plan_id", sa.String(length=64), nullable=True),
        sa.Column("batch_list", sa.JSON(), nullable=True),
        sa.Column("confs", sa.JSON(), nullable=True),
        sa.Column("formulation", sa.String(length=255), nullable=True),
        sa.Column("build", sa.String(length=255), nullable=True),
        sa.Column("spark_version", sa.String(length=255), nullable=True),
        sa.Column("conf_profile", sa.String(length=255), nullable=True),
        sa.Column("application_id", sa.String(length=255), nullable=True),
        sa.Column("start", sa.Double(), nullable=True),
        sa.Column("end", sa.Double(), nullable=True),
        sa.Column("events", sa.BigInteger(), nullable=True),
        sa.Column("wall_s", sa.Double(), nullable=True),
        sa.Column("cores", sa.Double(), nullable=True),
        sa.Column("cpu_s", sa.Double(), nullable=True),
        sa.Column("cpu_executors_s", sa.Double(), nullable=True),
        sa.Column("cpu_python_s", sa.Double(), nullable=True),
        sa.Column("cpu_driver_s", sa.Double(), nullable=True),
        sa.Column("cpu_application_s", sa.Double(), nullable=True),
        sa.Column("throughput", sa.Double(), nullable=True),
        sa.Column("throughput_per_core", sa.Double(), nullable=True),
        sa.Column("basis", sa.String(length=255), nullable=True),
        sa.Column("cpu_s_per_mevent", sa.Double(), nullable=True),
        sa.Column("cpu_s_per_mevent_steady", sa.Double(), nullable=True),
        sa.Column("cpu_s_per_mevent_application", sa.Double(), nullable=True),
        sa.Column("warmup_batches", sa.BigInteger(), nullable=True),
        sa.Column("steady_events", sa.BigInteger(), nullable=True),
        sa.Column("steady_wall_s", sa.Double(), nullable=True),
        sa.Column("steady_cpu_s", sa.Double(), nullable=True),
        sa.Column("steady_throughput", sa.Double(), nullable=True),
        sa.Column("steady_throughput_per_core", sa.Double(), nullable=True),
        sa.Column("batches", sa.BigInteger(), nullable=True),
        sa.Column("batch_ms_p50", sa.Double(), nullable=True),
        sa.Column("batch_ms_p95", sa.Double(), nullable=True),
        sa.Column("batch_ms_p99", sa.Double(), nullable=True),
        sa.Column("state_rows_max", sa.BigInteger(), nullable=True),
        sa.Column("state_rows_final", sa.BigInteger(), nullable=True),
        sa.Column("state_bytes_max", sa.BigInteger(), nullable=True),
        sa.Column("state_commit_ms", sa.Double(), nullable=True),
        sa.Column("late_rows", sa.BigInteger(), nullable=True),
        sa.Column("input_rows", sa.BigInteger(), nullable=True),
        sa.Column("output_rows", sa.BigInteger(), nullable=True),
        sa.Column("digest", sa.String(length=255), nullable=True),
        sa.Column("digest_kind", sa.String(length=255), nullable=True),
        sa.Column("plan_skeleton_hash", sa.String(length=255), nullable=True),
        sa.Column("exchanges", sa.BigInteger(), nullable=True),
        sa.Column("stateful_operators", sa.BigInteger(), nullable=True),
        sa.Column("hosts", sa.JSON(), nullable=True),
        sa.Column("sampling_interval_s", sa.Double(), nullable=True),
        sa.Column("sampler_cores", sa.Double(), nullable=True),
        sa.Column("other_cores", sa.Double(), nullable=True),
        sa.Column("steal_cores", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["night_id"], ["night.id"], name="fk_repetition_night_id_night"),
        sa.ForeignKeyConstraint(["plan_id"], ["plan.id"], name="fk_repetition_plan_id_plan"),
        sa.PrimaryKeyConstraint("id", name="pk_repetition"),
        sa.UniqueConstraint(
            "night_id", "query", "arm", "number", name="uq_repetition_night_id_query_arm_number"
        ),
    )
    op.create_table(
        "validation",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("night_id", sa.String(length=400), nullable=False),
        sa.Column("query", sa.String(length=100), nullable=False),
        sa.Column("arm", sa.String(length=100), nullable=False),
        sa.Column("success", sa.Boolean(), nullable=False),
        sa.Column("evaluated", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.JSON(), nullable=False),
        sa.Column("statistics", sa.JSON(), nullable=False),
        sa.Column("recorded", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["night_id"], ["night.id"], name="fk_validation_night_id_night"),
        sa.PrimaryKeyConstraint("id", name="pk_validation"),
        sa.UniqueConstraint("night_id", "query", "arm", name="uq_validation_night_id_query_arm"),
    )
    op.create_table(
        "verdict",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("night_id", sa.String(length=400), nullable=False),
        sa.Column("query", sa.String(length=100), nullable=False),
        sa.Column("metric", sa.String(length=100), nullable=False),
        sa.Column("gate_version", sa.BigInteger(), nullable=False),
        sa.Column("value", sa.String(length=100), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("bound", sa.Double(), nullable=False),
        sa.Column("ratio", sa.Double(), nullable=True),
        sa.Column("candidate", sa.Double(), nullable=True),
        sa.Column("baseline", sa.Double(), nullable=True),
        sa.Column("basis", sa.String(length=255), nullable=True),
        sa.Column("baseline_run", sa.String(length=400), nullable=True),
        sa.Column("repetitions", sa.BigInteger(), nullable=False),
        sa.Column("judged", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["night_id"], ["night.id"], name="fk_verdict_night_id_night"),
        sa.PrimaryKeyConstraint("id", name="pk_verdict"),
        sa.UniqueConstraint(
            "night_id",
            "query",
            "metric",
            "gate_version",
            name="uq_verdict_night_id_query_metric_gate_version",
        ),
    )
    op.create_table(
        "sample_series",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("repetition_id", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("interval_s", sa.Double(), nullable=False),
        sa.Column("readings", sa.BigInteger(), nullable=False),
        sa.Column("series", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["repetition_id"],
            ["repetition.id"],
            name="fk_sample_series_repetition_id_repetition",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_sample_series"),
        sa.UniqueConstraint("repetition_id", "host", name="uq_sample_series_repetition_id_host"),
    )
    if op.get_bind().dialect.name == "sqlite":
        for change in ("UPDATE", "DELETE"):
            op.execute(APPEND_ONLY.format(change))


def downgrade() -> None:
    op.drop_table("sample_series")
    op.drop_table("verdict")
    op.drop_table("validation")
    op.drop_table("repetition")
    op.drop_index("ix_acceptance_engine_workload_cluster_query", table_name="acceptance")
    op.drop_table("acceptance")
    op.drop_index("ix_night_started", table_name="night")
    op.drop_index("ix_night_engine", table_name="night")
    op.drop_table("night")
    op.drop_index("ix_plan_skeleton_hash", table_name="plan")
    op.drop_table("plan")
    op.drop_table("build")
