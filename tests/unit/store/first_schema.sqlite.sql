CREATE TABLE build (
    id VARCHAR(255) NOT NULL, 
    version VARCHAR(255) NOT NULL, 
    source TEXT NOT NULL, 
    first_seen DATETIME NOT NULL, 
    CONSTRAINT pk_build PRIMARY KEY (id)
);

CREATE TABLE "plan" (
    id VARCHAR(64) NOT NULL, 
    skeleton_hash VARCHAR(64) NOT NULL, 
    skeleton TEXT NOT NULL, 
    text TEXT NOT NULL, 
    CONSTRAINT pk_plan PRIMARY KEY (id)
);

CREATE INDEX ix_plan_skeleton_hash ON "plan" (skeleton_hash);

CREATE TABLE night (
    id VARCHAR(400) NOT NULL, 
    dag_id VARCHAR(255) NOT NULL, 
    run_id VARCHAR(255) NOT NULL, 
    engine VARCHAR(100) NOT NULL, 
    workload VARCHAR(100) NOT NULL, 
    cluster VARCHAR(100) NOT NULL, 
    build_id VARCHAR(255) NOT NULL, 
    jobs VARCHAR(255) NOT NULL, 
    shape VARCHAR(32) NOT NULL, 
    workload_spec JSON NOT NULL, 
    cluster_spec JSON NOT NULL, 
    queries JSON NOT NULL, 
    repetitions BIGINT NOT NULL, 
    directory TEXT NOT NULL, 
    started DATETIME NOT NULL, 
    CONSTRAINT pk_night PRIMARY KEY (id), 
    CONSTRAINT fk_night_build_id_build FOREIGN KEY(build_id) REFERENCES build (id)
);

CREATE INDEX ix_night_engine ON night (engine);

CREATE INDEX ix_night_started ON night (started);

CREATE TABLE acceptance (
    id INTEGER NOT NULL, 
    engine VARCHAR(100) NOT NULL, 
    workload VARCHAR(100) NOT NULL, 
    cluster VARCHAR(100) NOT NULL, 
    "query" VARCHAR(100) NOT NULL, 
    night_id VARCHAR(400) NOT NULL, 
    who VARCHAR(255) NOT NULL, 
    reason TEXT NOT NULL, 
    accepted DATETIME NOT NULL, 
    CONSTRAINT pk_acceptance PRIMARY KEY (id), 
    CONSTRAINT fk_acceptance_night_id_night FOREIGN KEY(night_id) REFERENCES night (id)
);

CREATE INDEX ix_acceptance_engine_workload_cluster_query ON acceptance (engine, workload, cluster, "query");

CREATE TABLE repetition (
    id INTEGER NOT NULL, 
    night_id VARCHAR(400) NOT NULL, 
    "query" VARCHAR(100) NOT NULL, 
    arm VARCHAR(100) NOT NULL, 
    number BIGINT NOT NULL, 
    status VARCHAR(100) NOT NULL, 
    reason TEXT, 
    recorded DATETIME NOT NULL, 
    result_path TEXT, 
    event_log_path TEXT, 
    event_log_bytes BIGINT, 
    plan_id VARCHAR(64), 
    batch_list JSON, 
    confs JSON, 
    formulation VARCHAR(255), 
    build VARCHAR(255), 
    spark_version VARCHAR(255), 
    conf_profile VARCHAR(255), 
    application_id VARCHAR(255), 
    start DOUBLE, 
    "end" DOUBLE, 
    events BIGINT, 
    wall_s DOUBLE, 
    cores DOUBLE, 
    cpu_s DOUBLE, 
    cpu_executors_s DOUBLE, 
    cpu_python_s DOUBLE, 
    cpu_driver_s DOUBLE, 
    cpu_application_s DOUBLE, 
    throughput DOUBLE, 
    throughput_per_core DOUBLE, 
    basis VARCHAR(255), 
    cpu_s_per_mevent DOUBLE, 
    cpu_s_per_mevent_steady DOUBLE, 
    cpu_s_per_mevent_application DOUBLE, 
    warmup_batches BIGINT, 
    steady_events BIGINT, 
    steady_wall_s DOUBLE, 
    steady_cpu_s DOUBLE, 
    steady_throughput DOUBLE, 
    steady_throughput_per_core DOUBLE, 
    batches BIGINT, 
    batch_ms_p50 DOUBLE, 
    batch_ms_p95 DOUBLE, 
    batch_ms_p99 DOUBLE, 
    state_rows_max BIGINT, 
    state_rows_final BIGINT, 
    state_bytes_max BIGINT, 
    state_commit_ms DOUBLE, 
    late_rows BIGINT, 
    input_rows BIGINT, 
    output_rows BIGINT, 
    digest VARCHAR(255), 
    digest_kind VARCHAR(255), 
    plan_skeleton_hash VARCHAR(255), 
    exchanges BIGINT, 
    stateful_operators BIGINT, 
    hosts JSON, 
    sampling_interval_s DOUBLE, 
    sampler_cores DOUBLE, 
    other_cores DOUBLE, 
    steal_cores DOUBLE, 
    CONSTRAINT pk_repetition PRIMARY KEY (id), 
    CONSTRAINT fk_repetition_night_id_night FOREIGN KEY(night_id) REFERENCES night (id), 
    CONSTRAINT fk_repetition_plan_id_plan FOREIGN KEY(plan_id) REFERENCES "plan" (id), 
    CONSTRAINT uq_repetition_night_id_query_arm_number UNIQUE (night_id, "query", arm, number)
);

CREATE TABLE validation (
    id INTEGER NOT NULL, 
    night_id VARCHAR(400) NOT NULL, 
    "query" VARCHAR(100) NOT NULL, 
    arm VARCHAR(100) NOT NULL, 
    success BOOLEAN NOT NULL, 
    evaluated BIGINT NOT NULL, 
    failures JSON NOT NULL, 
    statistics JSON NOT NULL, 
    recorded DATETIME NOT NULL, 
    CONSTRAINT pk_validation PRIMARY KEY (id), 
    CONSTRAINT fk_validation_night_id_night FOREIGN KEY(night_id) REFERENCES night (id), 
    CONSTRAINT uq_validation_night_id_query_arm UNIQUE (night_id, "query", arm)
);

CREATE TABLE verdict (
    id INTEGER NOT NULL, 
    night_id VARCHAR(400) NOT NULL, 
    "query" VARCHAR(100) NOT NULL, 
    metric VARCHAR(100) NOT NULL, 
    gate_version BIGINT NOT NULL, 
    value VARCHAR(100) NOT NULL, 
    reason TEXT NOT NULL, 
    bound DOUBLE NOT NULL, 
    ratio DOUBLE, 
    candidate DOUBLE, 
    baseline DOUBLE, 
    basis VARCHAR(255), 
    baseline_run VARCHAR(400), 
    repetitions BIGINT NOT NULL, 
    judged DATETIME NOT NULL, 
    CONSTRAINT pk_verdict PRIMARY KEY (id), 
    CONSTRAINT fk_verdict_night_id_night FOREIGN KEY(night_id) REFERENCES night (id), 
    CONSTRAINT uq_verdict_night_id_query_metric_gate_version UNIQUE (night_id, "query", metric, gate_version)
);

CREATE TABLE sample_series (
    id INTEGER NOT NULL, 
    repetition_id INTEGER NOT NULL, 
    host VARCHAR(255) NOT NULL, 
    path TEXT NOT NULL, 
    interval_s DOUBLE NOT NULL, 
    readings BIGINT NOT NULL, 
    series BLOB NOT NULL, 
    CONSTRAINT pk_sample_series PRIMARY KEY (id), 
    CONSTRAINT fk_sample_series_repetition_id_repetition FOREIGN KEY(repetition_id) REFERENCES repetition (id) ON DELETE CASCADE, 
    CONSTRAINT uq_sample_series_repetition_id_host UNIQUE (repetition_id, host)
);

CREATE TRIGGER acceptance_no_UPDATE BEFORE UPDATE ON acceptance
BEGIN SELECT RAISE(ABORT, 'acceptances are only ever added'); END;

CREATE TRIGGER acceptance_no_DELETE BEFORE DELETE ON acceptance
BEGIN SELECT RAISE(ABORT, 'acceptances are only ever added'); END;

