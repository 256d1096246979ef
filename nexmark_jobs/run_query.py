"""Runs one Nexmark query with spark-submit: see --help.

Master, memory and Spark confs are spark-submit's. The job itself sets one conf, the session time
zone, to UTC, because days and hours are part of the results. It reads two: the checkpoint root
`spark.sql.streaming.checkpointLocation`, and `spark.nexmark.build`, which it copies to the result.

Exit codes: 0 done, 1 the query failed, 2 wrong arguments or input; the reason is one line on
stderr, and there is then no result file.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # spark-submit puts this file's own directory first
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from nexmark_jobs import digest, result
from nexmark_jobs.errors import JobError, one_line
from nexmark_jobs.narrator import Narrator
from nexmark_jobs.options import FilesOptions, Options, parse
from nexmark_jobs.plan import fingerprint
from nexmark_jobs.progress import batch, is_batch
from nexmark_jobs.queries import Source, Streams
from nexmark_jobs.result import Run
from nexmark_jobs.sinks.base import Sink
from nexmark_jobs.sinks.filesystem import FilesystemSink
from nexmark_jobs.sinks.noop import NoopSink
from nexmark_jobs.sinks.parquet import ParquetSink
from nexmark_jobs.sources.datagen import Datagen
from nexmark_jobs.sources.feed import DatagenFeed, Feed
from nexmark_jobs.sources.files import open_files
from nexmark_jobs.workdir import WorkDirectory, work_directory

_POLL_S = 0.05
_MAX_STOP_S = 10


def run(spark: SparkSession, options: Options, *, quiet: bool = False) -> dict[str, Any]:
    """Run a query to the end of its input and return its result, as the result file has it.

    Prints how far it is, unless `quiet`. Any number of runs may share a session.

    Raises:
        JobError: The query failed or cannot run on this Spark.
    """
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    query = options.query
    formulation = query.formulation(spark.version, options.formulation)
    with work_directory(spark, query.name) as work:
        source, feed = _open(spark, options, work)
        if not quiet:
            print(_reading(options), flush=True)
        frame = formulation.build(Streams(spark, source))
        if tuple(frame.columns) != query.columns:
            raise JobError(f"{query.name}: columns {frame.columns} are not {query.columns}")
        plan = fingerprint(frame)
        sink = _sink(spark, options, feed)
        try:
            done = _drive(frame, options, work, sink, feed, quiet=quiet)
            sink.finish(done.batches[-1].id)
        except BaseException:
            sink.discard()
            raise
    return result.describe(spark, options, formulation, plan, done)


def _open(spark: SparkSession, options: Options, work: WorkDirectory) -> tuple[Source, Feed]:
    given = options.source
    end_of_input = options.query.needs_end_of_input
    if isinstance(given, FilesOptions):
        return open_files(spark, given.recording, work, end_of_input=end_of_input)
    source = Datagen(spark, given.config, given.events, given.rows_per_batch, end_of_input)
    return source, DatagenFeed(source)


def _reading(options: Options) -> str:
    """What is read and how it is cut into batches, in one line."""
    given = options.source
    if isinstance(given, FilesOptions):
        files = len(given.recording.files)
        how = (
            "one per batch"
            if given.recording.is_in_order
            else "all in one batch: they were not last modified in the order of their names"
        )
        return f"{given.recording.directory}: {files} files, {how}"
    return f"generator: {given.events:,} events, {given.rows_per_batch:,} per batch"


def _sink(spark: SparkSession, options: Options, feed: Feed) -> Sink:
    directory = options.sink.directory
    if directory is None:
        return NoopSink()
    if options.sink.kind == "filesystem":
        return FilesystemSink(directory, feed.last_batch)
    return ParquetSink(spark, options.query, directory, feed.last_batch)


def _drive(
    frame: DataFrame,
    options: Options,
    work: WorkDirectory,
    sink: Sink,
    feed: Feed,
    *,
    quiet: bool,
) -> Run:
    """Start the query, follow it to its last batch, stop it."""
    writer = digest.observe(frame, digest=options.digest).writeStream
    writer = sink.attach(writer.outputMode(options.query.output_mode))
    writer = writer.option("checkpointLocation", work.child("checkpoint"))
    narrator = Narrator(feed.events)
    done = Run(datetime.now(UTC), [])
    running = writer.start()
    try:
        while True:
            for progress in _news(running, len(done.batches)):
                rows = feed.take(progress)
                is_data = progress["batchId"] < feed.data_batches
                finished = batch(progress, "data" if is_data else "end_of_input", rows)
                done.batches.append(finished)
                sink.batch_done(finished)
                line = narrator.line(finished)
                if line is not None and not quiet:
                    print(line, flush=True)
                if feed.finished(progress):
                    return done
            time.sleep(_POLL_S)
    finally:
        _stop(frame.sparkSession, running)


def _stop(spark: SparkSession, running: StreamingQuery) -> None:
    """Stop the query without the stack traces of the batch that this interrupts."""
    context = spark.sparkContext
    logging = context._jvm.org.apache.logging.log4j  # type: ignore[union-attr]
    level = logging.LogManager.getRootLogger().getLevel().toString()
    context.setLogLevel("OFF")
    try:
        running.stop()
        deadline = time.monotonic() + _MAX_STOP_S
        while _running_tasks(spark) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
    finally:
        context.setLogLevel(level)


def _running_tasks(spark: SparkSession) -> int:
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    return sum(executor.numRunningTasks() for executor in tracker.getExecutorInfos())


def _news(running: StreamingQuery, seen: int) -> list[dict[str, Any]]:
    """Progress of the batches from number `seen` on; JobError if the query has failed."""
    if not running.isActive:
        failure = running._jsq.exception()
        why = failure.get().getCause() if failure.isDefined() else None
        raise JobError(f"the query failed: {one_line(why.toString())}" if why else "it ended early")
    last = running._jsq.lastProgress()
    if last is None or last.batchId() < seen:
        return []
    recent = [json.loads(p.json()) for p in running._jsq.recentProgress()]
    return [p for p in recent if is_batch(p) and p["batchId"] >= seen]


def main(arguments: list[str]) -> int:
    """Run as a command; returns the exit code."""
    spark = None
    try:
        options = parse(arguments)
        spark = SparkSession.builder.appName(f"nexmark {options.query.name}").getOrCreate()
        done = run(spark, options)
        if options.result is not None:
            result.write(done, options.result)
    except JobError as error:
        print(f"run_query.py: error: {error}", file=sys.stderr)
        return error.exit_code
    except (PySparkException, OSError) as error:
        print(f"run_query.py: error: {one_line(error)}", file=sys.stderr)
        return 1
    finally:
        if spark is not None:
            spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
