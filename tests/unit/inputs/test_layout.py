"""Files of a person's own are laid out in the same micro-batches, whatever their dates are."""

from __future__ import annotations

import gzip
import json
import os
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from nexmark.config import Job
from nexmark.config.job_tables import JobTable
from nexmark.errors import NexmarkError
from nexmark.expectations.tables import open_laid_out
from nexmark.inputs.input_files import input_problem, with_input_hash
from nexmark.inputs.layout import lay_out
from nexmark.inputs.steady_rows import warm_up_problem
from nexmark_jobs.sources.laid_out_tables import read_tables

AT = "2026-01-01 00:00:00"


def silent(line: str) -> None:
    """Print nothing."""


@pytest.fixture(autouse=True)
def own_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the configuration; the files of the jobs are found from `jobs` in it."""
    monkeypatch.setenv("NEXMARK_CONF", str(tmp_path / "conf"))
    (tmp_path / "conf" / "jobs").mkdir(parents=True)
    return tmp_path / "conf"


def job(**tables: JobTable) -> Job:
    return Job(name="mine", tables=tables, sql="mine.sql", text="SELECT 1")


def stream(files: object, **more: object) -> JobTable:
    times = {"event_time": "moment", "watermark": "1 minute"}
    return JobTable.model_validate({"files": str(files), **times, **more})


def laid_out(of: Job, tmp_path: Path, most_batches: int | None = None) -> Path:
    lay_out(of, tmp_path / "laid out", silent, most_batches)
    return tmp_path / "laid out"


def write_lines(path: Path, *ids: int, at: str = AT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"id": each, "moment": at}) + "\n" for each in ids))
    return path


def ids_of(file: Path) -> list[int]:
    return [row[0] for row in duckdb.execute(f"SELECT id FROM '{file}'").fetchall()]


def test_rows_come_in_the_order_of_the_names_and_not_of_the_dates(tmp_path: Path) -> None:
    second, first = (
        write_lines(tmp_path / "in" / name, *ids)
        for name, ids in (("b.json", (3, 4, 5)), ("a.json", (1, 2)))
    )
    os.utime(second, (1, 1))
    os.utime(first, (2, 2))
    made = laid_out(job(orders=stream(tmp_path / "in", rows_per_batch=2)), tmp_path)
    files = sorted((made / "orders").iterdir())
    assert [ids_of(file) for file in files] == [[1, 2], [3, 4], [5]]
    assert sorted(files, key=lambda file: file.stat().st_mtime) == files
    assert read_tables(made)[0].rows == (2, 2, 1)


def test_every_batch_has_as_many_files(tmp_path: Path) -> None:
    """Spark counts files: a last batch with few rows has files without any."""
    duckdb.execute(
        f"COPY (SELECT range AS id, TIMESTAMP '{AT}' AS moment FROM range(100_001)) "
        f"TO '{tmp_path}/in.parquet'"
    )
    made = laid_out(job(orders=stream(tmp_path / "in.parquet")), tmp_path)
    (table,) = read_tables(made)
    assert (table.rows, table.files_per_batch) == ((100_000, 1), 4)
    files = sorted((made / "orders").iterdir())
    assert [len(ids_of(file)) for file in files] == [25_000] * 4 + [0, 0, 0, 1]
    assert [each for file in files for each in ids_of(file)] == list(range(100_001))


def test_a_static_table_is_one_file(tmp_path: Path) -> None:
    (tmp_path / "country.csv").write_text("code,name\nch,Switzerland\nat,Austria\n")
    orders = stream(write_lines(tmp_path / "in" / "a.json", 1))
    country = JobTable(files=str(tmp_path / "country.csv"), static=True)
    made = laid_out(job(orders=orders, country=country), tmp_path, most_batches=1)
    assert read_tables(made)[1].static
    with open_laid_out(made) as events:
        rows = events.connection.execute("SELECT code, name FROM country").fetchall()
        assert rows == [("ch", "Switzerland"), ("at", "Austria")]
        assert events.count == 1


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        (f"TIMESTAMP '{AT}'", "TIMESTAMP WITH TIME ZONE"),
        (f"TIMESTAMP_NS '{AT}'", "TIMESTAMP WITH TIME ZONE"),
        (f"TIMESTAMPTZ_NS '{AT}+00'", "TIMESTAMP WITH TIME ZONE"),
        (f"[TIMESTAMPTZ_NS '{AT}+00']", "TIMESTAMP WITH TIME ZONE[]"),
        ("NULL", "VARCHAR"),
        ("1::UBIGINT", "DECIMAL(20,0)"),
        ("uuid()", "VARCHAR"),
        ("TIME '10:00:00'", "VARCHAR"),
        ("[1, 2]", "INTEGER[]"),
        ("array_value(1, 2)", "INTEGER[]"),
        (f"[TIMESTAMP_NS '{AT}']", "TIMESTAMP WITH TIME ZONE[]"),
        ("{'a b': uuid(), 'at': [1::UTINYINT]}", 'STRUCT("a b" VARCHAR, "at" SMALLINT[])'),
        (
            f"MAP {{'a': {{'at': TIMESTAMP '{AT}', 'time': TIME '10:00:00'}}}}",
            'MAP(VARCHAR, STRUCT("at" TIMESTAMP WITH TIME ZONE, "time" VARCHAR))',
        ),
        ("1.5::DECIMAL(9, 2)", "DECIMAL(9,2)"),
    ],
)
def test_spark_can_read_every_type(tmp_path: Path, sql: str, kind: str) -> None:
    row = f"SELECT 1 AS id, TIMESTAMP '{AT}' AS moment, {sql} AS value"
    duckdb.execute(f"COPY ({row}) TO '{tmp_path}/in.parquet'")
    made = laid_out(job(orders=stream(tmp_path / "in.parquet")), tmp_path)
    described = duckdb.execute(f"DESCRIBE FROM '{made}/orders/*.parquet'").fetchall()
    written = {name: type_ for name, type_, *_ in described}["value"]
    assert duckdb.sqltype(written) == duckdb.sqltype(kind)


def test_times_of_texts_are_in_utc(tmp_path: Path) -> None:
    made = laid_out(job(orders=stream(write_lines(tmp_path / "a.json", 1))), tmp_path)
    with open_laid_out(made) as events:
        ((moment,),) = events.connection.execute("SELECT moment FROM orders").fetchall()
    assert str(moment) == AT


def moments(files: Path, tmp_path: Path, **more: object) -> list[str]:
    """The times of the rows of files, in their order, as DuckDB's reference sees them."""
    made = laid_out(job(orders=stream(files, **more)), tmp_path)
    with open_laid_out(made) as events:
        rows = events.connection.execute("SELECT moment FROM orders").fetchall()
    return [str(row[0]) for row in rows]


@pytest.mark.parametrize("ending", ["json", "csv", "parquet"])
def test_the_offset_of_a_text_counts(tmp_path: Path, ending: str) -> None:
    """Texts with and without an offset stand beside one another."""
    texts = ["2026-01-01T10:00:00+02:00", "2026-01-01 08:00:01", "2026-01-01T08:00:02Z"]
    texts += ["2026-01-01 03:00:03.5-05:00"]
    values = ", ".join(f"('{text}')" for text in texts)
    file = tmp_path / f"in.{ending}"
    duckdb.execute(f"COPY (FROM (VALUES {values}) AS made(moment)) TO '{file}'")
    begin = "2026-01-01 08:00:0"
    wanted = [f"{begin}0", f"{begin}1", f"{begin}2", f"{begin}3.500000"]
    assert moments(file, tmp_path) == wanted


@pytest.mark.parametrize("kind", ["TIMESTAMP_NS", "TIMESTAMP_MS", "TIMESTAMPTZ", "TIMESTAMPTZ_NS"])
def test_a_time_of_any_kind_is_an_event_time(tmp_path: Path, kind: str) -> None:
    """Pandas counts nanoseconds."""
    text = "2026-01-01 00:00:00+00" if "TZ" in kind else AT
    duckdb.execute(f"COPY (SELECT {kind} '{text}' AS moment) TO '{tmp_path}/in.parquet'")
    assert moments(tmp_path / "in.parquet", tmp_path) == [AT]


@pytest.mark.parametrize(
    ("number", "unit"),
    [
        ("1767225600::INTEGER", "s"),
        ("1767225600.0::DOUBLE", "s"),
        ("1767225600000::BIGINT", "ms"),
        ("1767225600000000::UBIGINT", "us"),
        ("1767225600000000123::BIGINT", "ns"),
    ],
)
def test_a_number_is_a_time_by_its_unit(tmp_path: Path, number: str, unit: str) -> None:
    duckdb.execute(f"COPY (SELECT {number} AS moment) TO '{tmp_path}/in.parquet'")
    assert moments(tmp_path / "in.parquet", tmp_path, event_time_unit=unit) == [AT]


def test_numbers_in_names_count_as_numbers(tmp_path: Path) -> None:
    """In the order of letters, part-10 would come before part-2, and its rows too early."""
    for number in range(12, 0, -1):
        write_lines(tmp_path / "in" / f"part-{number}.json", number)
    for files in (tmp_path / "in", tmp_path / "in" / "part-*.json"):
        made = laid_out(job(orders=stream(files)), tmp_path)
        assert ids_of(made / "orders" / "00000-*.parquet") == list(range(1, 13))


def test_paths_of_a_list_are_read_in_its_order_and_each_file_once(tmp_path: Path) -> None:
    names = ("b.json", "a-10.json", "a-9.json")
    for number, name in enumerate(names, 1):
        write_lines(tmp_path / name, number)
    files = [str(tmp_path / name) for name in ("b.json", "a-*.json", "*.json")]
    listed = JobTable.model_validate({"files": tuple(files)})
    made = laid_out(job(orders=listed), tmp_path)
    assert ids_of(made / "orders" / "*.parquet") == [1, 3, 2]


def test_a_pattern_may_name_directories(tmp_path: Path) -> None:
    for number, day in enumerate(("day=2", "day=10", "_temporary"), 1):
        write_lines(tmp_path / day / "sub" / "a.json", number)
    made = laid_out(job(orders=stream(tmp_path / "*")), tmp_path)
    rows = duckdb.execute(f"SELECT id, day FROM '{made}/orders/*.parquet'").fetchall()
    assert rows == [(1, 2), (2, 10)]


def test_a_row_in_another_partition_is_another_row(tmp_path: Path) -> None:
    hashes = set()
    for day in ("day=1", "day=2"):
        write_lines(tmp_path / day / "in" / day / "a.json", 1)
        hashes.add(with_input_hash(job(orders=stream(tmp_path / day / "in"))).input_sha256)
    assert len(hashes) == 2


def typed(file: Path, tmp_path: Path, types: dict[str, str]) -> tuple[list[str], list[object]]:
    """The types and the values of the first row of a file, by the types that a job gives."""
    made = laid_out(job(orders=stream(file, types=types)), tmp_path)
    rows = duckdb.sql(f"SELECT * EXCLUDE (moment) FROM '{made}/orders/*.parquet'")
    return [str(kind) for kind in rows.types], list(rows.fetchall()[0])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("in.csv", f"code,amount,moment,id\n007,1.10,{AT},5\n"),
        ("in.json", f'{{"code": "007", "amount": 1.10, "moment": "{AT}", "id": 5}}\n'),
    ],
)
def test_a_job_may_say_of_which_type_a_column_is(tmp_path: Path, name: str, text: str) -> None:
    """Money is exact, and digits of a code stay a text."""
    (tmp_path / name).write_text(text)
    types = {"amount": "Decimal(10,2)", "code": "string", "id": "int"}
    kinds, values = typed(tmp_path / name, tmp_path, types)
    assert kinds == ["VARCHAR", "DECIMAL(10,2)", "INTEGER"]
    assert values == ["007", Decimal("1.10"), 5]


def test_a_time_in_a_typed_file_of_lines_is_still_a_time(tmp_path: Path) -> None:
    lines = (json.dumps({"id": 1, "moment": at}) + "\n" for at in (f"{AT}+01:00", AT))
    (tmp_path / "in.json").write_text("".join(lines))
    found = moments(tmp_path / "in.json", tmp_path, types={"id": "decimal(5,1)"})
    assert found == ["2025-12-31 23:00:00", AT]


@pytest.mark.parametrize("ending", ["json", "csv", "parquet"])
def test_the_column_of_a_directory_may_have_a_type(tmp_path: Path, ending: str) -> None:
    file = tmp_path / "code=007" / f"in.{ending}"
    file.parent.mkdir()
    duckdb.execute(f"COPY (SELECT 1 AS id, '{AT}' AS moment) TO '{file}'")
    kinds, values = typed(file, tmp_path, {"code": "string"})
    assert (kinds[1], values) == ("VARCHAR", [1, "007"])


def test_an_empty_file_among_others_has_no_column(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").touch()
    (tmp_path / "in" / "b.csv").write_text(f"code,moment\nch,{AT}\n")
    assert typed(tmp_path / "in", tmp_path, {}) == (["VARCHAR"], ["ch"])


def test_a_value_of_another_type_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(f"amount,moment\n1.10,{AT}\nmuch,{AT}\n")
    said = (
        r"CSV Error on Line: 3: Error when converting column \"amount\".* \"much\" .*in.csv\); corr"
    )
    with pytest.raises(NexmarkError, match=said):
        typed(tmp_path / "in.csv", tmp_path, {"amount": "decimal(10,2)"})


def test_a_column_may_be_called_like_the_place_of_a_row(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("rowid,moment\n" + "".join(f"{n},{AT}\n" for n in (7, 0, 7)))
    made = laid_out(job(orders=stream(tmp_path / "in.csv", rows_per_batch=2)), tmp_path)
    rows = duckdb.execute(f"SELECT rowid FROM '{made}/orders/*.parquet'").fetchall()
    assert rows == [(7,), (0,), (7,)]


def test_the_first_line_is_a_header_if_all_columns_are_texts(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(f"code,moment\nch,{AT}\n")
    types = {"code": "string", "moment": "string"}
    assert typed(tmp_path / "in.csv", tmp_path, types) == (["VARCHAR"], ["ch"])


def test_compressed_lines_hidden_files_and_a_pattern(tmp_path: Path, own_conf: Path) -> None:
    """A path that is not absolute begins at the file of the job."""
    data = own_conf / "jobs" / "data"
    data.mkdir()
    with gzip.open(data / "a.json.gz", "wt") as file:
        file.write(json.dumps({"id": 7, "moment": AT}) + "\n")
    write_lines(data / "_SUCCESS", 1)
    write_lines(data / ".b.json", 2)
    write_lines(data / "_temporary" / "c.json", 3)
    for files in ("data", "data/*.gz"):
        made = laid_out(job(orders=stream(files, rows_per_batch=1)), tmp_path)
        assert ids_of(made / "orders" / "00000-00.parquet") == [7]


def test_the_columns_of_partitioned_directories_are_columns(tmp_path: Path) -> None:
    for day in ("2026-01-01", "2026-01-02"):
        write_lines(tmp_path / "in" / f"day={day}" / "a.json", 1)
    made = laid_out(job(orders=stream(tmp_path / "in")), tmp_path)
    rows = duckdb.execute(f"SELECT day::VARCHAR FROM '{made}/orders/*.parquet'").fetchall()
    assert rows == [("2026-01-01",), ("2026-01-02",)]


def test_other_rows_make_another_formulation_and_other_dates_do_not(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "in" / "a.json", 1)
    first = with_input_hash(job(orders=stream(tmp_path / "in")))
    os.utime(file, (1, 1))
    assert with_input_hash(first) == first
    write_lines(file, 2)
    assert with_input_hash(first).formulation != first.formulation
    with pytest.raises(NexmarkError, match="mine: the files of its tables are not what they were"):
        laid_out(first, tmp_path)
    assert not (tmp_path / "laid out").exists()


@pytest.mark.parametrize(
    ("files", "more", "said"),
    [
        ("none/*.json", {}, r"mine.yaml: tables.orders.files: there is no file .*none/\*.json; c"),
        ("a.txt", {}, r"tables.orders.files: .*a.txt is not read; name \*.parquet"),
        ("both", {}, r"tables.orders.files: there are files of .csv and of .json; name one kind"),
        (
            "a.json",
            {"event_time": "momment"},
            r"event_time: the files have no column 'momment'; did you",
        ),
        (
            "a.json",
            {"event_time": "id"},
            r"event_time: id is of type BIGINT; add event_time_unit: ms, .* else name a column of",
        ),
        (
            "a.json",
            {"event_time_unit": "s"},
            r"event_time_unit: moment is of type .*, no number;",
        ),
        ("a.json", {"event_time": "open"}, r"tables.orders.event_time: open is of type BOOLEAN; n"),
        (
            "a.json",
            {"types": {"idd": "int"}},
            r"types.idd: the files have no column .idd.; did",
        ),
        (
            "a.parquet",
            {"types": {"id": "string"}},
            r"types.id: Parquet says itself that id is of type INTEGER; remove it here",
        ),
        ("bad.json", {}, r"tables.orders.files: .*; correct the files"),
    ],
)
def test_a_mistake_is_found_before_the_night(
    own_conf: Path, files: str, more: dict[str, object], said: str
) -> None:
    data = own_conf / "jobs"
    for name in ("a.json", "a.txt", "both/a.json", "both/b.csv"):
        write_lines(data / name, 1)
    (data / "a.json").write_text(f'{{"id": 1, "open": true, "moment": "{AT}"}}\n')
    duckdb.execute(f"COPY (SELECT 1 AS id, '{AT}' AS moment) TO '{data}/a.parquet'")
    (data / "bad.json").write_text('{"id": 1, \n nothing\n')
    problem = input_problem(job(orders=stream(files, **more)))
    with pytest.raises(NexmarkError, match=said):
        raise NexmarkError(problem)
    assert "\n" not in problem


def test_files_without_a_row_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,moment\n")
    with pytest.raises(NexmarkError, match=r"tables.orders.(files: the files have no row|event)"):
        laid_out(job(orders=stream(tmp_path / "in.csv")), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] in (["conf", "in.csv"], ["in.csv", "conf"])


def test_a_job_that_is_over_before_it_is_warm_is_told_which_batches_to_have(tmp_path: Path) -> None:
    write_lines(tmp_path / "in" / "a.json", *range(1200))
    file, static = tmp_path / "in", JobTable(files=str(tmp_path / "in"), static=True)
    said = (
        "mine.yaml: tables.orders.rows_per_batch: 1,200 rows are 1 micro-batch, all of them "
        "warm-up, so the figures of the job have the start of the JVM in them; write "
        "rows_per_batch: 100"
    )
    assert warm_up_problem(job(orders=stream(file), all=static), 2).endswith(said)
    few = job(orders=stream(file), more=stream(file, rows_per_batch=600))
    assert "tables.more.rows_per_batch: 1,200 rows are 2 micro-batches," in warm_up_problem(few, 2)
    assert warm_up_problem(job(orders=stream(file, rows_per_batch=100)), 2) == ""
    assert warm_up_problem(few, 1) == ""


def test_files_that_cannot_be_read_are_no_matter_of_the_warm_up(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"id": 1, \n nothing\n')
    assert warm_up_problem(job(orders=stream(tmp_path / "bad.json")), 2) == ""
    assert warm_up_problem(Job(name="mine", tables="nexmark", sql="a.sql"), 2) == ""
