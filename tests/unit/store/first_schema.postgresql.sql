CREATE TABLE build (
  id VARCHAR(255) NOT NULL,
  version VARCHAR(255) NOT NULL,
  source TEXT NOT NULL,
  first_seen TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_build PRIMARY KEY (id)
);

CREATE TABLE plan (
  id VARCHAR(64) NOT NULL,
  skeleton_hash VARCHAR(64) NOT NULL,
  skeleton TEXT NOT NULL,
  text TEXT NOT NULL,
  CONSTRAINT pk_plan PRIMARY KEY (id)
);

CREATE INDEX ix_plan_skeleton_hash ON plan (skeleton_hash);

CREATE TABLE experiment (
  id SERIAL NOT NULL,
  run VARCHAR(400) NOT NULL,
  measured TIMESTAMP WITH TIME ZONE NOT NULL,
  name VARCHAR(100) NOT NULL,
  question TEXT NOT NULL,
  spark_version VARCHAR(100) NOT NULL,
  pairs BIGINT NOT NULL,
  query VARCHAR(100) NOT NULL,
  size BIGINT NOT NULL,
  arm VARCHAR(100) NOT NULL,
  outcome VARCHAR(100) NOT NULL,
  remarks TEXT NOT NULL,
  cpu_s_per_mevent DOUBLE PRECISION,
  saves DOUBLE PRECISION,
  lo DOUBLE PRECISION,
  hi DOUBLE PRECISION,
  wall_s DOUBLE PRECISION,
  state_rows BIGINT,
  exchanges BIGINT,
  published_gain_percent DOUBLE PRECISION,
  published_change TEXT,
  attribution JSON,
  CONSTRAINT pk_experiment PRIMARY KEY (id)
);

CREATE INDEX ix_experiment_run ON experiment (run);

CREATE TABLE broker_bench (
  id SERIAL NOT NULL,
  cluster TEXT NOT NULL,
  measured TIMESTAMP WITH TIME ZONE NOT NULL,
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
  started TIMESTAMP WITH TIME ZONE NOT NULL,
  mode VARCHAR(100) DEFAULT 'bounds' NOT NULL,
  baselines JSON,
  seed BIGINT,
  gate_spec JSON,
  grade VARCHAR(255),
  grade_reason TEXT,
  candidate_conf JSON,
  teaches BOOLEAN DEFAULT true NOT NULL,
  rows_pruned TIMESTAMP WITH TIME ZONE,
  CONSTRAINT pk_night PRIMARY KEY (id),
  CONSTRAINT fk_night_build_id_build FOREIGN KEY(build_id) REFERENCES build (id)
);

CREATE INDEX ix_night_dag_id_started ON night (dag_id, started);

CREATE INDEX ix_night_started ON night (started);

CREATE INDEX ix_night_engine ON night (engine);

CREATE TABLE repetition (
  id SERIAL NOT NULL,
  night_id VARCHAR(400) NOT NULL,
  query VARCHAR(100) NOT NULL,
  arm VARCHAR(100) NOT NULL,
  stage BIGINT DEFAULT '1' NOT NULL,
  number BIGINT NOT NULL,
  position BIGINT,
  status VARCHAR(100) NOT NULL,
  reason TEXT,
  recorded TIMESTAMP WITH TIME ZONE NOT NULL,
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
  start DOUBLE PRECISION,
  "end" DOUBLE PRECISION,
  input_rows BIGINT,
  output_rows BIGINT,
  digest VARCHAR(255),
  digest_kind VARCHAR(255),
  late_rows BIGINT,
  state_rows_max BIGINT,
  state_rows_final BIGINT,
  state_bytes_max BIGINT,
  state_commit_ms DOUBLE PRECISION,
  plan_skeleton_hash VARCHAR(255),
  exchanges BIGINT,
  stateful_operators BIGINT,
  events BIGINT,
  wall_s DOUBLE PRECISION,
  cores DOUBLE PRECISION,
  cpu_s DOUBLE PRECISION,
  cpu_executors_s DOUBLE PRECISION,
  cpu_python_s DOUBLE PRECISION,
  cpu_driver_s DOUBLE PRECISION,
  cpu_application_s DOUBLE PRECISION,
  throughput DOUBLE PRECISION,
  throughput_per_core DOUBLE PRECISION,
  basis VARCHAR(255),
  cpu_s_per_mevent DOUBLE PRECISION,
  cpu_s_per_mevent_steady DOUBLE PRECISION,
  cpu_s_per_mevent_application DOUBLE PRECISION,
  warmup_batches BIGINT,
  steady_events BIGINT,
  steady_wall_s DOUBLE PRECISION,
  steady_cpu_s DOUBLE PRECISION,
  steady_throughput DOUBLE PRECISION,
  steady_throughput_per_core DOUBLE PRECISION,
  batches BIGINT,
  batch_ms_p50 DOUBLE PRECISION,
  batch_ms_p95 DOUBLE PRECISION,
  batch_ms_p99 DOUBLE PRECISION,
  hosts JSON,
  sampling_interval_s DOUBLE PRECISION,
  sampler_cores DOUBLE PRECISION,
  other_cores DOUBLE PRECISION,
  steal_cores DOUBLE PRECISION,
  CONSTRAINT pk_repetition PRIMARY KEY (id),
  CONSTRAINT uq_repetition_night_id_query_arm_stage_number UNIQUE (night_id, query, arm, stage, number),
  CONSTRAINT fk_repetition_night_id_night FOREIGN KEY(night_id) REFERENCES night (id),
  CONSTRAINT fk_repetition_plan_id_plan FOREIGN KEY(plan_id) REFERENCES plan (id)
);

CREATE TABLE validation (
  id SERIAL NOT NULL,
  night_id VARCHAR(400) NOT NULL,
  query VARCHAR(100) NOT NULL,
  arm VARCHAR(100) NOT NULL,
  success BOOLEAN NOT NULL,
  evaluated BIGINT NOT NULL,
  failures JSON NOT NULL,
  statistics JSON NOT NULL,
  recorded TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_validation PRIMARY KEY (id),
  CONSTRAINT uq_validation_night_id_query_arm UNIQUE (night_id, query, arm),
  CONSTRAINT fk_validation_night_id_night FOREIGN KEY(night_id) REFERENCES night (id)
);

CREATE TABLE acceptance (
  id SERIAL NOT NULL,
  engine VARCHAR(100) NOT NULL,
  workload VARCHAR(100) NOT NULL,
  cluster VARCHAR(100) NOT NULL,
  query VARCHAR(100) NOT NULL,
  night_id VARCHAR(400) NOT NULL,
  who VARCHAR(255) NOT NULL,
  reason TEXT NOT NULL,
  accepted TIMESTAMP WITH TIME ZONE NOT NULL,
  metric VARCHAR(100) DEFAULT 'cpu_s_per_mevent' NOT NULL,
  build_id VARCHAR(255),
  size DOUBLE PRECISION,
  expires TIMESTAMP WITH TIME ZONE,
  link TEXT,
  CONSTRAINT pk_acceptance PRIMARY KEY (id),
  CONSTRAINT fk_acceptance_night_id_night FOREIGN KEY(night_id) REFERENCES night (id),
  CONSTRAINT fk_acceptance_build_id_build FOREIGN KEY(build_id) REFERENCES build (id)
);

CREATE INDEX ix_acceptance_engine_workload_cluster_query ON acceptance (engine, workload, cluster, query);

CREATE FUNCTION acceptance_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'acceptances are only ever added'; END $$;

CREATE TRIGGER acceptance_append_only BEFORE UPDATE OR DELETE ON acceptance FOR EACH ROW EXECUTE FUNCTION acceptance_is_append_only();

CREATE TABLE canary (
  id SERIAL NOT NULL,
  night_id VARCHAR(400) NOT NULL,
  host VARCHAR(255) NOT NULL,
  "group" VARCHAR(100) NOT NULL,
  moment VARCHAR(100) NOT NULL,
  metric VARCHAR(100) NOT NULL,
  value DOUBLE PRECISION,
  taken TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_canary PRIMARY KEY (id),
  CONSTRAINT fk_canary_night_id_night FOREIGN KEY(night_id) REFERENCES night (id)
);

CREATE INDEX ix_canary_night_id ON canary (night_id);

CREATE TABLE compatibility (
  id SERIAL NOT NULL,
  night_id VARCHAR(400) NOT NULL,
  query VARCHAR(100) NOT NULL,
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
  checked TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_compatibility PRIMARY KEY (id),
  CONSTRAINT uq_compatibility_night_id_query UNIQUE (night_id, query),
  CONSTRAINT fk_compatibility_night_id_night FOREIGN KEY(night_id) REFERENCES night (id)
);

CREATE TABLE self_test (
  id SERIAL NOT NULL,
  night_id VARCHAR(400) NOT NULL,
  kind VARCHAR(100) NOT NULL,
  query VARCHAR(100) NOT NULL,
  size DOUBLE PRECISION NOT NULL,
  value VARCHAR(100) NOT NULL,
  ratio DOUBLE PRECISION,
  lo DOUBLE PRECISION,
  hi DOUBLE PRECISION,
  gate_version BIGINT NOT NULL,
  judged TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_self_test PRIMARY KEY (id),
  CONSTRAINT uq_self_test_night_id_kind_query_gate_version UNIQUE (night_id, kind, query, gate_version),
  CONSTRAINT fk_self_test_night_id_night FOREIGN KEY(night_id) REFERENCES night (id)
);

CREATE TABLE part (
  repetition_id INTEGER NOT NULL,
  place INTEGER NOT NULL,
  kind VARCHAR(100) NOT NULL,
  name TEXT NOT NULL,
  cpu_s DOUBLE PRECISION,
  parent INTEGER,
  depth INTEGER NOT NULL,
  stage INTEGER,
  covers JSON NOT NULL,
  metrics JSON NOT NULL,
  CONSTRAINT pk_part PRIMARY KEY (repetition_id, place),
  CONSTRAINT fk_part_repetition_id_repetition FOREIGN KEY(repetition_id) REFERENCES repetition (id) ON DELETE CASCADE
);

CREATE TABLE sample_series (
  id SERIAL NOT NULL,
  repetition_id INTEGER NOT NULL,
  host VARCHAR(255) NOT NULL,
  path TEXT NOT NULL,
  interval_s DOUBLE PRECISION NOT NULL,
  readings BIGINT NOT NULL,
  series BYTEA NOT NULL,
  CONSTRAINT pk_sample_series PRIMARY KEY (id),
  CONSTRAINT uq_sample_series_repetition_id_host UNIQUE (repetition_id, host),
  CONSTRAINT fk_sample_series_repetition_id_repetition FOREIGN KEY(repetition_id) REFERENCES repetition (id) ON DELETE CASCADE
);

CREATE TABLE verdict (
  id SERIAL NOT NULL,
  night_id VARCHAR(400) NOT NULL,
  query VARCHAR(100) NOT NULL,
  metric VARCHAR(100) NOT NULL,
  gate_version BIGINT NOT NULL,
  value VARCHAR(100) NOT NULL,
  reason TEXT NOT NULL,
  mode VARCHAR(100) DEFAULT 'bounds' NOT NULL,
  decides BOOLEAN DEFAULT true NOT NULL,
  bound DOUBLE PRECISION,
  ratio DOUBLE PRECISION,
  candidate DOUBLE PRECISION,
  baseline DOUBLE PRECISION,
  basis VARCHAR(255),
  baseline_run VARCHAR(400),
  repetitions BIGINT NOT NULL,
  lo DOUBLE PRECISION,
  hi DOUBLE PRECISION,
  mde DOUBLE PRECISION,
  shift DOUBLE PRECISION,
  spread DOUBLE PRECISION,
  noise DOUBLE PRECISION,
  pairs BIGINT,
  fresh_pairs BIGINT,
  drift_slower DOUBLE PRECISION DEFAULT '0' NOT NULL,
  drift_faster DOUBLE PRECISION DEFAULT '0' NOT NULL,
  baseline_build TEXT,
  acceptance_id INTEGER,
  judged TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_verdict PRIMARY KEY (id),
  CONSTRAINT uq_verdict_night_id_query_metric_gate_version UNIQUE (night_id, query, metric, gate_version),
  CONSTRAINT fk_verdict_night_id_night FOREIGN KEY(night_id) REFERENCES night (id),
  CONSTRAINT fk_verdict_acceptance_id_acceptance FOREIGN KEY(acceptance_id) REFERENCES acceptance (id)
);

CREATE INDEX ix_verdict_query_metric ON verdict (query, metric);

CREATE TABLE withdrawal (
  id SERIAL NOT NULL,
  acceptance_id INTEGER NOT NULL,
  who VARCHAR(255) NOT NULL,
  reason TEXT NOT NULL,
  withdrawn TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_withdrawal PRIMARY KEY (id),
  CONSTRAINT uq_withdrawal_acceptance_id UNIQUE (acceptance_id),
  CONSTRAINT fk_withdrawal_acceptance_id_acceptance FOREIGN KEY(acceptance_id) REFERENCES acceptance (id)
);

CREATE FUNCTION withdrawal_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'withdrawals are only ever added'; END $$;

CREATE TRIGGER withdrawal_append_only BEFORE UPDATE OR DELETE ON withdrawal FOR EACH ROW EXECUTE FUNCTION withdrawal_is_append_only();

CREATE TABLE nexmark_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT nexmark_version_pkc PRIMARY KEY (version_num));

