"""Run one Nexmark query with spark-submit: see --help.

Master, memory and Spark confs are spark-submit's. The job itself sets the session time zone, to
UTC, because days and hours are part of the results, and where windows are closed by files, that
there are no batches without data. It reads the checkpoint root
`spark.sql.streaming.checkpointLocation`; `spark.nexmark.build`, which it copies to the result; and
`spark.nexmark.kafka.X`, which is option X of Kafka's clients.

Exit codes: 0 done, 1 the query failed, 2 wrong arguments or input; the reason is one line on
stderr, and there is then no result file.
"""

import json
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # spark-submit puts this file's own directory first
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from nexmark_jobs.bytecode import use_directory

    use_directory()

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from nexmark_jobs import result
from nexmark_jobs.errors import JobError, QueryFailedError, UsageError, one_line
from nexmark_jobs.exit_code import command, exit_with
from nexmark_jobs.options import BoundaryOptions, KafkaOptions, Options, TablesOptions, parse
from nexmark_jobs.pauses import Pauses, facts_of
from nexmark_jobs.plan_fingerprint import fingerprint
from nexmark_jobs.progress import batch, is_batch, observe
from nexmark_jobs.progress_lines import ProgressReporter
from nexmark_jobs.queries import Formulation, Query, Source, Streams
from nexmark_jobs.result import QueryRun
from nexmark_jobs.session import WorkDirectory, stop, work_directory
from nexmark_jobs.sinks import FilesystemSink, KafkaSink, ParquetSink, PerBatchSink, Sink
from nexmark_jobs.sources.datagen import Datagen, Feed
from nexmark_jobs.sources.event_files import open_boundary, open_files
from nexmark_jobs.sources.kafka import Kafka, open_kafka
from nexmark_jobs.sources.kafka_topic import Brokers
from nexmark_jobs.sources.recorded_events import Recording
from nexmark_jobs.sources.table_files import open_tables

_POLL_S = 0.05
_BOUNDARY_PARTITIONS = 2
_PARTITIONS = "spark.sql.shuffle.partitions"
_INPUT = "input.json"


def run(spark: SparkSession, options: Options, *, quiet: bool = False) -> dict[str, Any]:
    """Run a query to the end of its input and return its result, as the result file has it.

    Several runs may share a session. Lines of progress are printed, unless `quiet`. Raises JobError
    if the query fails or cannot run on this Spark.
    """
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    query = options.query
    formulation = query.formulation(spark.version, options.formulation)
    with _work(spark, options) as work:
        source, feed = _open(spark, options, work)
        if not quiet:
            print(_reading(options, feed), flush=True)
        frame = formulation.build(Streams(spark, source))
        if not query.columns:  # of a person's own job
            query = replace(query, columns=tuple(frame.columns))
            options = replace(options, query=query)
        if formulation.per_batch is None and tuple(frame.columns) != query.columns:
            raise JobError(f"{query.name}: columns {frame.columns} are not {query.columns}")
        plan = fingerprint(frame)
        sink = _sink(spark, options, feed, formulation)
        try:
            done = _drive(frame, options, work, sink, feed, quiet=quiet)
            if done.is_complete:
                sink.finish(done.batches[-1].id)
        except BaseException as error:
            sink.discard()
            if sink.mistake is not None:
                raise sink.mistake from None
            if isinstance(error, JobError) and isinstance(source, Kafka):
                raise source.explain(error) from None
            raise
    return result.describe(spark, options, formulation, plan, done, source)


def _work(spark: SparkSession, options: Options) -> AbstractContextManager[WorkDirectory]:
    """Return the directory of the run, which stays if its checkpoint is to be kept."""
    if options.checkpoint is None:
        return work_directory(spark, options.query.name)
    work = WorkDirectory(spark, options.checkpoint.directory)
    work.make("")
    wanted = json.dumps(result.input_of(options), sort_keys=True)
    previous = work.read(_INPUT)
    if previous is None:
        work.write(_INPUT, wanted)
    elif previous != wanted:
        problem = f"{work.path} is of another input, {previous}, not {wanted}"
        remedy = "give another directory, or the same arguments"
        raise UsageError(f"--checkpoint: {problem}; {remedy}")
    return nullcontext(work)


def _open(spark: SparkSession, options: Options, work: WorkDirectory) -> tuple[Source, Feed]:
    given = options.source
    end_of_input = options.query.needs_end_of_input
    if isinstance(given, Recording):
        return open_files(spark, given, work, end_of_input=end_of_input)
    if isinstance(given, BoundaryOptions):
        return open_boundary(work, end_of_input=end_of_input)
    if isinstance(given, TablesOptions):
        return open_tables(spark, given.directory, work, end_of_input=end_of_input)
    if isinstance(given, KafkaOptions):
        return open_kafka(spark, given, work, end_of_input=end_of_input)
    source = Datagen(spark, given.config, given.events, given.rows_per_batch, end_of_input)
    return source, source.feed()


def _reading(options: Options, feed: Feed) -> str:
    given = options.source
    if isinstance(given, Recording):
        how = "all in one batch: they were not last modified in the order of their names"
        how = "one per batch" if given.is_in_order else how
        return f"{given.directory}: {len(given.files)} files, {how}"
    if isinstance(given, BoundaryOptions):
        return "boundary events"
    if isinstance(given, TablesOptions):
        return f"{given.directory}: {feed.events:,} rows in {feed.data_batches:,} batches"
    source = f"kafka:{given.topic}" if isinstance(given, KafkaOptions) else "generator"
    return f"{source}: {feed.events:,} events, {given.rows_per_batch:,} per batch"


def _sink(spark: SparkSession, options: Options, feed: Feed, formulation: Formulation) -> Sink:
    """Return the sink of a query; UsageError if the formulation cannot write to it.

    Args:
        spark: The session.
        options: The options of the program.
        feed: The input, whose last batch the sink has to know.
        formulation: The formulation of the query.
    """
    directory = options.sink.directory
    per_batch = formulation.per_batch
    if per_batch is not None and options.sink.kind not in ("noop", "parquet"):
        problem = f"{formulation.name} makes its rows of each batch"
        raise UsageError(f"--sink: {problem}; use noop or parquet:DIR")
    if options.sink.kind == "kafka":
        return KafkaSink(Brokers(spark, options.sink.servers).spark_options, options.sink.topic)
    if directory is None:
        return PerBatchSink(per_batch, hashed=options.digest) if per_batch else Sink()
    if options.sink.kind == "filesystem":
        return FilesystemSink(directory, feed.last_batch)
    last, checkpoint = feed.last_batch, options.checkpoint
    return ParquetSink(spark, options.query, directory, last, checkpoint, per_batch)


def _drive(
    frame: DataFrame, options: Options, work: WorkDirectory, sink: Sink, feed: Feed, *, quiet: bool
) -> QueryRun:
    """Start a query, follow it to its last batch or to the batch to stop after, and stop it.

    Args:
        frame: the query.
        options: the options of the run.
        work: the directory with the checkpoint.
        sink: takes the rows.
        feed: knows how far the input has been read.
        quiet: print no lines of progress.
    """
    is_whole = not isinstance(sink, PerBatchSink)
    observed = observe(frame, digest=options.digest) if is_whole else frame
    writer = sink.rows(observed).writeStream
    writer = sink.attach(writer.outputMode(options.query.output_mode))
    writer = writer.option("checkpointLocation", work.child("checkpoint"))
    reporter = ProgressReporter(feed.events)
    done = QueryRun(datetime.now(UTC), [])
    running = _started(writer, options.query)
    pauses = _pauses(frame.sparkSession, running, options)
    try:
        while True:
            seen = done.batches[-1].id + 1 if done.batches else 0
            for progress in _news(running, seen):
                _keep(options, progress)
                rows = feed.take(progress)
                feed.check_in_time(progress)
                is_data = progress["batchId"] < feed.data_batches
                finished = batch(progress, "data" if is_data else "end_of_input", rows)
                finished = sink.observed(finished)
                finished = pauses.corrected(finished) if pauses else finished
                done.batches.append(finished)
                sink.batch_done(finished)
                line = reporter.line(finished)
                if line is not None and not quiet:
                    print(line, flush=True)
                if feed.finished(progress):
                    return done
                if options.checkpoint and finished.id == options.checkpoint.last_batch:
                    return replace(done, is_complete=False)
            if pauses and done.batches:
                pauses.after(done.batches[-1].id)
            time.sleep(_POLL_S)
    finally:
        stop(frame.sparkSession, running)


def _started(writer: DataStreamWriter, query: Query) -> StreamingQuery:
    """Start a query; UsageError for a job of a person's own that Spark refuses to run as a stream.

    Only here does Spark find what its output mode does not allow.
    """
    try:
        return writer.start()
    except AnalysisException as error:
        if not query.mode:
            raise
        raise UsageError(f"{query.name}.yaml: {_refusal(query.mode, one_line(error))}") from None


def _refusal(mode: str, reason: str) -> str:
    """Return why a job cannot run as a stream, with the key of its file and the remedy.

    Args:
        mode: The output mode of the job.
        reason: What Spark says.
    """
    reason = reason.rstrip(" .;")
    if "output mode" not in reason.lower():
        return f"{reason}; correct the query"
    other = "update or complete, with the key of its rows" if mode == "append" else "another one"
    return f"output_mode: {mode}: {reason}; write {other}, or correct the query"


def _pauses(spark: SparkSession, running: StreamingQuery, options: Options) -> Pauses | None:
    if options.pauses is None:
        return None
    return Pauses(running, options.pauses, lambda: facts_of(spark.sparkContext))


def _keep(options: Options, progress: dict[str, Any]) -> None:
    """Append Spark's progress to a file beside the result, for a run that is killed in between."""
    if options.checkpoint is not None and options.result is not None:
        with options.result.with_name(f"{options.result.name}.progress").open("a") as file:
            file.write(json.dumps(progress) + "\n")


def _news(running: StreamingQuery, seen: int) -> list[dict[str, Any]]:
    """Return the progress of batches from number `seen` on; JobError if the query failed."""
    active = running.isActive
    last = running._jsq.lastProgress()
    if last is not None and last.batchId() >= seen:
        recent = [last] if last.batchId() == seen else running._jsq.recentProgress()
        recent = [json.loads(progress.json()) for progress in recent]
        if news := [each for each in recent if is_batch(each) and each["batchId"] >= seen]:
            return news
    if not active:
        failure = running._jsq.exception()
        if not failure.isDefined():
            raise JobError("it ended early")
        error, causes = failure.get(), []
        while (error := error.getCause()) is not None:
            causes.append(error.toString())
        raise QueryFailedError("\n".join(causes))
    return []


def complete(spark: SparkSession, options: Options, *, quiet: bool = False) -> None:
    """Run a query, then once more and over boundary events if asked for; write the result file.

    A result file of an earlier run is removed first: after a failure there is none. Raises JobError
    as `run` does.
    """
    if options.result is not None:
        options.result.unlink(missing_ok=True)
    done = run(spark, options, quiet=quiet)
    if options.again is not None:
        partitions = int(spark.conf.get(_PARTITIONS) or 200)
        spark.conf.set(_PARTITIONS, partitions + 1)
        try:
            run(spark, options.once_more(options.again), quiet=quiet)
        except JobError as error:
            raise JobError(f"once more: {error}") from None
        finally:
            spark.conf.set(_PARTITIONS, partitions)
    if options.boundary is not None:
        # The partitions of a cluster would cost more than these few hundred events.
        spark.conf.set(_PARTITIONS, _BOUNDARY_PARTITIONS)
        try:
            run(spark, options.over_boundary(options.boundary), quiet=quiet)
        except JobError as error:
            raise JobError(f"over the boundary events: {error}") from None
    if options.result is not None:
        result.write(done, options.result)


@command("run_query.py")
def main(arguments: list[str]) -> None:
    """Run the query of the arguments, and write its result."""
    options = parse(arguments)
    with SparkSession.builder.appName(f"nexmark {options.query.name}").getOrCreate() as spark:
        complete(spark, options)


if __name__ == "__main__":
    exit_with(main(sys.argv[1:]))
