"""Every mistake in `include/conf` is one line that names file, line, key and remedy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nexmark.config import ConfigError, load
from nexmark.config.fields import STANDARD_QUERIES
from nexmark.config.load import load_gate
from nexmark.config.paths import run_dir, safe_name


def edit(conf: Path, file: str, old: str, new: str) -> None:
    """Replace the first `old` below the comments at the head of the file."""
    text = (conf / file).read_text()
    body = re.search(r"^[a-z]+:", text, flags=re.MULTILINE)
    assert body, f"{file} has no keys"
    head, rest = text[: body.start()], text[body.start() :]
    assert old in rest, f"{file} no longer has {old!r}"
    (conf / file).write_text(head + rest.replace(old, new, 1))


def test_what_is_shipped_loads() -> None:
    config = load()
    assert config.engines["spark-4.3.0"].dag_id == "nexmark_spark_4_3_0"
    assert config.workloads["smoke"].queries == STANDARD_QUERIES
    assert config.workloads["smoke"].verifies_the_timed_input("q5")
    assert not config.workloads["nightly"].verifies_the_timed_input("q5")
    assert config.clusters["local"].master_url == "spark://127.0.0.1:17077"
    assert config.gate.bound("q5", "nightly") == config.gate.max_ratio
    assert config.gate.bound("q5", "smoke") == config.gate.workloads["smoke"]


def test_a_gate_file_may_leave_most_out(conf: Path) -> None:
    """It is the shipped gate in all that it leaves out, but for what belongs to our schedules."""
    (conf / "gate.yaml").write_text("version: 12\nmetric: task_cpu_s_per_mevent\nmax_ratio: 1.15\n")
    short = load(conf).gate
    assert short == load().gate.model_copy(
        update={"workloads": {}, "modes": {}, "budget_minutes": None}
    )
    assert load_gate(conf / "gate.yaml") == short


def test_configuration_cannot_be_changed_after_loading() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load().workloads["smoke"].events = 1  # type: ignore[misc]


WRITTEN_OTHERWISE = [
    # Numbers that YAML 1.1 reads in another way than a person.
    ("clusters.yaml", "master_port: 17077", "master_port: 017677", "master_port", "read as 8127"),
    ("gate.yaml", "suite_queries: 8", "suite_queries: 010", "suite_queries", "8"),
    ("gate.yaml", "suite_queries: 8", "suite_queries: 1_0", "suite_queries", "10"),
    ("gate.yaml", "suite_queries: 8", "suite_queries: 0x10", "suite_queries", "16"),
    ("gate.yaml", "suite_queries: 8", "suite_queries: 0b11", "suite_queries", "3"),
    ("gate.yaml", "suite_queries: 8", "suite_queries: 1:30", "suite_queries", "90"),
    ("gate.yaml", "suite_queries: 8", "suite_queries: 1e3", "suite_queries", "1e3"),
    ("gate.yaml", "suite_queries: 8", "suite_queries: 1.0", "suite_queries", "1.0"),
    ("gate.yaml", "suite_queries: 8", "suite_queries: ~", "suite_queries", "noth"),
    ("gate.yaml", "suite_queries: 8", "suite_queries: on", "suite_queries", "true"),
    ("gate.yaml", "suite_queries: 8", "suite_queries: ٣", "suite_queries", "'٣'"),
    ("gate.yaml", "max_ratio: 1.15", "max_ratio: 1_1.5", "max_ratio", "read as 11.5"),
    ("gate.yaml", "max_ratio: 1.15", "max_ratio: 1:1.5", "max_ratio", "read as 61.5"),
    ("gate.yaml", "max_ratio: 1.15", "max_ratio: 1,15", "max_ratio", "expected a number"),
    ("gate.yaml", "max_ratio: 1.15", "max_ratio: 2026-01-15", "max_ratio", "expected a number"),
    ("gate.yaml", "flame_graphs: true", "flame_graphs: yes", "flame_graphs", "write true or false"),
    ("workloads.yaml", "events: 100_000", "events: 1000_00", "events", "read as 100000"),
    ("workloads.yaml", "events: 100_000", "events: 10_00_00", "events", "read as 100000"),
    ("workloads.yaml", "queries: [q5, q20]", "queries: [q5, no]", "queries.1", "read as false"),
    ("engines.yaml", "cluster: workstation", "cluster: yes", "cluster", "read as true"),
    ("engines.yaml", "cluster: workstation", "cluster: ~", "cluster", "leave the key out"),
    ("engines.yaml", "pypi: 4.3.0", "pypi: 4.30", "build.pypi", "in quotes"),
    ("engines.yaml", "pypi: 4.3.0", "pypi: 010", "build.pypi", "read as 8"),
    (
        "experiments.yaml",
        "{formulation: union}",
        "{formulation: off}",
        "union.formulation",
        "false",
    ),
    ("experiments.yaml", "sizes: [20_000", "sizes: [020_000", "sizes.0", "read as 8192"),
    (
        *("experiments.yaml", "{spark.sql.json.useUnsafeRow: true}"),
        *("{spark.sql.json.useUnsafeRow: on}", "useUnsafeRow", "read as true"),
    ),
    (
        *("experiments.yaml", "{spark.sql.json.useUnsafeRow: true}"),
        *("{spark.sql.json.useUnsafeRow: 0777}", "useUnsafeRow", "read as 511"),
    ),
    ("notifications.yaml", "notifications: []", "notifications: off", "notifications", "false"),
    (
        *("notifications.yaml", "notifications: []"),
        *("notifications: [{notifier: a.B, kwargs: {port: 0025}}]", "kwargs.port", "read as 21"),
    ),
]


@pytest.mark.parametrize(("file", "old", "new", "key", "says"), WRITTEN_OTHERWISE)
def test_what_yaml_reads_in_another_way_than_a_person_is_refused(
    conf: Path, file: str, old: str, new: str, key: str, says: str
) -> None:
    edit(conf, file, old, new)
    with pytest.raises(ConfigError) as refused:
        load(conf)
    place, _, problem = str(refused.value).partition(f"{key}: ")
    assert re.search(rf"/{file}:[0-9]+: ", place)
    assert says in problem


def test_what_a_person_can_only_read_in_one_way_is_taken(conf: Path) -> None:
    edit(conf, "gate.yaml", "prior_deviation: 0.08", "prior_deviation: .5")
    edit(conf, "gate.yaml", "confirm_z: 1.0", "confirm_z: 2")
    edit(conf, "gate.yaml", "pursue_faster_z: 2.8", "pursue_faster_z: 14.0e-1")
    edit(conf, "gate.yaml", "canary_memory_bound: 3.0", "canary_memory_bound: 3.")
    edit(conf, "gate.yaml", "flame_graphs: true", "flame_graphs: FALSE")
    edit(conf, "workloads.yaml", "events: 2_000_000", "events: 2000000")
    edit(conf, "engines.yaml", "    schedule:", "    conf_profile: null\n    schedule:")
    read = load(conf)
    gate = read.gate
    assert (gate.prior_deviation, gate.confirm_z, gate.pursue_faster_z) == (0.5, 2.0, 1.4)
    assert (gate.canary_memory_bound, gate.flame_graphs) == (3.0, False)
    assert read.workloads["small"].events == 2_000_000
    assert read.workloads["smoke"].events == 100_000


def test_the_names_yes_and_010_are_names_in_quotes_and_as_keys(conf: Path) -> None:
    edit(conf, "engines.yaml", "cluster: workstation", 'cluster: "010"')
    edit(conf, "clusters.yaml", "  local:", "  010:")
    edit(conf, "workloads.yaml", "  smoke:", "  yes:")
    edit(conf, "gate.yaml", "  smoke: 1.5", "  yes: 1.5")
    read = load(conf)
    assert read.engines["spark-4.3.0"].cluster == "010"
    assert "yes" in read.workloads


def test_a_spark_conf_has_the_digits_that_are_written(conf: Path) -> None:
    confs = "{spark.memory.fraction: 0.60, spark.a: 1_000, spark.b: 1e3, spark.c: '010'}"
    build = "    build: {pypi: 4.3.0}\n"
    edit(conf, "engines.yaml", build, f"{build}    conf: {confs}\n")
    assert load(conf).engines["spark-4.3.0"].conf == {
        **{"spark.memory.fraction": "0.60", "spark.a": "1000", "spark.b": "1e3", "spark.c": "010"}
    }


def test_an_engine_takes_spark_confs_of_any_plain_type(conf: Path) -> None:
    edit(
        conf,
        "engines.yaml",
        "    build: {pypi: 4.3.0}\n",
        "    build: {pypi: 4.3.0}\n"
        "    conf: {spark.sql.shuffle.partitions: 400, spark.sql.codegen.wholeStage: false}\n",
    )
    assert load(conf).engines["spark-4.3.0"].conf == {
        "spark.sql.shuffle.partitions": "400",
        "spark.sql.codegen.wholeStage": "false",
    }


@pytest.mark.parametrize(
    ("file", "old", "new", "key", "says"),
    [
        ("engines.yaml", "{pypi: 4.3.0}", "{pypi: 4.3.0", None, "not valid YAML"),
        ("engines.yaml", "    build: {pypi: 4.3.0}", "\tbuild: {pypi: 4.3.0}", None, "not valid"),
        ("engines.yaml", "pypi: 4.3.0", "pipy: 4.3.0", "build.pipy", "did you mean 'pypi'?"),
        ("engines.yaml", "pypi: 4.3.0", "pypi: 4.3", "build.pypi", "in quotes"),
        ("engines.yaml", "{pypi: 4.3.0}", "{}", "spark-4.3.0.build", "exactly one of"),
        ("engines.yaml", "{pypi: 4.3.0}", "{pypi: 4.3.0, directory: /x}", "build", "keep one"),
        ("engines.yaml", "{pypi: 4.3.0}", "{tarball: /x.tgz}", "build", "add the one"),
        ("engines.yaml", "{pypi: 4.3.0}", "{tarball: /x.tgz, sha512: ab}", "sha512", "ab"),
        ("engines.yaml", "{pypi: 4.3.0}", "4.3.0", "build", "expected keys and values"),
        ("engines.yaml", '"0 22 * * *"', '"0 22"', "spark-4.3.0", "cron expression"),
        ("engines.yaml", "  spark-4.2.1:", "  spark-4.3.0:", "spark-4.3.0", "there twice"),
        ("engines.yaml", "  spark-4.2.1:", "  spark-4-3-0:", "spark-4-3-0", "same DAG id"),
        ("engines.yaml", "engines:", "engine:", "engine", "did you mean 'engines'?"),
        ("engines.yaml", "  spark-4.3.0:", "  Spark 4.3.0:", "Spark 4.3.0.name", "pattern"),
        (
            "engines.yaml",
            "  spark-4.3.0:",
            "  build:",
            "engines.build",
            "id as 'a build on demand'",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            '    build: {pypi: 4.3.0}\n    snapshots: {tarball: "/x-{{ds}}.tgz"}\n',
            "snapshots.sha512",
            "the key is missing; add it",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            '    build: {pypi: 4.3.0}\n    snapshots: {tarball: "/x.tgz", sha512: "/x{{ds}}"}\n',
            "snapshots.tarball",
            "'/x.tgz' is the same for every date; write {{ ds }} (2026-11-03) or {{ ds_nodash }}",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            '    build: {pypi: 4.3.0}\n    snapshots: {tarball: "/{{ dsn }}", sha512: "{{ds}}"}\n',
            "snapshots.tarball",
            "{{ dsn }} is not known; write {{ ds }} or {{ ds_nodash }}",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            '    build: {pypi: 4.3.0}\n    snapshots: {tarball: "/{{ ds }", sha512: "{{ds}}"}\n',
            "snapshots.tarball",
            "{{ is not known",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            "    build: {pypi: 4.3.0}\n    workload: smok\n",
            "workload",
            "did you mean 'smoke'?",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            "    build: {pypi: 4.3.0}\n    conf_profile: defautl\n",
            "conf_profile",
            "did you mean 'default'?",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            "    build: {pypi: 4.3.0}\n    conf: {spark.master: local}\n",
            "conf",
            "set by the benchmark",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            "    build: {pypi: 4.3.0}\n    conf: {sql.shuffle.partitions: 1}\n",
            "conf",
            "names start with 'spark.'",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            "    build: {pypi: 4.3.0}\n    conf: {spark.submit.deployMode: cluster}\n",
            "conf.spark.submit.deployMode",
            "set by the benchmark itself; remove it here",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            "    build: {pypi: 4.3.0}\n    conf: {spark.eventLog.dir: /tmp}\n",
            "conf.spark.eventLog.dir",
            "set by the benchmark",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            "    build: {pypi: 4.3.0}\n    conf: {spark.authenticate.secret: x}\n",
            "conf.spark.authenticate.secret",
            "set by the benchmark",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            "    build: {pypi: 4.3.0}\n    conf: {spark.cores.max: 1}\n",
            "conf.spark.cores.max",
            "set by the benchmark",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            "    build: {pypi: 4.3.0}\n    conf: {spark.sql.shuffle.partitions: -3}\n",
            "conf.spark.sql.shuffle.partitions",
            "is '-3', not a number from 1 to 2147483647; correct it",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            "    build: {pypi: 4.3.0}\n    conf: {spark.sql.shuffle.partitions: 1.5}\n",
            "conf.spark.sql.shuffle.partitions",
            "is '1.5', not a number",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            '    build: {pypi: 4.3.0}\n    conf: {spark.a: "x\\ny"}\n',
            "conf.spark.a",
            "has a line break or another control character; write one line",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            '    build: {pypi: 4.3.0}\n    conf: {spark.a: ""}\n',
            "conf.spark.a",
            "has no value; write one, or remove it",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            "    build: {pypi: 4.3.0}\n    conf: {spark.a: }\n",
            "conf.spark.a",
            "expected text, got nothing",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            "    build: {pypi: 4.3.0}\n    conf: {spark.a: [1]}\n",
            "conf.spark.a",
            "expected text",
        ),
        (
            "engines.yaml",
            "    build: {pypi: 4.3.0}\n",
            "    build: {pypi: 4.3.0}\n    conf: [spark.a]\n",
            "conf",
            "expected keys and values",
        ),
        (
            "engines.yaml",
            '"0 22 * * *"',
            '"61 0 * * *"',
            "spark-4.3.0.schedule",
            "is not a cron expression (",
        ),
        (
            "engines.yaml",
            '"0 22 * * *"',
            '"0 0 30 2 *"',
            "spark-4.3.0.schedule",
            "has no date at which it is due",
        ),
        (
            "engines.yaml",
            '"0 22 * * *"',
            '"0 0 * * mo"',
            "spark-4.3.0.schedule",
            "is not a cron expression (",
        ),
        (
            "engines.yaml",
            '"0 22 * * *"',
            '"0 22 * * * *"',
            "spark-4.3.0.schedule",
            "of five fields",
        ),
        (
            "engines.yaml",
            '"0 22 * * *"',
            '"@fortnightly"',
            "spark-4.3.0.schedule",
            "of five fields",
        ),
        (
            "engines.yaml",
            "{pypi: 4.3.0}",
            "{tarball: file:///etc/passwd, sha512: " + "a" * 128 + "}",
            "build.tarball",
            "'file:///etc/passwd' is not a tarball by its name; give a Spark build as",
        ),
        (
            "engines.yaml",
            "{pypi: 4.3.0}",
            "{tarball: /etc/passwd, sha512: " + "a" * 128 + "}",
            "build.tarball",
            "is not a tarball by its name",
        ),
        (
            "engines.yaml",
            "{pypi: 4.3.0}",
            "{tarball: ftp://x/s.tgz, sha512: " + "a" * 128 + "}",
            "build.tarball",
            "is not a URL of http, https, file; give one, or a path",
        ),
        (
            "engines.yaml",
            "{pypi: 4.3.0}",
            '{tarball: "/x\\n.tgz", sha512: ' + "a" * 128 + "}",
            "build.tarball",
            "in one line",
        ),
        (
            "workloads.yaml",
            "repetitions: 1",
            "repetitions: 1\n    generator: {foo: 1}",
            "smoke.generator.foo",
            "unknown option 'foo'; known: ",
        ),
        (
            "workloads.yaml",
            "repetitions: 1",
            "repetitions: 1\n    generator: {num_chanels: 1}",
            "smoke.generator.num_chanels",
            "did you mean 'num_channels'?",
        ),
        (
            "workloads.yaml",
            "repetitions: 1",
            "repetitions: 1\n    generator: {tps: 1}",
            "smoke.generator.tps",
            "tps has a key of its own",
        ),
        (
            "workloads.yaml",
            "repetitions: 1",
            "repetitions: 1\n    generator: {num_channels: -1}",
            "smoke.generator.num_channels",
            "-1 is not within 1..1000000000; correct the value",
        ),
        (
            "workloads.yaml",
            "repetitions: 1",
            "repetitions: 1\n    generator: {out_of_order_group_size: 953}",
            "generator.out_of_order_group_size",
            "is a multiple of 953",
        ),
        (
            "workloads.yaml",
            "repetitions: 1",
            "repetitions: 1\n    generator: {num_channels: x}",
            "smoke.generator.num_channels",
            "expected a whole number, got 'x'",
        ),
        (
            "workloads.yaml",
            "repetitions: 1",
            "repetitions: 1\n    generator: [foo]",
            "smoke.generator",
            "expected keys and values",
        ),
        (
            "workloads.yaml",
            "events: 100_000",
            "events: 1000000000000000000000",
            "smoke.events",
            "are more than the generator can number, 9007199254740992; lower the events",
        ),
        (
            "workloads.yaml",
            "events: 100_000",
            "events: 100_000_000_000_000",
            "smoke.events",
            "reach beyond the year 4000; lower the events or raise the tps",
        ),
        (
            "workloads.yaml",
            "tps: 1_000",
            "tps: 10_000_000_000",
            "smoke.tps",
            "less than or equal to 1000000000",
        ),
        (
            "workloads.yaml",
            "rows_per_batch: 50_000",
            "rows_per_batch: 1000000000000000000000",
            "smoke.rows_per_batch",
            "less than or equal to",
        ),
        (
            "workloads.yaml",
            "verify: {events: 100_000",
            "verify: {events: 1000000000000000000000",
            "smoke.verify.events",
            "more than the generator can number",
        ),
        (
            "clusters.yaml",
            "shuffle_partitions: 2",
            "shuffle_partitions: -2",
            "local.shuffle_partitions",
            "greater than 0",
        ),
        ("workloads.yaml", "events: 100_000", "events: -5", "smoke.events", "greater than 0"),
        ("workloads.yaml", "events: 100_000", "events: many", "smoke.events", "whole number"),
        ("workloads.yaml", "events: 100_000", "events: 1.5", "smoke.events", "whole number"),
        ("workloads.yaml", "events: 100_000", "events: true", "smoke.events", "whole number"),
        ("workloads.yaml", "events: 100_000", "events:", "smoke.events", "got nothing"),
        ("workloads.yaml", "tps: 1_000", "tps: 0", "smoke.tps", "greater than 0"),
        ("workloads.yaml", "    tps: 1_000\n", "", "smoke.tps", "missing; add it"),
        ("workloads.yaml", "tps: 1_000", "tsp: 1_000", "smoke.tps", "missing"),
        ("workloads.yaml", "repetitions: 1", "repetition: 1", "repetition", "'repetitions'?"),
        ("workloads.yaml", "repetitions: 1", "repetitions: 0", "repetitions", "greater than 0"),
        ("workloads.yaml", "warmup_batches: 1", "warmup_batches: 2", "smoke", "no steady state"),
        (
            "workloads.yaml",
            "warmup_batches: 1",
            "warmup_batches: 1\n    sizes: {q0: {events: 50_000}}",
            "smoke",
            "1 of 1 batches, which leaves no steady state",
        ),
        (
            "workloads.yaml",
            "partitions: 8",
            "partitions: 8\n    sizes: {q0: {events: 400_000}}",
            "kafka.sizes",
            "belongs to kind: bounded or soak with source: datagen",
        ),
        (
            "workloads.yaml",
            "warmup_batches: 1",
            "warmup_batches: 1\n    sizes: {q55: {events: 400_000}}",
            "smoke.sizes",
            "q55",
        ),
        (
            "workloads.yaml",
            "repetitions: 1",
            "repetitions: 1\n    queries: [q0, q55]",
            "queries.1",
            "did you mean 'q5'?",
        ),
        (
            "workloads.yaml",
            "repetitions: 1",
            "repetitions: 1\n    queries: [q0, q0]",
            "smoke",
            "listed twice",
        ),
        (
            "workloads.yaml",
            "repetitions: 1",
            "repetitions: 1\n    queries: q0",
            "queries",
            "expected a list",
        ),
        (
            "workloads.yaml",
            "repetitions: 1",
            "repetitions: 1\n    name: other",
            "smoke.name",
            "remove this one",
        ),
        ("workloads.yaml", "  smoke:\n", "  smoke: 5\n  other:\n", "smoke", "keys and values"),
        ("clusters.yaml", "kind: embedded", "kind: embeded", "kind", "'embedded'"),
        ("clusters.yaml", "  local:\n", "  local-baseline:\n", "local-baseline", "another name"),
        ("clusters.yaml", "kind: embedded", "kinds: embedded", "kind", "the key is missing"),
        (
            *("clusters.yaml", "{role: master, address: nexmark01, connection: nexmark01}"),
            "{role: worker, address: nexmark01, connection: nexmark01, cores: 1, memory: 1g}",
            *("nexmark", "exactly one host is the master, there is none"),
        ),
        ("clusters.yaml", "role: master,", "role: boss,", "role", "'master' or 'worker'"),
        ("clusters.yaml", "cores: 8, memory: 29g", "cores: 8", "nexmark02", "needs cores and mem"),
        ("clusters.yaml", "memory: 29g", "memory: 20g", "nexmark", "workers have room for 6"),
        ("clusters.yaml", "root: /opt/nexmark", "root: /opt/a b", "root", "plain absolute path"),
        ("clusters.yaml", "address: nexmark01", "address: $(id)", "address", "not an address"),
        ("clusters.yaml", "address: nexmark01", "address: nexmark02", "nexmark", "same address"),
        ("engines.yaml", "cluster: workstation", "cluster: workstatio", "cluster", "workstation"),
        ("clusters.yaml", "master_port: 17077", "master_port: 80", "master_port", "1024"),
        ("clusters.yaml", "worker_port: 17078", "worker_port: 17077", "local", "must differ"),
        ("clusters.yaml", "driver_memory: 768m", "driver_memory: 768", "memory", "like 768m"),
        ("gate.yaml", "max_ratio: 1.15", "max_ratio: 0.9", "max_ratio", "greater than 1"),
        ("gate.yaml", "max_ratio: 1.15", "max_ratio: .nan", "max_ratio", "finite"),
        ("gate.yaml", "  smoke: 1.5", "  smok: 1.5", "smok", "did you mean 'smoke'?"),
        ("gate.yaml", "version: 12", "version: 12\nqueries: {q99: 2.0}", "q99", "unknown query"),
        ("gate.yaml", "mode: paired", "mode: both", "mode", "'bounds' or 'paired'"),
        ("gate.yaml", "{smoke: bounds,", "{smoke: bound,", "modes.smoke", "'bounds' or 'paired'"),
        ("gate.yaml", "rounds: [3, 2,", "rounds: [3, 0,", "rounds.1", "greater than or equal to 1"),
        ("gate.yaml", "rounds: [3, 2,", "rounds: [3,", None, "pursue_z has 7"),
        ("gate.yaml", "pursue_z: [0.15,", "pursue_z: [", None, "after each round but the last: 7"),
        ("gate.yaml", "{rounds: [5, 5,", "{rounds: [5,", None, "comparison.pursue_z has 3"),
        ("gate.yaml", "flame_graphs: true", "flame_graphs: 3", "flame_graphs", "true or false"),
        ("gate.yaml", "confirm_z: 1.0", "confirm_zed: 1.0", "confirm_zed", "'confirm_z'?"),
        ("gate.yaml", "canary_bound: 0.50", "canary_bound: 0.01", None, "canary_unsteady is 0.05"),
        ("gate.yaml", "history_nights: 60", "history_nights: 9", "history_nights", "equal to 10"),
        (
            "gate.yaml",
            "metric: task_cpu_s_per_mevent",
            "metric: cpu",
            "metric",
            "'cpu_s_per_mevent'",
        ),
    ],
)
def test_a_mistake_is_one_line_with_file_line_key_and_remedy(
    conf: Path, file: str, old: str, new: str, key: str | None, says: str
) -> None:
    edit(conf, file, old, new)
    with pytest.raises(ConfigError) as caught:
        load(conf)
    text = str(caught.value)
    assert "\n" not in text
    assert re.match(rf".*{file}:\d+: ", text), text
    assert says in text
    if key is not None:
        assert re.search(rf":\d+: [^:]*{re.escape(key)}[^:]*: ", text), text


def test_the_line_is_that_of_the_key(conf: Path) -> None:
    edit(conf, "workloads.yaml", "tps: 1_000", "tps: 0")
    lines = (conf / "workloads.yaml").read_text().splitlines()
    number = next(i for i, line in enumerate(lines, 1) if line.strip() == "tps: 0")
    with pytest.raises(ConfigError, match=rf"workloads\.yaml:{number}: workloads\.smoke\.tps: "):
        load(conf)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "at least one entry"),
        (b"- a\n- b\n", "expected keys and values"),
        (b"\xff\xfe\x00", r"engines\.yaml:1: cannot be read: it is no text in UTF-8; save it as"),
        (b"engines: &a\n  x: *a\n", "an alias to a part of itself"),
        (b"engines: {? [1, 2] : 3}\n", "plain names"),
        (b"engines: {x: 2026-13-45}\n", "put it in quotes"),
    ],
)
def test_a_file_of_another_shape_is_refused(conf: Path, content: bytes, says: str) -> None:
    (conf / "engines.yaml").write_bytes(content)
    with pytest.raises(ConfigError, match=says) as caught:
        load(conf)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(conf: Path) -> None:
    (conf / "gate.yaml").unlink()
    with pytest.raises(ConfigError, match=r"gate\.yaml: the file is missing; restore it"):
        load(conf)


def test_run_directories_stay_below_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    run = run_dir("nexmark_spark_4_3_0", "manual__2026-11-21T04:00:00+00:00")
    assert run == tmp_path / "runs/nexmark_spark_4_3_0/manual__2026-11-21T04_00_00_00_00"
    assert safe_name("../../etc") == "_.._etc"
    assert safe_name("..") == "_"


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (b"notifications:\n\t- notifier: a.B\n", 2, "not valid YAML"),
        (
            b"notifications: []\n\xff\n",
            2,
            "cannot be read: it is no text in UTF-8; save it as such",
        ),
        (b"- notifier: a.B\n", 1, "expected keys and values"),
        (b"notifications: {notifier: a.B}\n", 1, "expected a list; write each entry after a dash"),
        (b"notification: []\n", 1, "unknown key 'notification'"),
        (b"notifications:\n  - notifier: B\n", 2, "must be the import path of a class"),
        (b"notifications:\n  - notifier: 5\n", 2, "expected text, got 5; write text, in quotes"),
        (b"notifications:\n  - notifier: a.B\n    kwargs: [1]\n", 3, "expected keys and values"),
    ],
)
def test_a_mistake_in_notifications_is_reported_with_all_others(
    conf: Path, content: bytes, line: int, says: str
) -> None:
    (conf / "notifications.yaml").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(conf)
    text = str(caught.value)
    assert "\n" not in text
    assert re.match(rf".*notifications\.yaml:{line}: ", text), text
    assert says in text
