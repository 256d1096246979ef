"""Jobs of a person's own, in Spark SQL or Python, which `run_query.py` runs as it runs a query.

A job is a directory with `job.json` and the files that it names; `nexmark.config.own_jobs` writes
it. The jobs of a night are in `own/` beside this file, in the copy that is deployed.

A SQL file has one or more statements with `;` between them. All but the last one make what the
last one needs, as temporary views; the last one is the query. It reads the streams as the views
`person`, `auction` and `bid`, or its own tables by their names.

A Python file has a function of the session and of a dict with these streams by name; the session
has them as views, too. It returns the frame of the query. Python workers get its other files by
`addPyFile`. Another function of it may make of each micro-batch the rows that a `foreachBatch`
would write.
"""

import json
import logging
import re
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from nexmark_jobs.errors import UsageError, one_line
from nexmark_jobs.queries.formulation import WATERMARK_DELAY, Formulation, Query, Streams
from nexmark_jobs.sources.event_files import without_sentinels
from nexmark_jobs.sources.table_files import Tables

OWN = Path(__file__).with_name("own")
"""Where the jobs of a night are."""
JOB_FILE = "job.json"
STREAMS = ("person", "auction", "bid")
_PLACE = re.compile(r";? ?\(?\bline (?P<line>\d+),? pos (?P<column>\d+)\)?")


@dataclass(frozen=True)
class OwnJob:
    """A job in a directory.

    Attributes:
        directory: where `job.json` and the other files are.
        name: the name of the job.
        formulation: the name of its content, so that a changed job is another formulation.
        file: the file of its statements, or of its function.
        function: the name of the function; "" for statements.
        output_mode: Spark's output mode.
        key: the columns by which later rows replace earlier ones.
        py_files: the files that the Python file imports.
        foreach_batch: the function that makes the rows to write of a micro-batch; "" to write it.
    """

    directory: Path
    name: str
    formulation: str
    file: str
    function: str
    output_mode: str
    key: tuple[str, ...] = ()
    py_files: tuple[str, ...] = ()
    foreach_batch: str = ""

    def query(self) -> Query:
        """Return it as a query, whose columns are those that Spark finds.

        In append mode a row comes out when its window closes, so the end of the input closes all.
        """
        replaces = self.output_mode != "append"
        file = PythonFile(self.directory / self.file)
        per_batch = partial(file.frames, self.foreach_batch) if self.foreach_batch else None
        return Query(
            self.name,
            (),
            (Formulation(self.formulation, partial(self._build, file), per_batch=per_batch),),
            key=self.key if replaces else (),
            needs_end_of_input=not replaces,
            mode=self.output_mode,
        )

    def _build(self, file: "PythonFile", streams: Streams) -> DataFrame:
        """Return the frame of the query; UsageError says where the job is wrong."""
        if not isinstance(streams.source, Tables):
            events = {kind: self._stream(streams, kind) for kind in STREAMS}
            return self._frame(file, streams.spark, events)
        frame = self._frame(file, streams.spark, streams.source.frames())
        streams.source.check_all_read(frame)
        return frame

    def _frame(
        self, file: "PythonFile", spark: SparkSession, tables: Mapping[str, DataFrame]
    ) -> DataFrame:
        """Return what the statements or the function make of tables."""
        if not self.function:
            return run_statements(spark, file.path, tables)
        for name in self.py_files:
            spark.sparkContext.addPyFile(str(self.directory / name))
        _make_views(spark, tables)
        return file.frame(self.function, spark, tables)

    def _stream(self, streams: Streams, kind: str) -> DataFrame:
        """Return a stream with its watermark, without the numbers of events and the sentinels."""
        events = streams.source.of_kind(kind).drop("n").withWatermark("dateTime", WATERMARK_DELAY)
        return without_sentinels(events, "dateTime") if self.output_mode == "append" else events


def own_query(name: str, below: Path = OWN) -> Query:
    """Return the job in the directory `name` as a query; KeyError if there is none."""
    file = below / name / JOB_FILE
    if not file.is_file():
        raise KeyError(name)
    content = json.loads(file.read_text(encoding="utf-8"))
    lists = {name: tuple(content[name]) for name in ("key", "py_files")}
    return OwnJob(file.parent, **{**content, **lists}).query()


@dataclass
class PythonFile:
    """The Python file of a job, which is run whenever its frame is made.

    Python workers get its functions by value: it is no module that they could import. In this
    process it is one, because dataclasses look their module up.

    Attributes:
        path: the file.
    """

    path: Path
    _module: ModuleType | None = field(default=None, init=False)
    _columns: Sequence[str] = field(default=(), init=False)

    def frame(
        self, function: str, spark: SparkSession, tables: Mapping[str, DataFrame]
    ) -> DataFrame:
        """Return the frame that a function makes of tables.

        Args:
            function: the name of the function.
            spark: the session.
            tables: the tables by name.

        Raises:
            UsageError: The file or the function fails, with its line, or returns no streaming
                frame.
        """
        self._module, self._columns = ModuleType(f"own_job_{self.path.stem}"), ()
        self._module.__file__ = str(self.path)
        sys.modules[self._module.__name__] = self._module
        cloudpickle.register_pickle_by_value(self._module)  # type: ignore[no-untyped-call]
        with self._blamed():
            exec(compile(self.path.read_bytes(), str(self.path), "exec"), vars(self._module))
            frame = getattr(self._module, function)(spark, dict(tables))
        if not isinstance(frame, DataFrame) or not frame.isStreaming:
            what = "no streaming frame; return one that is made of the tables"
            raise UsageError(f"{self.path.name}: {function} returns {what}")
        return checked_columns(self.path, frame)

    def frames(self, function: str, rows: DataFrame, batch: int) -> list[DataFrame]:
        """Return the frames that a function makes of a micro-batch, after `frame`.

        Args:
            function: the name of the function.
            rows: the rows of the micro-batch.
            batch: its number.

        Raises:
            UsageError: The function fails, with its line, or returns no frames of the same columns.
        """
        with self._blamed():
            made = getattr(self._module, function)(rows, batch)
        frames = [made] if isinstance(made, DataFrame) else made
        if not isinstance(frames, list | tuple) or not frames:
            frames = [None]
        if not all(isinstance(each, DataFrame) and not each.isStreaming for each in frames):
            what = "no frame; return what it would write, as a frame or as a list of frames"
            raise UsageError(f"{self.path.name}: {function} returns {what}")
        self._columns = self._columns or frames[0].columns
        if odd := next((each for each in frames if each.columns != self._columns), None):
            both = f"{', '.join(self._columns)} and {', '.join(odd.columns)}"
            what = f"frames with other columns, {both}; give all of them the same"
            raise UsageError(f"{self.path.name}: {function} returns {what}")
        return [checked_columns(self.path, each) for each in frames]

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        """Raise UsageError with the line of the file for whatever its code raises."""
        try:
            yield
        except Exception as error:
            steps = traceback.extract_tb(error.__traceback__)
            lines = [step.lineno for step in steps if step.filename == str(self.path)]
            line = getattr(error, "lineno", None) or (lines[-1] if lines else 1)
            reason = f"{type(error).__name__}: {one_line(error)}".rstrip(" .;")
            if isinstance(error, ModuleNotFoundError) and error.name:
                file = f"{error.name.partition('.')[0]}.py"
                remedy = f"if {file} is beside the job, list it in py_files"
                raise UsageError(f"{self.path.name}:{line}: {reason}; {remedy}") from None
            raise UsageError(f"{self.path.name}:{line}: {reason}; correct it") from None


def run_statements(spark: SparkSession, file: Path, tables: Mapping[str, DataFrame]) -> DataFrame:
    """Run the statements of a file over tables, which are temporary views; return the last frame.

    Raises:
        UsageError: A statement is wrong, with its line and column, or the last one is no query over
            a stream.
    """
    logging.getLogger("SQLQueryContextLogger").disabled = True  # it prints each error with its plan
    _make_views(spark, tables)
    frame: DataFrame | None = None
    for statement in statements(file.read_text(encoding="utf-8")):
        try:
            frame = spark.sql(statement)
        except PySparkException as error:
            raise UsageError(f"{file.name}{_problem(error, statement)}") from None
    if frame is None:
        raise UsageError(f"{file.name}: it has no statement; write a SELECT")
    if not frame.isStreaming:
        problem = "the last statement is no query over a stream"
        raise UsageError(f"{file.name}: {problem}; end with a SELECT from {', '.join(tables)}")
    return checked_columns(file, frame)


def _make_views(spark: SparkSession, tables: Mapping[str, DataFrame]) -> None:
    """Make temporary views of tables, in place of all views and functions of an earlier run."""
    _clear(spark)
    for name, frame in tables.items():
        frame.createOrReplaceTempView(name)


def _clear(spark: SparkSession) -> None:
    """Drop the temporary views and functions of a session.

    To list the views, Spark would make a warehouse, below another path where this has a blank.
    """
    catalog = spark._jsparkSession.sessionState().catalog()
    catalog.clearTempTables()
    functions = catalog.listTemporaryFunctions()
    for name in [functions.apply(place).funcName() for place in range(functions.size())]:
        catalog.dropTempFunction(name, True)


def checked_columns(file: Path, frame: DataFrame) -> DataFrame:
    """Return a frame on top of an analysed plan.

    Raises:
        UsageError: Two columns have one name, or Spark reads a name as the field of a column.
    """
    if twice := {name for name in frame.columns if frame.columns.count(name) > 1}:
        problem = f"two columns are called {min(twice)}"
        raise UsageError(f"{file.name}: {problem}; rename one with AS")
    if odd := next((name for name in frame.columns if "." in name or "`" in name), None):
        raise UsageError(f"{file.name}: a column is called {odd}; give it a plain name with AS")
    # A plan of Spark SQL does not say that it streams until it is analysed.
    return frame.select("*")


def _problem(error: PySparkException, statement: str) -> str:
    """Return `:line:column: problem; remedy` of what Spark found wrong with a statement."""
    text = str(error)
    place = _PLACE.search(text)
    begin = len(statement) - len(statement.lstrip())
    line = statement[:begin].count("\n") + 1
    column = begin - (statement.rfind("\n", 0, begin) + 1) + 1
    if place is not None:
        line, column = int(place["line"]), int(place["column"]) + 1
    reason = _PLACE.sub("", one_line(text)).rstrip(" .;")
    return f":{line}:{column}: {reason}; correct the statement"


def statements(text: str) -> Iterator[str]:
    """Yield the statements of a text, each behind the lines and blanks that keep its place.

    `;` ends a statement, but not in quotes or in a comment. What has only comments is none.
    """
    begin = 0
    for end in [*_ends(text), len(text)]:
        statement = text[begin:end]
        if _COMMENT.sub("", statement).strip():
            yield re.sub(r"[^\n]", " ", text[:begin]) + statement
        begin = end + 1


_COMMENT = re.compile(r"--[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TOKEN = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)"
    r"|'(?:\\.|[^'\\])*(?:'|\Z)|\"(?:\\.|[^\"\\])*(?:\"|\Z)|`[^`]*(?:`|\Z)"
    r"|(?P<end>;)",
    re.DOTALL,
)


def _ends(text: str) -> Iterator[int]:
    """Yield where each `;` is that ends a statement."""
    return (match.start() for match in _TOKEN.finditer(text) if match["end"])
