"""An application of a person's own in a job: what is read, and what one line says is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nexmark.config import ConfigError, Job, load, own_job
from nexmark.errors import NexmarkError
from nexmark.jobs.application_check import description
from nexmark.night.applications import repetition_submission
from nexmark.night.deployments import Deployment, Deployments
from nexmark.night.kinds import kind_for
from nexmark.night.kinds.own import current
from nexmark.night.machine_problems import find_problems
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.night.run_directory import Run
from nexmark.secrets import hidden_arguments

SCRIPT = """application:
  main: orders.py
  args: ["{{ input }}", "{{ output }}", "{{checkpoint}}/x", "--token=hunter2hunter2"]
  input: /data/orders
  output: {counts: parquet, large: json}
  confs: {spark.sql.shuffle.partitions: 3, spark.hadoop.fs.s3a.secret.key: hunter3hunter3}
  ends: when the input is read
"""
HELPED = (
    SCRIPT.replace("{", "{{")
    .replace("}", "}}")
    .replace(
        "  args", "  py_files: [lib/help.py]\n  jars: [udf.jar]\n  files: [{}/app.conf]\n  args"
    )
)
ENGINE = "spark-4.3.0"


@pytest.fixture(autouse=True)
def own_conf(conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXMARK_CONF", str(conf))
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / "home"))


def write(conf: Path, text: str = SCRIPT) -> None:
    (conf / "jobs").mkdir(exist_ok=True)
    (conf / "jobs" / "orders.py").write_text("print('a script')\n")
    (conf / "jobs" / "orders.jar").write_bytes(b"PK")
    (conf / "jobs" / "orders.yaml").write_text(text)


def orders() -> Job:
    """Read the job `orders`."""
    job = own_job("orders")
    assert job is not None
    return job


def planned(conf: Path, **params: object) -> Night:
    night = make_night(load(conf), ENGINE, "d", "r", {"queries": "orders,q5", **params})
    return Night.model_validate_json(night.model_dump_json())


def test_the_plan_of_a_night_has_no_secret_of_an_application(conf: Path) -> None:
    write(conf)
    night = planned(conf)
    assert "hunter" not in night.model_dump_json()
    assert kind_for(night, "orders") is not kind_for(night, "q5")


def test_an_input_that_is_not_there_is_said_before_a_night_starts(
    conf: Path, tmp_path: Path
) -> None:
    said = "jobs/orders.yaml: input: /data/orders is not on this machine; correct the path"
    write(conf)
    assert any(problem.endswith(said) for problem in find_problems(planned(conf)))
    write(conf, SCRIPT.replace("/data/orders", str(tmp_path)))
    assert not any("input:" in problem for problem in find_problems(planned(conf)))


def test_a_repetition_has_places_of_its_own(conf: Path) -> None:
    write(conf)
    night = planned(conf)
    first, second = (Run(query="orders", number=number) for number in (1, 2))
    kind = kind_for(night, "orders")
    source, output, checkpoint, secret = kind.program(night, first).arguments
    assert source == "/data/orders"
    assert checkpoint.endswith("/orders/rep-1/own/checkpoint/x")
    assert Path(output).is_relative_to(night.directory)
    assert output != kind.program(night, second).arguments[1]
    assert Path(output).parent in kind.directories(night, first)
    assert secret.startswith("--token=***")
    assert kind.program(night, first).name == "own/orders/orders.py"


def test_the_conf_of_a_night_that_tests_it_goes_before_that_of_the_application(conf: Path) -> None:
    name = "spark.sql.shuffle.partitions"
    write(conf)
    night = planned(conf, candidate_conf={name: "5"})
    candidate, baseline = (
        kind_for(night, "orders").confs(night, Run(query="orders", number=1, arm=arm))
        for arm in ("candidate", "baseline")
    )
    assert (candidate[name], baseline[name]) == ("5", "3")


@pytest.fixture
def changed(conf: Path, tmp_path: Path) -> Path:
    """The directory of a version of the application with another script and another secret."""
    write(conf)
    directory = tmp_path / "changed"
    shutil.copytree(conf / "jobs", directory)
    (directory / "orders.py").write_text("print('another')\n")
    (directory / "orders.yaml").write_text(SCRIPT.replace("hunter3hunter3", "hunter4hunter4"))
    return directory


def test_two_versions_are_compared_each_with_its_file_and_its_secrets(
    conf: Path, changed: Path
) -> None:
    params = {"queries": "orders", "workload": "compare", "candidate_job": str(changed)}
    night = planned(conf, **params)
    assert "hunter" not in night.model_dump_json()
    assert night.compatibility is not None  # does the running one survive the change?
    secret = "spark.hadoop.fs.s3a.secret.key"
    assert current(night, "candidate", "orders").confs[secret] == "hunter4hunter4"
    assert current(night, "baseline", "orders").confs[secret] == "hunter3hunter3"
    assert night.job_file("candidate", "orders") == changed / "orders.yaml"
    job = night.job_of_candidate("orders")
    assert job is not None
    assert job.files() == {"orders/orders.py": b"print('another')\n"}
    assert night.jobs["orders"].files() == {"orders/orders.py": b"print('a script')\n"}
    (changed / "orders.yaml").write_text(SCRIPT)
    with pytest.raises(NexmarkError, match=r"changed/orders.yaml: orders is not what it was when"):
        current(night, "candidate", "orders")


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("/data/orders", "/data/others", "input"),
        ("large: json", "large: csv", "output"),
        ("when the input is read", "itself", "ends"),
    ],
)
def test_two_versions_read_write_and_end_alike(
    conf: Path, changed: Path, old: str, new: str, key: str
) -> None:
    (changed / "orders.yaml").write_text(SCRIPT.replace(old, new))
    said = f"candidate_job: orders has another {key} than in include/conf/jobs; both need the same"
    with pytest.raises(NexmarkError, match=said):
        planned(conf, queries="orders", candidate_job=str(changed))


def test_another_script_or_other_arguments_are_another_formulation(conf: Path) -> None:
    found = set()
    for text in (SCRIPT, SCRIPT.replace("/x", "/y"), SCRIPT.replace("3,", "4,")):
        write(conf, text)
        found.add(orders().formulation)
    (conf / "jobs" / "orders.py").write_text("print('another')\n")
    found.add(orders().formulation)
    assert len(found) == 4


def test_the_cluster_is_given_the_file_as_it_is_and_as_it_was_planned(conf: Path) -> None:
    write(conf)
    job = orders()
    assert job.files() == {"orders/orders.py": b"print('a script')\n"}
    (conf / "jobs" / "orders.py").write_text("print('another')\n")
    with pytest.raises(ConfigError, match=r"orders.py: is not what it was"):
        job.files()


@pytest.fixture
def helped(conf: Path, tmp_path: Path) -> Path:
    """The directory of one of the files of an application; the others are beside its YAML."""
    write(conf, HELPED.format(tmp_path))
    (conf / "jobs" / "lib").mkdir()
    (conf / "jobs" / "lib" / "help.py").write_text("x = 1\n")
    (conf / "jobs" / "udf.jar").write_bytes(b"PK")
    (tmp_path / "app.conf").write_text("a = 1\n")
    return tmp_path


def test_what_an_application_needs_goes_with_it_as_it_was_planned(conf: Path, helped: Path) -> None:
    job = planned(conf).jobs["orders"]
    assert job.files() == {
        "orders/orders.py": b"print('a script')\n",
        "orders/py_files/help.py": b"x = 1\n",
        "orders/jars/udf.jar": b"PK",
        "orders/files/app.conf": b"a = 1\n",
    }
    (helped / "app.conf").write_text("a = 2\n")
    with pytest.raises(ConfigError, match=r"app.conf: is not what it was when the night was plan"):
        job.files()


def test_a_check_tells_what_goes_with_an_application(conf: Path, helped: Path) -> None:
    application = orders().application
    assert application is not None
    lines = description("orders", application)
    wanted = ("py_files: lib/help.py", "jars: udf.jar", f"files: {helped}/app.conf")
    assert {*wanted} <= {*lines}


def test_other_content_of_a_file_is_another_formulation(conf: Path, helped: Path) -> None:
    found = [orders().formulation]
    for path in (conf / "jobs" / "lib" / "help.py", conf / "jobs" / "udf.jar", helped / "app.conf"):
        path.write_text("other\n")
        found.append(orders().formulation)
    write(conf)
    found.append(orders().formulation)
    assert len({*found}) == 5


def test_an_application_without_files_is_the_formulation_that_it_was(conf: Path) -> None:
    """Its history goes on: what was added to `application` since is in it where it is used."""
    write(conf)
    assert orders().formulation == "application-71c8d01b"


def test_spark_is_given_the_files_behind_those_of_the_confs(conf: Path, helped: Path) -> None:
    write(conf, HELPED.format(helped).replace("partitions: 3", "partitions: 3, spark.jars: /a.jar"))
    deployment = Deployment(
        program="fedc",
        build="0123456789abcdef",
        spark_version="4.3.0",
        spark_home=str(helped),
        source="pypi:4.3.0",
        jobs="fedc",
        jobs_home="/opt/jobs/nexmark_jobs",
    )
    run = Run(query="orders", number=1)
    night = planned(conf)
    made = repetition_submission(night, Deployments(candidate=deployment), run).application
    below = "/opt/jobs/nexmark_jobs/own/orders"
    assert made.confs["spark.submit.pyFiles"] == f"{below}/py_files/help.py"
    assert made.confs["spark.jars"] == f"/a.jar,{below}/jars/udf.jar"
    assert made.confs["spark.files"] == f"{below}/files/app.conf"
    assert "spark.files" not in planned(conf, queries="q5").engine.conf


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("lib/help.py", "lib/none.py", "orders.yaml:3: application.py_files: there is no file"),
        ("udf.jar", "udf.zip", "jars: 'udf.zip' is none of these; its name ends with .jar"),
        ("lib/help.py", "a.txt", "py_files: 'a.txt' is none .* ends with .py or .zip or .egg"),
        ("udf.jar", "udf.jar, lib/udf.jar", "jars: two files are called udf.jar, and Spark keeps"),
        ("udf.jar", "'a,b.jar'", "jars.0: 'a,b.jar' is no path of a file, or has a comma in it"),
        ("main: orders.py", "main: orders.jar\n  class: a.B", "py_files belongs to a script; rem"),
    ],
)
def test_a_file_that_cannot_go_with_it_is_one_line(
    conf: Path, helped: Path, old: str, new: str, said: str
) -> None:
    write(conf, HELPED.format(helped).replace(old, new))
    with pytest.raises(ConfigError, match=said) as error:
        orders()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "  ends: when the input is read\n",
            "",
            "ends: nobody can tell when it has read enough; write",
        ),
        ("when the input is read", "at noon", "'at noon' is not known; write itself, after N"),
        ("when the input is read", "after 5 batches", "output.*its rows differ from run to run"),
        ("orders.py", "order.py", "there is no file .*order.py"),
        ("orders.py", "orders.jar", "class.*is missing: name its main class"),
        ("  main: orders.py", "  main: orders.py\n  class: a.B", "class.*belongs to a JAR"),
        ("{{ input }}", "{{ inputs }}", "inputs.* is not known; did you mean 'input'"),
        ("  input: /data/orders\n", "", "input.*is missing; give both, or neither"),
        ('"{{ output }}", ', "", "output.*is given and .* is in no argument"),
        ("{counts: parquet", "{../counts: parquet", "is no path below"),
        ("spark.sql.shuffle.partitions", "spark.master", "spark.master is set by the benchmark"),
        (
            "--token=",
            '--token", "',
            "args: the value of --token is a secret, .*; write --token=VALUE",
        ),
        (
            "application:",
            "sql: x.sql\ntables: nexmark\napplication:",
            "sql and application are given; keep one",
        ),
        (
            "application:",
            "confs: {spark.a: b}\napplication:",
            "confs: confs of an application are a part of it; move them",
        ),
        ("application:", "jars: [orders.jar]\napplication:", "jars: jars belongs to sql and"),
        ("application:", "key: [a]\napplication:", "key: key belongs to sql and python; remove it"),
    ],
)
def test_a_mistake_is_told_in_one_line(conf: Path, old: str, new: str, said: str) -> None:
    assert old in SCRIPT
    write(conf, SCRIPT.replace(old, new))
    with pytest.raises(ConfigError, match=said) as error:
        orders()
    assert "\n" not in str(error.value)
    assert "orders.yaml" in str(error.value)


def test_a_number_of_batches_needs_no_output(conf: Path) -> None:
    text = SCRIPT.replace("  output: {counts: parquet, large: json}\n", "")
    write(conf, text.replace("when the input is read", "after 1 batch"))
    application = orders().application
    assert application is not None
    assert application.batches == 1
    assert not application.ends_itself


def test_arguments_keep_what_is_no_secret(tmp_path: Path) -> None:
    given = ["--password=hunter2", "a=b", "plain", "jdbc:x://me:hunter3@host/db", ""]
    shown, hidden = hidden_arguments(given)
    assert hidden == ["hunter2", "jdbc:x://me:hunter3@host/db"]
    assert shown[1:3] == ["a=b", "plain"]
    assert shown[4] == ""
    assert "hunter" not in " ".join(shown)
