"""A job of a person's own in Spark SQL runs as the queries do, and says where it is wrong."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from zipfile import ZipFile

import pytest
from pyspark.sql import SparkSession

from nexmark.config import paths
from nexmark.config.own_jobs import read_job
from nexmark_jobs import own_jobs
from nexmark_jobs.errors import QueryFailedError, UsageError
from nexmark_jobs.options import parse
from nexmark_jobs.own_jobs import run_statements, statements
from nexmark_jobs.run_query import complete, run
from tests.queries.conftest import RunJob, plain

EVENTS = ("--events", "2000", "--tps", "100", "--rows-per-batch", "1000")
COUNTED = """\
-- bids; by auction
CREATE TEMPORARY VIEW recent AS SELECT auction, dateTime FROM bid WHERE channel <> 'a;b';
CREATE TEMPORARY VIEW counted AS
SELECT auction, window.start AS begin, count(*) AS bids FROM recent
GROUP BY auction, window(dateTime, '10 seconds');
SELECT auction, begin, bids FROM counted WHERE bids >= 5 -- the end; of it
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the jobs of this process."""
    monkeypatch.setattr(own_jobs.own_query, "__defaults__", (tmp_path / "own",))
    return tmp_path / "own"


def job(below: Path, sql: str, output_mode: str = "append", key: tuple[str, ...] = ()) -> None:
    """Write the job `mine`."""
    (below / "mine").mkdir(parents=True)
    (below / "mine" / "mine.sql").write_text(sql)
    content = {"name": "mine", "formulation": "sql-1", "file": "mine.sql", "function": ""}
    content |= {"output_mode": output_mode, "key": key, "py_files": []}
    (below / "mine" / "job.json").write_text(json.dumps(content))


def test_views_on_views_put_out_every_window(write: Path, run_job: RunJob) -> None:
    job(write, COUNTED)
    result, rows = run_job("--query", "mine", *EVENTS)
    assert result["formulation"] == "sql-1"
    assert result["input_rows"] == 2000
    assert result["output_rows"] == len(rows)
    _, bids = run_job("--query", "q0", *EVENTS)
    counts: dict[tuple[int, int], int] = {}
    for auction, _, _, moment, _ in bids:
        window = (auction, int(moment.timestamp()) // 10)
        counts[window] = counts.get(window, 0) + 1
    wanted = sorted((*window, count) for window, count in counts.items() if count >= 5)
    assert [(row[0], int(row[1].timestamp()) // 10, row[2]) for row in rows] == wanted


def test_what_follows_the_input_puts_out_no_row(write: Path, run_job: RunJob) -> None:
    """A query without state passes every event on, but not the sentinels that close windows."""
    job(write, "SELECT auction, dateTime FROM bid")
    _, rows = run_job("--query", "mine", *EVENTS)
    _, bids = run_job("--query", "q0", *EVENTS)
    assert rows == sorted((bid[0], bid[3]) for bid in bids)


def test_a_condition_that_no_sentinel_meets_leaves_no_window_open(
    write: Path, run_job: RunJob
) -> None:
    _, bids = run_job("--query", "q0", *EVENTS)
    price = bids[0][2]
    where = f"WHERE price = {price} GROUP BY window(dateTime, '1 day')"
    job(write, f"SELECT window.start, count(*) FROM bid {where}")
    _, rows = run_job("--query", "mine", *EVENTS)
    assert [row[1] for row in rows] == [sum(bid[2] == price for bid in bids)]


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_the_last_row_of_a_key_counts(write: Path, run_job: RunJob, mode: str) -> None:
    job(write, "SELECT auction, count(*) AS bids FROM bid GROUP BY auction", mode, ("auction",))
    result, rows = run_job("--query", "mine", *EVENTS)
    assert result["output_mode"] == mode
    assert sum(row[1] for row in rows) == 2000 * 46 // 50
    assert len({row[0] for row in rows}) == len(rows)


def test_a_run_once_more_has_the_same_rows(
    write: Path, spark: SparkSession, tmp_path: Path
) -> None:
    job(write, COUNTED)
    out, again = tmp_path / "out", tmp_path / "again"
    sink = ["--sink", f"parquet:{out}", "--again", str(again), "--result", str(tmp_path / "r")]
    complete(spark, parse(["--query", "mine", *EVENTS, *sink]), quiet=True)
    one, other = (plain(spark.read.parquet(str(each)).collect()) for each in (out, again))
    assert one == other != []
    assert spark.conf.get("spark.sql.shuffle.partitions") == "1"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT\n auctoin FROM bid", "mine.sql:2:2: [UNRESOLVED_COLUMN"),
        ("SELECT * FROM bid;\n SELCT 3", "mine.sql:2:2: [PARSE_SYNTAX_ERROR]"),
        (
            "CREATE TEMPORARY VIEW w AS\nSELECT pricee FROM bid;\nSELECT * FROM w",
            "mine.sql:2:8: [UNRESOLVED_COLUMN",
        ),
        ("SELECT 1", "mine.sql: the last statement is no query over a stream"),
        ("-- nothing; at all\n", "mine.sql: it has no statement"),
        ("SELECT price, bidder AS price FROM bid", "mine.sql: two columns are called price"),
        (
            "SELECT count(*) AS n, window(dateTime, '1 day').start FROM bid GROUP BY ALL",
            "mine.sql: a column is called window.start; give it a plain name with AS",
        ),
    ],
)
def test_a_mistake_is_one_line_with_its_place(
    write: Path, run_job: RunJob, sql: str, said: str
) -> None:
    job(write, sql)
    with pytest.raises(UsageError) as error:
        run_job("--query", "mine", *EVENTS)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("sql", "mode", "said", "remedy"),
    [
        (
            "SELECT auction, count(*) AS bids FROM bid GROUP BY auction",
            "append",
            "mine.yaml: output_mode: append: ",
            "; write update or complete, with the key of its rows, or correct the query",
        ),
        (
            "SELECT auction, price FROM bid",
            "complete",
            "mine.yaml: output_mode: complete: ",
            "; write another one, or correct the query",
        ),
        ("SELECT auction FROM bid LIMIT 3", "update", "mine.yaml: ", "correct the query"),
    ],
)
def test_what_spark_does_not_run_as_a_stream_is_said_of_the_key_of_the_job(
    write: Path, run_job: RunJob, sql: str, mode: str, said: str, remedy: str
) -> None:
    job(write, sql, mode, ("auction",) if mode == "update" else ())
    with pytest.raises(UsageError) as error:
        run_job("--query", "mine", *EVENTS)
    assert str(error.value).startswith(said)
    assert str(error.value).endswith(remedy)
    assert "\n" not in str(error.value)


def test_a_function_that_fails_in_a_worker_is_named_with_its_line(
    write: Path, run_job: RunJob
) -> None:
    """Not with the first line of its traceback, which says nothing."""
    job(write, "")
    text = (
        "from pyspark.sql.functions import udf\n\n\ndef build(spark, tables):\n"
        "    share = udf(lambda price: 1 // (price - price), 'long')\n"
        "    return tables['bid'].select(share('price').alias('share'))\n"
    )
    (write / "mine" / "mine.py").write_text(text)
    content = json.loads((write / "mine" / "job.json").read_text())
    content |= {"file": "mine.py", "function": "build"}
    (write / "mine" / "job.json").write_text(json.dumps(content))
    with pytest.raises(QueryFailedError, match=r"failed: ZeroDivisionError: .* \(mine.py:5\)$"):
        run_job("--query", "mine", *EVENTS)


HELPED = """\
from pyspark.sql import functions as F
from word_length import length

@F.udf("bigint")
def measured(text):
    return SPARE + length(text)

SPARE = 1

def build(spark, tables):
    bids = tables["bid"]
    return bids.select("auction", "dateTime", measured("channel").alias("long"))
"""


def python_job(below: Path, text: str, **files: str) -> None:
    job(below, "")
    (below / "mine" / "mine.py").write_text(text)
    for name, content in files.items():
        (below / "mine" / f"{name}.py").write_text(content)
    content = {"name": "mine", "formulation": "python-1", "file": "mine.py", "function": "build"}
    content |= {"output_mode": "append", "key": [], "py_files": [f"{name}.py" for name in files]}
    (below / "mine" / "job.json").write_text(json.dumps(content))


def test_a_python_job_has_its_functions_and_files_in_the_workers(
    write: Path, run_job: RunJob
) -> None:
    python_job(write, HELPED, word_length="def length(text):\n    return len(text)\n")
    result, rows = run_job("--query", "mine", *EVENTS)
    assert result["formulation"] == "python-1"
    assert len(rows) == 2000 * 46 // 50
    assert {row[2] for row in rows} > {len("Google") + 1, len("Apple") + 1}


VIEWS = """\
def build(spark, tables):
    bids = spark.table("bid").select("auction", "price")
    return spark.sql("SELECT auction, price FROM bid").unionByName(bids)
"""


def test_a_python_job_may_read_the_tables_as_views(
    write: Path, run_job: RunJob, spark: SparkSession
) -> None:
    spark.catalog.dropTempView("bid")  # of another test, in the same session
    python_job(write, VIEWS)
    _, rows = run_job("--query", "mine", *EVENTS)
    assert len(rows) == 2 * 2000 * 46 // 50


DATACLASS = """\
from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import functions as F

@dataclass
class Limit:
    price: int

@F.udf("boolean")
def is_below(price):
    return price < Limit(1_000).price

BELOW = is_below("price")

def build(spark, tables):
    return tables["bid"].where(BELOW).select("price")
"""


def test_a_python_job_may_have_dataclasses_which_workers_get_by_value(
    write: Path, run_job: RunJob
) -> None:
    """A dataclass looks its module up; the workers have no such module."""
    python_job(write, DATACLASS)
    _, rows = run_job("--query", "mine", *EVENTS)
    assert rows
    assert max(row[0] for row in rows) < 1_000


@pytest.mark.parametrize("archive", ["texts.zip", "texts-1.0-py3-none-any.whl"])
def test_a_python_job_may_import_from_an_archive(
    write: Path, run_job: RunJob, tmp_path: Path, archive: str
) -> None:
    """As it is written by the loader: drivers and workers import from it."""
    package = f"length_of_{archive[-3:]}"
    with ZipFile(tmp_path / archive, "w") as file:
        file.writestr(f"{package}/__init__.py", "def length(text):\n    return len(text)\n")
    (tmp_path / "mine.py").write_text(HELPED.replace("word_length", package))
    text = f"tables: nexmark\npython: mine.py:build\npy_files: [{archive}]\n"
    (tmp_path / "mine.yaml").write_text(text)
    read_job(tmp_path / "mine.yaml").write(write)
    _, rows = run_job("--query", "mine", *EVENTS)
    assert {row[2] for row in rows} > {len("Google") + 1, len("Apple") + 1}


def test_a_timed_run_digests_maps(write: Path, spark: SparkSession, tmp_path: Path) -> None:
    job(write, "SELECT auction, map(channel, price, 'bidder', bidder) AS of FROM bid")
    arguments = ["--query", "mine", *EVENTS, "--result", str(tmp_path / "r")]
    first, second = (run(spark, parse(arguments), quiet=True) for _ in range(2))
    assert first["output_rows"] == 2000 * 46 // 50
    assert first["digest"] == second["digest"] != "0" * 16


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def build(spark, tables):\n    return tables['bidd']\n", "mine.py:2: KeyError: 'bidd'"),
        (
            "def build(spark, tables):\n    b = tables['bid']\n    return b.select('pricee')\n",
            "mine.py:3: AnalysisException: [UNRESOLVED_COLUMN",
        ),
        ("def build(spark, tables):\n    return None\n", "mine.py: build returns no streaming"),
        (
            "import no_such.module\n",
            "mine.py:1: ModuleNotFoundError: No module named 'no_such'; "
            "if no_such.py is beside the job, list it in py_files",
        ),
        ("def build(:\n", "mine.py:1: SyntaxError: invalid syntax"),
    ],
)
def test_a_mistake_in_python_is_one_line_with_its_place(
    write: Path, run_job: RunJob, text: str, said: str
) -> None:
    python_job(write, text)
    with pytest.raises(UsageError) as error:
        run_job("--query", "mine", *EVENTS)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def test_an_unknown_name_is_refused(write: Path, run_job: RunJob) -> None:
    with pytest.raises(UsageError, match="unknown query 'mine'"):
        run_job("--query", "mine", *EVENTS)


def test_a_semicolon_in_quotes_or_comments_ends_nothing() -> None:
    text = 'SELECT \';\', "a;\\"b", `c;d` -- e;f\n/* g;\n;h */ ;\n SELECT 2;\n-- i;\n'
    first, second = statements(text)
    assert first == text[: text.index(" ;\n") + 1]
    assert second.strip() == "SELECT 2"
    assert second.count("\n") == 3
    assert second.index("SELECT") - second.rindex("\n") == 2


def test_views_and_functions_of_an_earlier_run_are_gone(
    spark: SparkSession, tmp_path: Path
) -> None:
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    file = tmp_path / "one.sql"
    function = "CREATE TEMPORARY FUNCTION twice(x BIGINT) RETURNS BIGINT RETURN 2 * x"
    view = "CREATE TEMPORARY VIEW made AS SELECT twice(value) AS value FROM bid"
    file.write_text(f"{function}; {view}; SELECT * FROM made")
    for _ in range(2):
        assert run_statements(spark, file, {"bid": stream}).columns == ["value"]


PER_BATCH = """\
from pyspark.sql import functions as F

def build(spark, tables):
    return tables["bid"].groupBy("auction").count()

def each(rows, batch):
    kinds = [rows.withColumn("kind", F.lit(kind)) for kind in ("one", "other")]
    return kinds + [rows.limit(0).withColumn("kind", F.lit("none"))]
"""


def per_batch_job(below: Path, text: str, output_mode: str = "update") -> None:
    python_job(below, text)
    file = below / "mine" / "job.json"
    more = {"foreach_batch": "each", "output_mode": output_mode, "key": ["auction", "kind"]}
    file.write_text(json.dumps({**json.loads(file.read_text()), **more}))


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_what_a_batch_writes_is_the_result_of_a_job(
    write: Path, run_job: RunJob, mode: str
) -> None:
    per_batch_job(write, PER_BATCH, mode)
    _, rows = run_job("--query", "mine", *EVENTS)
    assert {row[2] for row in rows} == {"one", "other"}
    assert sum(row[1] for row in rows) == 2 * 2000 * 46 // 50


def test_a_timed_run_counts_what_a_batch_would_write(
    write: Path, spark: SparkSession, tmp_path: Path
) -> None:
    per_batch_job(write, PER_BATCH.replace('groupBy("auction").count()', 'select("auction")'))
    arguments = ["--query", "mine", *EVENTS, "--result", str(tmp_path / "r")]
    first, second = (run(spark, parse(arguments), quiet=True) for _ in range(2))
    assert first["output_rows"] == 2 * 2000 * 46 // 50
    assert first["digest"] == second["digest"] != "0" * 16


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rows.limit(0)", "rows.limit(zero)", "mine.py:8: NameError: name 'zero' is not defined"),
        ("    return kinds + [", "    kinds + [", "mine.py: each returns no frame; return what"),
        (
            'F.lit("none"))',
            'F.lit("none")).drop("count")',
            "mine.py: each returns frames with other columns, auction, count, kind and auction, k",
        ),
        ("kinds = [rows.with", "kinds = [rows.select('x').with", "mine.py:7: AnalysisException: "),
    ],
)
def test_a_mistake_in_a_batch_is_one_line_with_its_place(
    write: Path, run_job: RunJob, old: str, new: str, said: str
) -> None:
    assert old in PER_BATCH
    per_batch_job(write, PER_BATCH.replace(old, new))
    with pytest.raises(UsageError) as error:
        run_job("--query", "mine", *EVENTS)
    assert str(error.value).startswith(said)
    assert "\n" not in str(error.value)


def examples() -> dict[str, tuple[str, str]]:
    """The examples of the page, by the file of the query: what the YAML says, and the file."""
    page = (paths.repository() / "docs" / "your-own-jobs.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", page, re.M | re.S)
    found = {}
    for (kind, text), (code, file) in pairwise(blocks):
        if kind == "yaml" and code in ("sql", "python"):
            name = re.search(rf"^{code}: ([\w.]+)", text, re.M)
            assert name, text
            found[name[1]] = (text, file)
    return found


@pytest.mark.parametrize(
    "file", ["busy_auctions.sql", "busy_auctions.py", "bids_so_far.py", "large_bids.py"]
)
def test_an_example_of_the_page_runs(
    write: Path, run_job: RunJob, spark: SparkSession, tmp_path: Path, file: str
) -> None:
    assert len(examples()) == 4
    text, code = examples()[file]
    path = tmp_path / file
    path.write_text(code)
    path.with_suffix(".yaml").write_text(
        re.sub("^(reference|expectations):.*", "", text, flags=re.M)
    )
    job = read_job(path.with_suffix(".yaml"))
    job.write(write)
    for conf, value in job.confs.items():
        spark.conf.set(conf, value)
    try:
        _, rows = run_job("--query", job.name, *EVENTS)
    finally:
        for conf in job.confs:
            spark.conf.unset(conf)
    assert rows
