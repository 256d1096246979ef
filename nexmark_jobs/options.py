"""Parse and check the arguments of run_query.py before anything is started."""

import argparse
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nexmark_jobs.errors import UsageError
from nexmark_jobs.experiments import query_named
from nexmark_jobs.generator import GeneratorConfig
from nexmark_jobs.generator.generator_options import (
    OneLineParser,
    add_generator_arguments,
    changed_options,
    count,
    generator_config,
    new_directory,
)
from nexmark_jobs.own_jobs import own_query
from nexmark_jobs.queries import QUERIES, Query
from nexmark_jobs.sources.recorded_events import Recording, open_recording

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SERVER = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.%]+\]):(?P<port>[0-9]{1,5})")
SINKS = ("noop", "parquet", "filesystem", "kafka")


@dataclass(frozen=True)
class DatagenOptions:
    """Generated events: how many, which, and how they are cut into micro-batches."""

    events: int
    rows_per_batch: int
    config: GeneratorConfig

    def described(self) -> dict[str, Any]:
        """Return the description of the events for the result file."""
        config, size = self.config, {"events": self.events, "rows_per_batch": self.rows_per_batch}
        options = {"generator": changed_options(config)}
        return {**size, "tps": config.tps, "seed": config.seed, **options}


@dataclass(frozen=True)
class KafkaOptions:
    """The records of a Kafka topic, and how they are cut into micro-batches."""

    topic: str
    servers: str
    rows_per_batch: int


@dataclass(frozen=True)
class BoundaryOptions:
    """The boundary events, which are always the same."""


@dataclass(frozen=True)
class TablesOptions:
    """The tables of a person's own in a directory, laid out in micro-batches."""

    directory: Path


SourceOptions = DatagenOptions | Recording | KafkaOptions | BoundaryOptions | TablesOptions


@dataclass(frozen=True)
class SinkOptions:
    """Where rows go: `noop`, `parquet` or `filesystem` with a directory, `kafka` with a topic."""

    kind: str
    directory: Path | None = None
    topic: str = ""
    servers: str = ""

    def __str__(self) -> str:
        """Return the sink as on the command line."""
        place = self.directory or self.topic
        return f"{self.kind}:{place}" if place else self.kind


@dataclass(frozen=True)
class CheckpointOptions:
    """A checkpoint that outlives the run, on any file system of Spark's, and where to stop.

    A batch is due `pace_s` seconds after the one before; a resumed run keeps this pace.
    """

    directory: str
    last_batch: int | None = None
    pace_s: float = 0.0


@dataclass(frozen=True)
class PauseOptions:
    """When a query is held between two batches: after batch `first`, then after every `every`.

    A file in `directory` says that it is held; it goes on when the file is removed. After `seconds`
    without that it fails.
    """

    first: int
    every: int
    directory: Path
    seconds: float = 300.0


@dataclass(frozen=True)
class Options:
    """A run of a query.

    With `boundary`, a run over the boundary events follows, whose sink writes to this directory.
    With `again`, the same run follows once more, whose sink writes there.
    """

    query: Query
    source: SourceOptions
    sink: SinkOptions
    result: Path | None = None
    formulation: str | None = None
    digest: bool = True
    conf_profile: str = "default"
    boundary: Path | None = None
    checkpoint: CheckpointOptions | None = None
    again: Path | None = None
    pauses: PauseOptions | None = None

    def once_more(self, directory: Path) -> "Options":
        """Return options for the same run into another directory."""
        sink = SinkOptions(self.sink.kind, directory)
        return replace(self, sink=sink, result=None, boundary=None, again=None)

    def over_boundary(self, directory: Path) -> "Options":
        """Return options for the same query over the boundary events, and the same kind of sink."""
        return replace(self.once_more(directory), source=BoundaryOptions())


def parse(arguments: list[str]) -> Options:
    """Return the checked options; UsageError, which names the argument, for a wrong one."""
    given = _parser().parse_args(arguments)
    query = _query(given.query, given.jobs)
    sink = _sink(given, query)
    kind, _, place = given.source.partition(":")
    is_read = kind in ("files", "tables")
    if is_read and sink.directory and sink.directory.is_relative_to(Path(place).absolute()):
        problem = "lies in the directory of the source; give another"
        raise UsageError(f"--sink: {sink.directory} {problem}")
    options = Options(
        query=query,
        source=_source(given),
        sink=sink,
        result=_result(given.result),
        formulation=given.formulation,
        digest=given.digest == "on" and query.deterministic,
        conf_profile=given.conf_profile,
        boundary=_beside("--boundary", given.boundary, sink),
        again=_beside("--again", given.again, sink),
        checkpoint=_checkpoint(given),
        pauses=_pauses(given),
    )
    names = [formulation.name for formulation in query.formulations]
    if given.formulation not in (None, *names):  # one that needs a newer Spark is refused later
        what = f"{query.name} has no '{given.formulation}'; use one of {', '.join(names)}"
        raise UsageError(f"--formulation: {what}")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="run_query.py",
        description="Runs one Nexmark query as a Spark Structured Streaming job. Master, memory "
        "and Spark confs are spark-submit's.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "--query",
        required=True,
        metavar="Q",
        type=str.lower,
        help="q0 to q23, q14_python_udf, of experiments/ or own/",
    )
    add("--jobs", type=Path, metavar="DIR", help="where the job Q of a person's own is")
    add("--formulation", metavar="NAME", help="instead of the best one this Spark can run")
    add(
        "--source",
        default="datagen",
        help="datagen (default), files:DIR, recorded events as JSON lines (gzip or not) or "
        "parquet, tables:DIR, the tables of an own job, kafka:TOPIC, what the topic holds at the "
        "start, or boundary, the events of boundary.py; all but datagen ignore the arguments of "
        "the generator",
    )
    add("--bootstrap-servers", metavar="LIST", help="of each kafka:TOPIC: HOST:PORT[,HOST:PORT...]")
    add("--events", type=count("number of events"), metavar="N")
    add_generator_arguments(parser)
    size = count("events per micro-batch", "25000")
    add("--rows-per-batch", type=size, default=25_000, metavar="B", help="default 25000")
    add(
        "--sink",
        default="noop",
        help="noop (default), parquet:DIR (the final table), filesystem:DIR (q10), kafka:TOPIC "
        "(rows as JSON, by Spark's own sink)",
    )
    add(
        "--boundary",
        metavar="DIR",
        help="run the query over the boundary events as well, into DIR by the same kind of sink",
    )
    add(
        "--again",
        metavar="DIR",
        help="run the query over the same input once more, with one more shuffle partition, into "
        "DIR: are its rows always the same?",
    )
    add(
        "--checkpoint",
        metavar="DIR",
        help="keep the checkpoint in DIR, and continue the one that is there; of generated events "
        "or tables:DIR",
    )
    add(
        "--stop-after-batch",
        type=_batch_number,
        metavar="K",
        help="leave what follows batch K (the first is 0) to a later run; of the sink parquet:DIR",
    )
    add(
        "--pace",
        type=_pace,
        metavar="S",
        help="no batch earlier than S seconds after the one before was due; with --checkpoint, "
        "of the sink parquet:DIR",
    )
    add(
        "--pause-from",
        type=_batch_number,
        default=0,
        metavar="K",
        help="the first batch after which --pause-every holds the query (default: 0)",
    )
    add(
        "--pause-every",
        type=count("batches", "100"),
        metavar="N",
        help="hold the query after every N batches, until the file pause.json is removed from the "
        "directory of --pauses",
    )
    add("--pauses", type=Path, metavar="DIR", help="with --pause-every")
    add("--result", required=True, metavar="FILE.json")
    about = "order-free hash of the rows; none for q12, whose rows differ from run to run"
    add("--digest", choices=("on", "off"), default="on", help=about)
    add("--conf-profile", default="default", metavar="NAME", help="kept in the result only")
    return parser


def _batch_number(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a batch number; give 0, 1, 2, ...")
    return int(text)


def _pace(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is no pace; give seconds, up to 3600")
    return seconds


def _query(name: str, jobs: Path | None) -> Query:
    try:
        return query_named(name) if jobs is None else own_query(name, jobs)
    except KeyError:
        known = ", ".join(QUERIES)
        raise UsageError(f"--query: unknown query '{name}'; use one of {known}") from None


def _source(given: argparse.Namespace) -> SourceOptions:
    kind, _, place = given.source.partition(":")
    if kind == "kafka" and place:
        _check_topic("--source", place, given.bootstrap_servers)
        return KafkaOptions(place, given.bootstrap_servers, given.rows_per_batch)
    if given.bootstrap_servers is not None and not given.sink.startswith("kafka:"):
        raise UsageError("--bootstrap-servers: only --source kafka:TOPIC reads from brokers")
    if kind == "datagen" and not place:
        if given.events is None:
            raise UsageError("--events: missing; say how many to generate, e.g. --events 100000")
        config = generator_config(given.seed, given.tps, given.generator, given.events)
        return DatagenOptions(given.events, given.rows_per_batch, config)
    if kind == "boundary" and not place:
        return BoundaryOptions()
    if kind in ("files", "tables") and place:
        directory = Path(place)
        if not directory.is_dir():
            remedy = "give the one that holds the events"
            raise UsageError(f"--source: {directory} is not a directory; {remedy}")
        if kind == "tables":
            return TablesOptions(directory.resolve())
        return open_recording(directory.resolve())
    known = "datagen, files:DIR, tables:DIR, kafka:TOPIC or boundary"
    raise UsageError(f"--source: unknown source '{given.source}'; use {known}")


def _check_topic(option: str, topic: str, servers: str | None) -> None:
    if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
        remedy = "it has up to 249 letters, digits, . _ -"
        raise UsageError(f"{option}: '{topic}' is not a topic name; {remedy}")
    if servers is None:
        raise UsageError("--bootstrap-servers: missing; give the brokers, e.g. localhost:9092")
    for server in servers.split(","):
        matched = _SERVER.fullmatch(server)
        if matched is None or not 0 < int(matched["port"]) < 65_536:
            remedy = "give a list, e.g. localhost:9092,localhost:9093"
            raise UsageError(f"--bootstrap-servers: '{server}' is not HOST:PORT; {remedy}")


def _sink(given: argparse.Namespace, query: Query) -> SinkOptions:
    kind, _, place = given.sink.partition(":")
    if kind not in SINKS or (kind == "noop") != (not place):
        remedy = "use noop, parquet:DIR or (q10) filesystem:DIR, kafka:TOPIC"
        raise UsageError(f"--sink: unknown sink '{given.sink}'; {remedy}")
    if kind == "filesystem" and query.name != "q10":
        remedy = f"use noop or parquet:DIR for {query.name}"
        raise UsageError(f"--sink: filesystem is the sink of q10; {remedy}")
    if kind == "kafka":
        _check_topic("--sink", place, given.bootstrap_servers)
        return SinkOptions(kind, topic=place, servers=given.bootstrap_servers)
    return SinkOptions(kind, new_directory("--sink", place) if place else None)


def _beside(option: str, text: str | None, sink: SinkOptions) -> Path | None:
    if text is None:
        return None
    if sink.directory is None:
        raise UsageError(f"{option}: the sink noop keeps no rows; use it with --sink parquet:DIR")
    directory = new_directory(option, text)
    if directory.is_relative_to(sink.directory) or sink.directory.is_relative_to(directory):
        raise UsageError(f"{option}: {directory} and the sink's directory overlap; give another")
    return directory


def _checkpoint(given: argparse.Namespace) -> CheckpointOptions | None:
    if given.checkpoint is None:
        if given.stop_after_batch is not None:
            raise UsageError("--stop-after-batch: a later run needs --checkpoint DIR to go on")
        if given.pace is not None:
            raise UsageError("--pace: a run that goes on has to know it; add --checkpoint DIR")
        return None
    is_of_tables = given.source.startswith("tables:") and given.pace is None
    if (given.source != "datagen" and not is_of_tables) or given.boundary is not None:
        problem = "only a run of generated events, or of tables, can go on"
        raise UsageError(f"--checkpoint: {problem}; drop --source")
    if given.sink.startswith("filesystem:"):
        raise UsageError("--checkpoint: the sink filesystem cannot go on; use parquet:DIR")
    if not given.sink.startswith("parquet:"):
        if given.stop_after_batch is not None:
            raise UsageError("--stop-after-batch: only the sink parquet:DIR stops at a batch")
        if given.pace is not None:
            raise UsageError("--pace: only the sink parquet:DIR waits for a batch to be due")
    directory = given.checkpoint.rstrip("/")
    return CheckpointOptions(directory, given.stop_after_batch, given.pace or 0.0)


def _pauses(given: argparse.Namespace) -> PauseOptions | None:
    if (given.pause_every is None) != (given.pauses is None):
        raise UsageError("--pause-every: goes with --pauses DIR; give both, or neither")
    if given.pause_every is None:
        return None
    directory = given.pauses.absolute()
    if not directory.is_dir():
        raise UsageError(f"--pauses: there is no directory {directory}; create it first")
    return PauseOptions(given.pause_from, given.pause_every, directory)


def _result(text: str) -> Path:
    path = Path(text).absolute()
    if path.is_dir():
        raise UsageError(f"--result: {path} is a directory; give a file, e.g. result.json")
    if not path.parent.is_dir():
        raise UsageError(f"--result: there is no directory {path.parent}; create it first")
    return path
