"""Write generated events to files, for other tools and to be read back: see --help.

The result is a directory of `events-00000.json` (one object per line, in the Nexmark format of
Kafka topics) or `events-00000.parquet`, and so on. Events are in order within a file and over the
sorted names, and so are the files' modification times, by which Spark's file source reads. The same
arguments give the same events in the same files.

Runs with spark-submit, or by itself with the installed pyspark. The directory must be on a file
system that driver and executors share. It appears complete or not at all.

Exit codes: 0 done, 1 failed, 2 wrong arguments; the reason is one line on stderr.
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path

if __name__ == "__main__":  # spark-submit puts this file's own directory first
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from nexmark_jobs.bytecode import use_directory

    use_directory()

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from nexmark_jobs.errors import UsageError
from nexmark_jobs.exit_code import command, exit_with
from nexmark_jobs.generator import EVENTS, GeneratorConfig
from nexmark_jobs.generator.generator_options import (
    OneLineParser,
    add_generator_arguments,
    count,
    generator_config,
    new_directory,
)
from nexmark_jobs.sinks import Staging
from nexmark_jobs.sources.file_order import put_in_order

_TIMES = {"timestampFormat": "yyyy-MM-dd HH:mm:ss.SSS", "timeZone": "UTC"}
_JSON_OPTIONS = {**_TIMES, "ignoreNullFields": "false"}


@dataclass(frozen=True)
class DumpOptions:
    """The options: the events, the directory, the format."""

    events: int
    config: GeneratorConfig
    out: Path
    format: str = "json"
    events_per_file: int = 100_000


def parse(arguments: list[str]) -> DumpOptions:
    """Return the checked options; UsageError for a wrong argument, or a directory in use."""
    about = "Writes Nexmark events to files."
    parser = OneLineParser(prog="dump_events.py", description=about, allow_abbrev=False)
    add = parser.add_argument
    add("--events", type=count("number of events"), required=True, metavar="N")
    add_generator_arguments(parser)
    add("--out", required=True, metavar="DIR", help="new or empty directory")
    add("--format", choices=("json", "parquet"), default="json")
    add("--events-per-file", type=count("events per file"), default=100_000, metavar="N")
    given = parser.parse_args(arguments)
    config = generator_config(given.seed, given.tps, given.generator, given.events)
    target = _directory(given.out)
    return DumpOptions(given.events, config, target, given.format, given.events_per_file)


def _directory(text: str) -> Path:
    if "://" in text:
        raise UsageError(f"--out: {text} is a URL; give a directory of the local file system")
    path = new_directory("--out", text)
    if not path.parent.is_dir():
        raise UsageError(f"--out: there is no directory {path.parent}; create it first")
    return path


def events(numbers: DataFrame, config: GeneratorConfig) -> DataFrame:
    """Return the events of `numbers` (a frame with the bigint column `n`), of all kinds, unordered.

    Columns: n, event_type (0 person, 1 auction, 2 bid) and the structs person, auction and bid, of
    which two are null.
    """
    kinds = []
    for event_type, (name, generate) in enumerate(EVENTS.items()):
        entity = generate(numbers, config)
        tag, row = F.lit(event_type).alias("event_type"), F.struct(*entity.columns[1:]).alias(name)
        kinds.append(entity.select("n", tag, row))
    united = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), kinds)
    return united.select("n", "event_type", *EVENTS)


def dump(spark: SparkSession, options: DumpOptions) -> None:
    """Write the files, and print a line for each."""
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    staging = Staging(options.out)
    (staging.path / "done").mkdir(parents=True)
    started = time.monotonic()
    try:
        with ThreadPoolExecutor(spark.sparkContext.defaultParallelism) as pool:
            size, last = options.events_per_file, options.events
            chunks = [range(start, min(start + size, last)) for start in range(0, last, size)]
            write = partial(_write, spark, options, staging.path)
            for numbers in pool.map(write, range(len(chunks)), chunks):
                rate = numbers.stop / (time.monotonic() - started)
                percent = 100 * numbers.stop // options.events
                print(f"{numbers.stop} events, {percent} %, {rate:.0f} events/s", flush=True)
        put_in_order(staging.path / "done")
        staging.publish("done")
    except BaseException:
        staging.discard()
        raise


def _write(
    spark: SparkSession, options: DumpOptions, staging: Path, index: int, numbers: range
) -> range:
    """Write the events of some numbers as one part; return the numbers.

    Args:
        spark: The session.
        options: The options of the program.
        staging: The directory of all parts.
        index: The number of the part.
        numbers: The numbers of the events.
    """
    part = staging / f"part-{index}"
    frame = spark.range(numbers.start, numbers.stop, 1, 1).toDF("n")
    rows = events(frame, options.config).coalesce(1).sortWithinPartitions("n")
    if options.format == "json":
        rows.select(F.to_json(F.struct(*rows.columns), _JSON_OPTIONS)).write.text(f"file:{part}")
    else:
        rows.write.parquet(f"file:{part}")
    (written,) = part.glob("part-*")
    written.rename(staging / "done" / f"events-{index:05d}.{options.format}")
    return numbers


@command("dump_events.py")
def main(arguments: list[str]) -> None:
    """Write the events that the arguments ask for."""
    options = parse(arguments)
    with SparkSession.builder.appName("nexmark dump_events").getOrCreate() as spark:
        dump(spark, options)


if __name__ == "__main__":
    exit_with(main(sys.argv[1:]))
