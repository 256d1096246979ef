"""The arguments of run_query.py, checked before anything is started."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nexmark_jobs.errors import UsageError
from nexmark_jobs.generator import GeneratorConfig
from nexmark_jobs.generator.options import (
    OneLineParser,
    add_generator_arguments,
    changed_knobs,
    generator_config,
)
from nexmark_jobs.queries import QUERIES, Query
from nexmark_jobs.sources.recording import Recording, open_recording

SINKS = ("noop", "parquet", "filesystem")


@dataclass(frozen=True)
class DatagenOptions:
    """Generated events: how many, which, and how they are cut into micro-batches."""

    events: int
    rows_per_batch: int
    config: GeneratorConfig

    @property
    def knobs(self) -> dict[str, int]:
        """The generator's knobs that differ from their defaults, but for seed and tps."""
        return changed_knobs(self.config)


@dataclass(frozen=True)
class FilesOptions:
    """Recorded events in the files of a directory."""

    recording: Recording


@dataclass(frozen=True)
class SinkOptions:
    """Where the rows go: `noop`, `parquet` or `filesystem`; the latter two have a directory."""

    kind: str
    directory: Path | None = None

    def __str__(self) -> str:
        """Return the sink as the command line has it."""
        return self.kind if self.directory is None else f"{self.kind}:{self.directory}"


@dataclass(frozen=True)
class Options:
    """A query run."""

    query: Query
    source: DatagenOptions | FilesOptions
    sink: SinkOptions
    result: Path | None = None
    formulation: str | None = None
    digest: bool = True
    conf_profile: str = "default"


def parse(arguments: list[str]) -> Options:
    """Return the checked options.

    Raises:
        UsageError: An argument is missing, unknown or out of range, or names a file or directory
            that cannot be used; the message names the argument.
    """
    given = _parser().parse_args(arguments)
    query = _query(given.query)
    sink = _sink(given.sink, query)
    _check_apart(given.source, sink)
    options = Options(
        query=query,
        source=_source(given),
        sink=sink,
        result=_result(given.result),
        formulation=given.formulation,
        digest=given.digest == "on",
        conf_profile=given.conf_profile,
    )
    _check_formulation(query, given.formulation)
    return options


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="run_query.py",
        description="Runs one Nexmark query as a Spark Structured Streaming job. Master, memory "
        "and Spark confs are spark-submit's.",
        allow_abbrev=False,
    )
    parser.add_argument("--query", required=True, metavar="Q", help="q0 to q23, q14_python_udf")
    parser.add_argument(
        "--formulation", metavar="NAME", help="instead of the best one this Spark can run"
    )
    parser.add_argument(
        "--source",
        default="datagen",
        help="datagen (default) or files:DIR, recorded events as JSON lines (gzip or not) or "
        "parquet; with files the arguments of the generator are ignored",
    )
    parser.add_argument("--events", type=_positive("number of events"), metavar="N")
    add_generator_arguments(parser)
    parser.add_argument(
        "--rows-per-batch",
        type=_positive("events per micro-batch", "25000"),
        default=25_000,
        metavar="B",
        help="default 25000",
    )
    parser.add_argument(
        "--sink",
        default="noop",
        help="noop (default), parquet:DIR (the final table), filesystem:DIR (q10)",
    )
    parser.add_argument("--result", required=True, metavar="FILE.json")
    parser.add_argument(
        "--digest", choices=("on", "off"), default="on", help="order-free hash of the rows"
    )
    parser.add_argument(
        "--conf-profile", default="default", metavar="NAME", help="kept in the result, no more"
    )
    return parser


def _positive(meaning: str, example: str = "100000") -> Any:
    def convert(text: str) -> int:
        remedy = f"give {meaning}, e.g. {example}"
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not an integer; {remedy}") from None
        if value <= 0:
            raise argparse.ArgumentTypeError(f"{value} is not positive; {remedy}")
        return value

    return convert


def _query(name: str) -> Query:
    if name not in QUERIES:
        raise UsageError(f"--query: unknown query '{name}'; use one of {', '.join(QUERIES)}")
    return QUERIES[name]


def _check_formulation(query: Query, name: str | None) -> None:
    """An unknown name is told now; one that needs a newer Spark when its version is known."""
    names = [formulation.name for formulation in query.formulations]
    if name is not None and name not in names:
        raise UsageError(
            f"--formulation: {query.name} has no '{name}'; use one of {', '.join(names)}"
        )


def _source(given: argparse.Namespace) -> DatagenOptions | FilesOptions:
    kind, _, place = given.source.partition(":")
    if kind == "datagen" and not place:
        return _datagen(given)
    if kind == "files" and place:
        directory = Path(place)
        if not directory.is_dir():
            raise UsageError(
                f"--source: {directory} is not a directory; give the one that holds the events"
            )
        return FilesOptions(open_recording(directory.resolve()))
    if kind == "kafka":
        raise UsageError(
            "--source: kafka comes with a later version; record the topic and use files:DIR"
        )
    raise UsageError(f"--source: unknown source '{given.source}'; use datagen or files:DIR")


def _datagen(given: argparse.Namespace) -> DatagenOptions:
    if given.events is None:
        raise UsageError("--events: missing; say how many to generate, e.g. --events 100000")
    config = generator_config(given.seed, given.tps, given.generator)
    return DatagenOptions(given.events, given.rows_per_batch, config)


def _sink(text: str, query: Query) -> SinkOptions:
    kind, _, place = text.partition(":")
    if kind not in SINKS or (kind == "noop") != (not place):
        raise UsageError(
            f"--sink: unknown sink '{text}'; use noop, parquet:DIR or (q10) filesystem:DIR"
        )
    if kind == "filesystem" and query.name != "q10":
        raise UsageError(
            f"--sink: filesystem is the sink of q10; use noop or parquet:DIR for {query.name}"
        )
    if kind == "noop":
        return SinkOptions(kind)
    directory = Path(place).absolute()
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"--sink: {directory} is a file; give a new directory")
    if directory.is_dir() and any(directory.iterdir()):
        raise UsageError(f"--sink: {directory} is not empty; give a new directory or empty this")
    return SinkOptions(kind, directory)


def _check_apart(source: str, sink: SinkOptions) -> None:
    kind, _, place = source.partition(":")
    if kind == "files" and sink.directory and sink.directory.is_relative_to(Path(place).absolute()):
        raise UsageError(
            f"--sink: {sink.directory} lies in the directory of the source; give another"
        )


def _result(text: str) -> Path:
    path = Path(text).absolute()
    if path.is_dir():
        raise UsageError(f"--result: {path} is a directory; give a file, e.g. result.json")
    if not path.parent.is_dir():
        raise UsageError(f"--result: there is no directory {path.parent}; create it first")
    return path
