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

CREATE TABLE experiment (
  id INTEGER NOT NULL,
  run VARCHAR(400) NOT NULL,
  measured DATETIME NOT NULL,
  name VARCHAR(100) NOT NULL,
  question TEXT NOT NULL,
  spark_version VARCHAR(100) NOT NULL,
  pairs BIGINT NOT NULL,
  "query" VARCHAR(100) NOT NULL,
  size BIGINT NOT NULL,
  arm VARCHAR(100) NOT NULL,
  outcome VARCHAR(100) NOT NULL,
  remarks TEXT NOT NULL,
  cpu_s_per_mevent DOUBLE,
  saves DOUBLE,
  lo DOUBLE,
  hi DOUBLE,
  wall_s DOUBLE,
  state_rows BIGINT,
  exchanges BIGINT,
  published_gain_percent DOUBLE,
  published_change TEXT,
  attribution JSON,
  CONSTRAINT pk_experiment PRIMARY KEY (id)
);

CREATE INDEX ix_experiment_run ON experiment (run);

CREATE TABLE broker_bench (
  id INTEGER NOT NULL,
  cluster TEXT NOT NULL,
  measured DATETIME NOT NULL,
  figures JSON NOT NULL,
  CONSTRAINT pk_broker_bench PRIMARY KEY (id)
);

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
  mode VARCHAR(100) DEFAULT 'bounds' NOT NULL,
  baselines JSON,
  seed BIGINT,
  gate_spec JSON,
  grade VARCHAR(255),
  grade_reason TEXT,
  candidate_conf JSON,
  teaches BOOLEAN DEFAULT 1 NOT NULL,
  rows_pruned DATETIME,
  CONSTRAINT pk_night PRIMARY KEY (id),
  CONSTRAINT fk_night_build_id_build FOREIGN KEY(build_id) REFERENCES build (id)
);

CREATE INDEX ix_night_dag_id_started ON night (dag_id, started);

CREATE INDEX ix_night_started ON night (started);

CREATE INDEX ix_night_engine ON night (engine);

CREATE TABLE repetition (
  id INTEGER NOT NULL,
  night_id VARCHAR(400) NOT NULL,
  "query" VARCHAR(100) NOT NULL,
  arm VARCHAR(100) NOT NULL,
  stage BIGINT DEFAULT '1' NOT NULL,
  number BIGINT NOT NULL,
  position BIGINT,
  status VARCHAR(100) NOT NULL,
  reason TEXT,
  recorded DATETIME NOT NULL,
  result_path TEXT,
  event_log_path TEXT,
  event_log_bytes BIGINT,
  plan_id VARCHAR(64),
  batch_list JSON,
  confs JSON,
  parts_problem TEXT,
  figures JSON,
  latency TEXT,
  formulation VARCHAR(255),
  build VARCHAR(255),
  spark_version VARCHAR(255),
  conf_profile VARCHAR(255),
  application_id VARCHAR(255),
  start DOUBLE,
  "end" DOUBLE,
  input_rows BIGINT,
  output_rows BIGINT,
  digest VARCHAR(255),
  digest_kind VARCHAR(255),
  late_rows BIGINT,
  state_rows_max BIGINT,
  state_rows_final BIGINT,
  state_bytes_max BIGINT,
  state_commit_ms DOUBLE,
  plan_skeleton_hash VARCHAR(255),
  exchanges BIGINT,
  stateful_operators BIGINT,
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
  hosts JSON,
  sampling_interval_s DOUBLE,
  sampler_cores DOUBLE,
  other_cores DOUBLE,
  steal_cores DOUBLE,
  CONSTRAINT pk_repetition PRIMARY KEY (id),
  CONSTRAINT uq_repetition_night_id_query_arm_stage_number UNIQUE (night_id, "query", arm, stage, number),
  CONSTRAINT fk_repetition_night_id_night FOREIGN KEY(night_id) REFERENCES night (id),
  CONSTRAINT fk_repetition_plan_id_plan FOREIGN KEY(plan_id) REFERENCES "plan" (id)
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
  CONSTRAINT uq_validation_night_id_query_arm UNIQUE (night_id, "query", arm),
  CONSTRAINT fk_validation_night_id_night FOREIGN KEY(night_id) REFERENCES night (id)
);

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
  metric VARCHAR(100) DEFAULT 'cpu_s_per_mevent' NOT NULL,
  build_id VARCHAR(255),
  size DOUBLE,
  expires DATETIME,
  link TEXT,
  CONSTRAINT pk_acceptance PRIMARY KEY (id),
  CONSTRAINT fk_acceptance_night_id_night FOREIGN KEY(night_id) REFERENCES night (id),
  CONSTRAINT fk_acceptance_build_id_build FOREIGN KEY(build_id) REFERENCES build (id)
);

CREATE INDEX ix_acceptance_engine_workload_cluster_query ON acceptance (engine, workload, cluster, "query");

CREATE TRIGGER acceptance_no_UPDATE BEFORE UPDATE ON acceptance BEGIN SELECT RAISE(ABORT, 'acceptances are only ever added'); END;

CREATE TRIGGER acceptance_no_DELETE BEFORE DELETE ON acceptance BEGIN SELECT RAISE(ABORT, 'acceptances are only ever added'); END;

CREATE TABLE canary (
  id INTEGER NOT NULL,
  night_id VARCHAR(400) NOT NULL,
  host VARCHAR(255) NOT NULL,
  "group" VARCHAR(100) NOT NULL,
  moment VARCHAR(100) NOT NULL,
  metric VARCHAR(100) NOT NULL,
  value DOUBLE,
  taken DATETIME NOT NULL,
  CONSTRAINT pk_canary PRIMARY KEY (id),
  CONSTRAINT fk_canary_night_id_night FOREIGN KEY(night_id) REFERENCES night (id)
);

CREATE INDEX ix_canary_night_id ON canary (night_id);

CREATE TABLE compatibility (
  id INTEGER NOT NULL,
  night_id VARCHAR(400) NOT NULL,
  "query" VARCHAR(100) NOT NULL,
  baseline_build VARCHAR(255) NOT NULL,
  outcome VARCHAR(100) NOT NULL,
  red BOOLEAN NOT NULL,
  plans VARCHAR(100) NOT NULL,
  forward TEXT NOT NULL,
  backward TEXT NOT NULL,
  checkpoint TEXT NOT NULL,
  reason TEXT NOT NULL,
  baseline_plan TEXT,
  candidate_plan TEXT,
  checked DATETIME NOT NULL,
  CONSTRAINT pk_compatibility PRIMARY KEY (id),
  CONSTRAINT uq_compatibility_night_id_query UNIQUE (night_id, "query"),
  CONSTRAINT fk_compatibility_night_id_night FOREIGN KEY(night_id) REFERENCES night (id)
);

CREATE TABLE self_test (
  id INTEGER NOT NULL,
  night_id VARCHAR(400) NOT NULL,
  kind VARCHAR(100) NOT NULL,
  "query" VARCHAR(100) NOT NULL,
  size DOUBLE NOT NULL,
  value VARCHAR(100) NOT NULL,
  ratio DOUBLE,
  lo DOUBLE,
  hi DOUBLE,
  gate_version BIGINT NOT NULL,
  judged DATETIME NOT NULL,
  CONSTRAINT pk_self_test PRIMARY KEY (id),
  CONSTRAINT uq_self_test_night_id_kind_query_gate_version UNIQUE (night_id, kind, "query", gate_version),
  CONSTRAINT fk_self_test_night_id_night FOREIGN KEY(night_id) REFERENCES night (id)
);

CREATE TABLE part (
  repetition_id INTEGER NOT NULL,
  place INTEGER NOT NULL,
  kind VARCHAR(100) NOT NULL,
  name TEXT NOT NULL,
  cpu_s DOUBLE,
  parent INTEGER,
  depth INTEGER NOT NULL,
  stage INTEGER,
  covers JSON NOT NULL,
  metrics JSON NOT NULL,
  CONSTRAINT pk_part PRIMARY KEY (repetition_id, place),
  CONSTRAINT fk_part_repetition_id_repetition FOREIGN KEY(repetition_id) REFERENCES repetition (id) ON DELETE CASCADE
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
  CONSTRAINT uq_sample_series_repetition_id_host UNIQUE (repetition_id, host),
  CONSTRAINT fk_sample_series_repetition_id_repetition FOREIGN KEY(repetition_id) REFERENCES repetition (id) ON DELETE CASCADE
);

CREATE TABLE verdict (
  id INTEGER NOT NULL,
  night_id VARCHAR(400) NOT NULL,
  "query" VARCHAR(100) NOT NULL,
  metric VARCHAR(100) NOT NULL,
  gate_version BIGINT NOT NULL,
  value VARCHAR(100) NOT NULL,
  reason TEXT NOT NULL,
  mode VARCHAR(100) DEFAULT 'bounds' NOT NULL,
  decides BOOLEAN DEFAULT 1 NOT NULL,
  bound DOUBLE,
  ratio DOUBLE,
  candidate DOUBLE,
  baseline DOUBLE,
  basis VARCHAR(255),
  baseline_run VARCHAR(400),
  repetitions BIGINT NOT NULL,
  lo DOUBLE,
  hi DOUBLE,
  mde DOUBLE,
  shift DOUBLE,
  spread DOUBLE,
  noise DOUBLE,
  pairs BIGINT,
  fresh_pairs BIGINT,
  drift_slower DOUBLE DEFAULT '0' NOT NULL,
  drift_faster DOUBLE DEFAULT '0' NOT NULL,
  baseline_build TEXT,
  acceptance_id INTEGER,
  judged DATETIME NOT NULL,
  CONSTRAINT pk_verdict PRIMARY KEY (id),
  CONSTRAINT uq_verdict_night_id_query_metric_gate_version UNIQUE (night_id, "query", metric, gate_version),
  CONSTRAINT fk_verdict_night_id_night FOREIGN KEY(night_id) REFERENCES night (id),
  CONSTRAINT fk_verdict_acceptance_id_acceptance FOREIGN KEY(acceptance_id) REFERENCES acceptance (id)
);

CREATE INDEX ix_verdict_query_metric ON verdict ("query", metric);

CREATE TABLE withdrawal (
  id INTEGER NOT NULL,
  acceptance_id INTEGER NOT NULL,
  who VARCHAR(255) NOT NULL,
  reason TEXT NOT NULL,
  withdrawn DATETIME NOT NULL,
  CONSTRAINT pk_withdrawal PRIMARY KEY (id),
  CONSTRAINT uq_withdrawal_acceptance_id UNIQUE (acceptance_id),
  CONSTRAINT fk_withdrawal_acceptance_id_acceptance FOREIGN KEY(acceptance_id) REFERENCES acceptance (id)
);

CREATE TRIGGER withdrawal_no_UPDATE BEFORE UPDATE ON withdrawal BEGIN SELECT RAISE(ABORT, 'withdrawals are only ever added'); END;

CREATE TRIGGER withdrawal_no_DELETE BEFORE DELETE ON withdrawal BEGIN SELECT RAISE(ABORT, 'withdrawals are only ever added'); END;

CREATE TABLE nexmark_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT nexmark_version_pkc PRIMARY KEY (version_num));

