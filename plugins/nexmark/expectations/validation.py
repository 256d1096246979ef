"""Is this output right? The one question, answered for a task or a person."""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

from nexmark.expectations.checks import gather
from nexmark.expectations.contract import contract
from nexmark.expectations.events import open_events
from nexmark.expectations.outputs import load_output
from nexmark.expectations.suites import ValidationOutcome, judge
from nexmark_jobs import boundary


def validate(
    query: str,
    output_dir: Path | str,
    events_dir: Path | str,
    data_docs_dir: Path | str | None = None,
    sink: str = "parquet",
    name: str = "",
) -> ValidationOutcome:
    """Validate the output of `query` over the events against contract, reference and invariants.

    ``run_query.py --sink parquet:DIR`` (or ``filesystem:DIR`` for q10, as `sink` says) wrote
    `output_dir`; ``dump_events.py`` wrote `events_dir`, or it is a recorded topic. With
    `data_docs_dir` the result is added to the Data Docs site there, under `name` (default: the
    query's).

    A wrong output is an outcome, not an error.

    Raises:
        ExpectationsError: Unknown query or sink, or events or output cannot be read; one line.
    """
    started = time.monotonic()
    entry = contract(query)
    with open_events(events_dir) as events:
        output = load_output(events.connection, entry, Path(output_dir), sink)
        evidence = gather(events, entry, output)
    docs = Path(data_docs_dir) if data_docs_dir is not None else None
    outcome = judge(evidence, docs, name or query)
    seconds = round(time.monotonic() - started, 3)
    return replace(outcome, statistics={**outcome.statistics, "seconds": seconds})


def validate_boundary(
    query: str,
    output_dir: Path | str,
    data_docs_dir: Path | str | None = None,
    sink: str = "parquet",
) -> ValidationOutcome:
    """Validate the output of ``run_query.py --boundary DIR``, as `validate` does.

    Raises:
        ExpectationsError: As for `validate`.
    """
    with tempfile.TemporaryDirectory(prefix="nexmark-boundary-") as events_dir:
        boundary.write(Path(events_dir))
        return validate(query, output_dir, events_dir, data_docs_dir, sink, f"{query}_boundary")
