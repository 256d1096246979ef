"""The files of a new job, commented, which run as they are."""

from pathlib import Path

from nexmark.config.fields import refused_name
from nexmark.config.own_jobs import FOLDER, read_job
from nexmark.errors import NexmarkError
from nexmark.home import write_text

_YAML = """\
# A query of your own (docs/your-own-jobs.md). `nexmark job check {name}` runs it small.
tables: nexmark           # the streams person, auction and bid of the generator; for files of
#                           your own, a name with its `files` for each table (docs)
sql: {name}.sql
output_mode: append       # or update, complete: Spark's output modes
key: [auction, window_start]  # which row of another run a row is compared with
reference: {name}.duckdb.sql  # the whole result in DuckDB SQL; without it, builds have to agree
# expectations: {name}.json   # a suite of Great Expectations
"""
_SQL = """\
-- Spark SQL over the streams person, auction and bid, each with a watermark on dateTime.
-- Statements end with a semicolon. All but the last one make temporary views; the last one is
-- the query.
CREATE TEMPORARY VIEW counted AS
SELECT auction, window.start AS window_start, count(*) AS bids, max(price) AS highest
FROM bid
GROUP BY auction, window(dateTime, '10 seconds');

SELECT auction, window_start, bids, highest
FROM counted
WHERE bids >= 5;
"""
_REFERENCE = """\
-- The whole result in DuckDB SQL, over the tables person, auction and bid: as if the input had
-- ended and every window had closed. Write it from the question, not from the job's SQL. The
-- columns have the names that the job gives them.
SELECT auction, time_bucket(INTERVAL '10 seconds', dateTime) AS window_start,
       count(*) AS bids, max(price) AS highest
FROM bid
GROUP BY ALL
HAVING count(*) >= 5
"""


def write_new(name: str, conf: Path) -> tuple[Path, ...]:
    """Write the files of a new job below `conf`; return them.

    NexmarkError for a name that no job can have, or a file that exists.
    """
    if problem := refused_name(name):
        raise NexmarkError(f"job new: {problem}")
    texts = {f"{name}.yaml": _YAML, f"{name}.sql": _SQL, f"{name}.duckdb.sql": _REFERENCE}
    files = {conf / FOLDER / file: text.format(name=name) for file, text in texts.items()}
    for path in files:
        if path.exists():
            raise NexmarkError(f"job new: {path} exists; take another name, or remove the file")
    (conf / FOLDER).mkdir(exist_ok=True)
    for path, text in files.items():
        write_text(path, text)
    read_job(conf / FOLDER / f"{name}.yaml")
    return tuple(files)
