"""A job of a person's own is a file that is read whole, or one line says what is wrong with it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from nexmark.config import ConfigError, Job, known_queries, load, own_job
from nexmark.config.job_tables import JobTable
from nexmark.config.own_jobs import JobFile, read_job
from nexmark.errors import NexmarkError
from nexmark.night.machine_problems import remarks
from nexmark.night.make_night import make_night
from nexmark.night.night_runs import order_of, run_order

YAML = "tables: nexmark\nsql: busy.sql\nkey: [auction]\n"
OWN = "sql: busy.sql\ntables:\n  a:\n    event_time: at\n    files: x\n"
ENGINE = "spark-4.3.0"


@pytest.fixture(autouse=True)
def own_conf(conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXMARK_CONF", str(conf))


def write(conf: Path, name: str = "busy", text: str = YAML, sql: str = "SELECT 1 FROM bid") -> Path:
    """Write a job; return its file."""
    (conf / "jobs").mkdir(exist_ok=True)
    (conf / "jobs" / "busy.sql").write_text(sql)
    path = conf / "jobs" / f"{name}.yaml"
    path.write_text(text)
    return path


def busy() -> Job:
    """Read the job `busy`."""
    job = own_job("busy")
    assert job is not None
    return job


def test_there_is_none_unless_a_person_writes_one(conf: Path) -> None:
    before = load(conf)
    assert before.jobs == {}
    write(conf)
    after = load(conf)
    assert list(after.jobs) == ["busy"]
    assert after.workloads == before.workloads
    assert known_queries()[-2:] == ("q23", "busy")


def test_a_job_is_run_where_it_is_named_and_only_there(conf: Path) -> None:
    write(conf)
    config = load(conf)
    assert "busy" not in make_night(config, ENGINE, "d", "r", {}).queries
    night = make_night(config, ENGINE, "d", "r", {"queries": "busy,q5"})
    assert night.queries == ("q5", "busy")
    assert night.jobs["busy"].text == "SELECT 1 FROM bid"
    assert order_of(night)[-1] == "busy"
    assert run_order(config.gate)[:-1] == [n for n in run_order(config.gate) if n != "busy"]


def test_a_workload_may_name_it(conf: Path) -> None:
    write(conf)
    path = conf / "workloads.yaml"
    path.write_text(path.read_text().replace("  smoke:\n", "  smoke:\n    queries: [q0, busy]\n"))
    assert load(conf).workloads["smoke"].queries == ("q0", "busy")
    path.write_text(path.read_text().replace("[q0, busy]", "[q0, bussy]"))
    with pytest.raises(ConfigError, match=r"queries.1: unknown query 'bussy'; did you mean 'busy'"):
        load(conf)


def test_the_plan_of_a_night_outlives_its_job(conf: Path) -> None:
    """What was run is in the plan: it is read when the job has another text, or is gone."""
    path = write(conf)
    night = make_night(load(conf), ENGINE, "d", "r", {"queries": "busy"})
    path.unlink()
    read = type(night).model_validate_json(night.model_dump_json())
    assert read.jobs["busy"].text == "SELECT 1 FROM bid"
    assert read.jobs["busy"].formulation == night.jobs["busy"].formulation


def test_a_changed_job_is_another_formulation(conf: Path) -> None:
    write(conf)
    first = busy()
    write(conf, sql="SELECT 2 FROM bid")
    second = busy()
    assert first.formulation != second.formulation
    write(conf, text=YAML + "reference: busy.sql\n", sql="SELECT 2 FROM bid")
    assert busy().formulation == second.formulation
    assert busy().is_proven
    assert not second.is_proven


def test_a_night_is_planned_with_the_content_of_the_files(conf: Path) -> None:
    """Also of a static table, whose plan is read again as it was written."""
    (conf / "jobs" / "a.csv").write_text("at\n2026-01-01 00:00:00\n")
    own = "sql: busy.sql\ntables:\n  a: {files: a.csv, rows_per_batch: 200_000}\n"
    write(conf, text=own + "  b: {files: a.csv, static: true}\n")
    first = make_night(load(conf), ENGINE, "d", "r", {"queries": "busy"})
    assert first.jobs["busy"].input_sha256
    assert type(first).model_validate_json(first.model_dump_json()) == first
    (conf / "jobs" / "a.csv").write_text("at\n2026-01-01 00:00:01\n")
    second = make_night(load(conf), ENGINE, "d", "r", {"queries": "busy"})
    assert second.jobs["busy"].formulation != first.jobs["busy"].formulation


def test_the_cluster_gets_the_statements_and_what_they_are_for() -> None:
    job = Job(name="busy", tables="nexmark", sql="a.sql", text="SELECT 1", key=("auction",))
    files = job.files()
    assert files["busy/a.sql"] == b"SELECT 1"
    assert b'"output_mode": "append"' in files["busy/job.json"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sql: busy.sql\n", r"busy.yaml:1: tables: the key is missing; add it"),
        (YAML + "sqll: x\n", r"busy.yaml:4: sqll: unknown key 'sqll'; did you mean 'sql'\?"),
        (YAML + "text: x\n", r"busy.yaml:4: text: unknown key 'text'; remove it"),
        (
            "tables: other\nsql: busy.sql\n",
            r"busy.yaml:1: tables: expected nexmark or tables, got 'other'; write nexmark",
        ),
        (OWN + "    watermark: soon\n", r"busy.yaml:6: tables.a.watermark: 'soon' is no delay; "),
        (OWN, r"busy.yaml:3: tables.a.watermark: is missing: .* write it like 10 minutes"),
        (
            OWN + "    watermark: 1 day\n    static: true\n",
            r"busy.yaml:4: tables.a.event_time: event_time belongs to a stream; remove it",
        ),
        (
            "sql: busy.sql\ntables: {a: {files: x, static: true}}\n",
            r"busy.yaml:2: tables: every table is static; one has to be a stream",
        ),
        ("sql: busy.sql\ntables: {a: {file: x}}\n", r"tables.a.files: the key is missing; add it"),
        ("sql: busy.sql\ntables: {A b: {files: x}}\n", r"tables.A b: 'A b' is no name; write"),
        (
            "sql: busy.sql\ntables: {a: {files: s3://b/x}}\n",
            r"tables.a.files: 's3://b/x' is not on",
        ),
        (
            "sql: busy.sql\ntables: {a: {files: 'file:/x'}}\n",
            r"files: .*; write the path alone,",
        ),
        ("sql: busy.sql\ntables: {a: {files: []}}\n", r"busy.yaml:2: tables.a.files: "),
        ("sql: busy.sql\ntables: {a: {files: [x, 5]}}\n", r"tables.a.files.1: expected text, got"),
        (
            "sql: busy.sql\ntables: {written: {files: x}}\n",
            r"tables.written: 'written' names a ta",
        ),
        (
            "sql: busy.sql\ntables: {a: {files: x, types: {b: decimal(10,2)}}}\n",
            r'tables.a.types.b: .decimal\(10. is no type .* or "decimal\(10,2\)" in quotes',
        ),
        (
            "sql: busy.sql\ntables: {a: {files: x, event_time_unit: ms}}\n",
            r"tables.a.event_time: is missing: which column is it for\?",
        ),
        (
            OWN + "    watermark: 1 day\n    event_time_unit: min\n",
            r"busy.yaml:7: tables.a.event_time_unit: must be 's', 'ms', 'us' or 'ns', is 'min'",
        ),
        ("sql: busy.sql\ntables: {a: x.csv}\n", r"tables.a: 'x.csv' is no table; write its keys"),
        ("tables: nexmark\nsql: none.sql\n", r"busy.yaml:2: sql: there is no file .*none.sql"),
        ("tables: nexmark\nsql: ../x.sql\n", r"busy.yaml:2: sql: '../x.sql' is not the name of"),
        (
            "tables: nexmark\nsql: busy.sql\noutput_mode: update\n",
            r"busy.yaml:1: key: output_mode update .* list the columns of the key",
        ),
        (YAML + "output_mode: upsert\n", r"busy.yaml:4: output_mode: must be 'append', 'update'"),
        (YAML + "name: other\n", r"busy.yaml:4: name: is 'other', and the file is busy.yaml"),
        (YAML + "expectations: busy.sql\n", r"busy.sql:1: "),
        (
            "tables: nexmark\n",
            r"busy.yaml:1: a job is in sql, in python or an application: none is given; add",
        ),
        (YAML + "python: a.py:b\n", r"or an application: sql and python are given; keep one"),
        ("tables: nexmark\npython: a.py\n", r"busy.yaml:2: python: 'a.py' is not FILE:FUNCTION"),
        (YAML + "py_files: [a.py]\n", r"busy.yaml:4: py_files: py_files belongs to python; remove"),
        ("tables: nexmark\nsql: busy.sql\nkey: [a, a]\n", r"busy.yaml:3: key: 'a' is listed twice"),
        (YAML + "conf: {spark.a: b}\n", r"busy.yaml:4: conf: unknown key .* did you mean 'confs'"),
        (
            YAML + "confs:\n  spark.executor.memory: 4g\n",
            r"busy.yaml:5: confs.spark.executor.memory: .* is set by the benchmark itself; remove",
        ),
        (
            YAML + "confs:\n  spark.jars.packages: a:b:1\n",
            r"busy.yaml:5: .*: spark.jars.packages names files that do not go .* list them in jars",
        ),
        (
            YAML + "confs:\n  spark.hadoop.fs.s3a.secret.key: hunter2hunter2\n",
            r"busy.yaml:5: .* is a secret, .*; write it into the conf of the engine",
        ),
        (YAML + "foreach_batch: each\n", r"busy.yaml:4: foreach_batch: .* belongs to python; rem"),
        (YAML + "jars: [busy.zip]\n", r"busy.yaml:4: jars.0: 'busy.zip' is no JAR; its name ends"),
        (YAML + "jars: [none.jar]\n", r"busy.yaml:4: jars: there is no file .*none.jar; write it"),
    ],
)
def test_a_mistake_is_one_line(conf: Path, text: str, said: str) -> None:
    write(conf, text=text)
    with pytest.raises(ConfigError, match=said) as error:
        busy()
    assert "\n" not in str(error.value)


def test_a_broken_job_stops_only_what_names_it(conf: Path) -> None:
    write(conf, text=YAML + "keys: [a]\n")
    write(conf, "other")
    config = load(conf)
    assert list(config.jobs) == ["other"]
    assert make_night(config, ENGINE, "d", "r", {"queries": "q5,other"}).queries == ("q5", "other")
    said = r"jobs/busy.yaml:4: keys: unknown key 'keys'; did you mean 'key'"
    with pytest.raises(NexmarkError, match=said):
        make_night(config, ENGINE, "d", "r", {"queries": "q5,busy"})
    with pytest.raises(NexmarkError, match=said):
        config.job("busy")
    with pytest.raises(NexmarkError, match=r"job: unknown job 'othr'; did you mean 'other'"):
        config.job("othr")


def test_what_a_night_cannot_run_or_not_warm_up_is_said_before_it(
    conf: Path, tmp_path: Path
) -> None:
    """A workload by bounds counts the start of the JVM in any case."""
    (tmp_path / "a.csv").write_text("at\n2026-01-01 00:00:00\n")
    own = f"{OWN}    watermark: 1 day\n".replace("files: x", f"files: {tmp_path}/a.csv")
    write(conf, text=own)
    write(conf, "broken", YAML + "keys: [a]\n")
    config = load(conf)
    paired, bounds = (
        make_night(
            config, ENGINE, "d", "r", {"queries": "busy", "mode": mode, "workload": "compare"}
        )
        for mode in ("paired", "bounds")
    )
    broken, cold = remarks(paired, config)
    assert broken.startswith("job broken cannot be run, and this night does not name it: ")
    assert "broken.yaml:4: keys: unknown key" in broken
    assert "busy.yaml: tables.a.rows_per_batch: 1 rows are 1 micro-batch, all of them" in cold
    assert list(remarks(bounds, config)) == [broken]


def test_a_workload_that_names_a_broken_job_fails_in_its_own_nights(conf: Path) -> None:
    write(conf, text=YAML + "keys: [a]\n")
    path = conf / "workloads.yaml"
    path.write_text(path.read_text().replace("  smoke:\n", "  smoke:\n    queries: [q0, busy]\n"))
    config = load(conf)
    assert make_night(config, ENGINE, "d", "r", {"workload": "nightly"}).queries
    with pytest.raises(NexmarkError, match=r"busy.yaml:4: keys: unknown key"):
        make_night(config, ENGINE, "d", "r", {"workload": "smoke"})


def test_a_version_of_a_broken_job_is_compared_with_nothing(conf: Path, tmp_path: Path) -> None:
    write(conf)
    shutil.copytree(conf / "jobs", tmp_path / "changed")
    write(conf, text=YAML + "keys: [a]\n")
    with pytest.raises(NexmarkError, match=r"busy.yaml:4: keys: unknown key"):
        make_night(load(conf), ENGINE, "d", "r", {"candidate_job": str(tmp_path / "changed")})


def test_a_file_that_nobody_may_read_breaks_its_job_alone(
    conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    write(conf, text=YAML + "jars: [busy.jar]\n")
    (conf / "jobs" / "busy.jar").write_bytes(b"PK")
    monkeypatch.setattr(JobFile, "of", refuse)
    said = r"busy.yaml:4: jars: .*busy.jar cannot be read: Permission denied; let this user"
    assert re.search(said, load(conf).broken_jobs["busy"])


@pytest.mark.parametrize("name", ["q5", "q99", "long_window", "verify", "round_2", "Busy", "a-b"])
def test_a_name_that_is_taken_or_none_is_refused(conf: Path, name: str) -> None:
    before = known_queries()
    path = write(conf, name)
    with pytest.raises(ConfigError, match=re.escape(f"{name}.yaml:1: '{name}'")):
        read_job(path)
    assert known_queries() == before
    assert make_night(load(conf), ENGINE, "d", "r", {"queries": "q5"}).queries == ("q5",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def build(spark, tables:\n", r"busy.py:1:10: '\(' was never closed; correct the line"),
        (
            "def bild(spark, tables): ...\n",
            r"python: unknown function 'build'; did you mean 'bild'",
        ),
    ],
)
def test_a_mistake_in_python_is_seen_without_running_it(conf: Path, text: str, said: str) -> None:
    write(conf, text="tables: nexmark\npython: busy.py:build\n")
    (conf / "jobs" / "busy.py").write_text(text)
    with pytest.raises(ConfigError, match=said):
        busy()


def test_the_function_of_a_batch_is_one_of_the_file_and_of_the_formulation(conf: Path) -> None:
    text = "tables: nexmark\npython: busy.py:build\n"
    write(conf, text=text)
    (conf / "jobs" / "busy.py").write_text("def build(a, b): ...\ndef each(a, b): ...\n")
    without = busy()
    write(conf, text=text + "foreach_batch: each\n")
    job = busy()
    assert job.formulation != without.formulation
    assert b'"foreach_batch": "each"' in job.files()["busy/job.json"]
    write(conf, text=text + "foreach_batch: eahc\n")
    with pytest.raises(ConfigError, match=r"busy.yaml:3: foreach_batch: .* did you mean 'each'"):
        busy()


def test_the_files_of_a_python_job_go_with_it(conf: Path) -> None:
    write(conf, text="tables: nexmark\npython: busy.py:build\npy_files: [help.py]\n")
    (conf / "jobs" / "busy.py").write_text("from help import x\n\ndef build(spark, tables): ...\n")
    (conf / "jobs" / "help.py").write_text("x = 1\n")
    first = busy()
    assert first.files()["busy/help.py"] == b"x = 1\n"
    (conf / "jobs" / "help.py").write_text("x = 2\n")
    assert busy().formulation != first.formulation


@pytest.mark.parametrize(("name", "deployed"), [("a.zip", "a.zip"), ("a-1.whl", "a-1.zip")])
def test_an_archive_of_python_files_goes_with_a_job_as_it_is(
    conf: Path, name: str, deployed: str
) -> None:
    """Spark takes a wheel under the name of an archive only."""
    text = f"tables: nexmark\npython: busy.py:build\npy_files: [{name}, help.py]\n"
    write(conf, text=text)
    (conf / "jobs" / "busy.py").write_text("def build(spark, tables): ...\n")
    (conf / "jobs" / "help.py").write_text("x = 1\n")
    found = set()
    for content in (b"PK\xff1", b"PK\xff2"):
        (conf / "jobs" / name).write_bytes(content)
        job = busy()
        files = Job.model_validate_json(job.model_dump_json()).files()
        assert files[f"busy/{deployed}"] == content
        assert json.loads(files["busy/job.json"])["py_files"] == [deployed, "help.py"]
        found.add(job.formulation)
    assert len(found) == 2


def test_a_job_with_the_other_ending_of_yaml_is_named(conf: Path) -> None:
    path = write(conf)
    path.rename(path.with_suffix(".yml"))
    config = load(conf)
    assert config.jobs == {}
    with pytest.raises(NexmarkError, match=r"busy.yml: .* ends with .yaml; rename it to busy.yaml"):
        config.job("busy")
    path.with_suffix(".yml").write_text("settings: of something else\n")
    assert load(conf).broken_jobs == {}


def test_keys_that_came_later_leave_the_formulation_of_a_job_alone() -> None:
    """Figures of a job that does not use them go on to compare."""
    tables = {"a": JobTable.model_validate({"files": "a.csv"})}
    job = Job(name="busy", tables=tables, sql="a.sql", text="SELECT 1")
    assert job.formulation == "sql-d78aaaeb"
    for more in ({"types": {"a": "int"}}, {"files": ("a.csv", "b.csv")}):
        changed = {"a": JobTable.model_validate({"files": "a.csv", **more})}
        assert job.model_copy(update={"tables": changed}).formulation != job.formulation


def test_other_confs_or_another_jar_are_another_formulation(conf: Path) -> None:
    found = {}
    for confs, jar in (("", b""), ("3", b"PK1"), ("4", b"PK1"), ("4", b"PK2")):
        text = (
            f"jars: [busy.jar]\nconfs: {{spark.sql.shuffle.partitions: {confs}}}\n" if jar else ""
        )
        write(conf, text=YAML + text)
        (conf / "jobs" / "busy.jar").write_bytes(jar)
        job = busy()
        found[job.formulation] = job.files().get("busy/busy.jar")
    assert list(found.values()) == [None, b"PK1", b"PK1", b"PK2"]


def test_a_jar_that_was_changed_since_the_plan_is_not_deployed(conf: Path) -> None:
    write(conf, text=YAML + "jars: [busy.jar]\n")
    (conf / "jobs" / "busy.jar").write_bytes(b"PK1")
    night = make_night(load(conf), ENGINE, "d", "r", {"queries": "busy"})
    read = type(night).model_validate_json(night.model_dump_json())
    (conf / "jobs" / "busy.jar").write_bytes(b"PK2")
    with pytest.raises(ConfigError, match=r"busy.jar: is not what it was when the night was plan"):
        read.jobs["busy"].files()


def test_an_empty_file_of_statements_is_refused(conf: Path) -> None:
    write(conf, sql=" \n")
    with pytest.raises(ConfigError, match=r"sql: .*busy.sql is empty; write a statement"):
        busy()


def test_a_kind_that_cannot_run_it_says_so(conf: Path) -> None:
    write(conf)
    with pytest.raises(NexmarkError, match=r"queries: busy is a job of your own, .* paced"):
        make_night(load(conf), ENGINE, "d", "r", {"queries": "busy", "workload": "latency"})


def test_a_soak_runs_what_reads_the_events_of_nexmark_alone(conf: Path, tmp_path: Path) -> None:
    soaked = {"queries": "busy", "workload": "soak", "against": "pypi:4.2.1"}
    write(conf)
    assert make_night(load(conf), ENGINE, "d", "r", soaked).queries == ("busy",)
    (tmp_path / "bids.csv").write_text("at,price\n2026-11-28 10:00:00,2\n")
    write(
        conf, text=f"{OWN}    watermark: 1 minute\n".replace("files: x", f"files: {tmp_path}/*.csv")
    )
    with pytest.raises(
        NexmarkError, match=r"busy is an application, or reads files of your own, a"
    ):
        make_night(load(conf), ENGINE, "d", "r", soaked)
