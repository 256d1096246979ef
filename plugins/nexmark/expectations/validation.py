"""Is this output right? The one question, answered for a task or a person."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from nexmark.expectations.checks import Evidence, gather
from nexmark.expectations.contract import contract
from nexmark.expectations.events import open_events
from nexmark.expectations.outputs import load_output
from nexmark.expectations.suites import judge

__all__ = ["ValidationOutcome", "validate"]


@dataclass(frozen=True)
class ValidationOutcome:
    """The outcome of validating one output.

    ``failures`` has a line per failed expectation, for a person; if the columns are wrong, that is
    the only line. ``statistics`` are plain numbers
    (rows, reference_rows, missing_rows, unexpected_rows, events, seconds); the missing and
    unexpected rows are None when the columns made a comparison impossible. ``docs`` is the index of
    the Data Docs site the result was added to.
    """

    query: str
    success: bool
    expectations_evaluated: int
    expectations_failed: int
    failures: tuple[str, ...]
    statistics: dict[str, float | int | None]
    docs: Path | None


def validate(
    query: str,
    output_dir: Path | str,
    events_dir: Path | str,
    data_docs_dir: Path | str | None = None,
    sink: str = "parquet",
) -> ValidationOutcome:
    """Validate the output of `query` over the events against contract, reference and invariants.

    `output_dir` is what ``run_query.py --sink parquet:DIR`` (or ``filesystem:DIR`` for q10, as
    `sink` says) left; `events_dir` what ``dump_events.py`` wrote, or a recorded topic. With
    `data_docs_dir` the result is added to the Data Docs site there.

    A wrong output is an outcome, not an error.

    Raises:
        ExpectationsError: Unknown query or sink, or events or output cannot be read; one line.
    """
    started = time.monotonic()
    entry = contract(query)
    with open_events(events_dir) as events:
        output = load_output(events.connection, entry, Path(output_dir), sink)
        evidence = gather(events, entry, output)
    judgement = judge(evidence, Path(data_docs_dir) if data_docs_dir is not None else None)
    return ValidationOutcome(
        query=query,
        success=judgement.success,
        expectations_evaluated=judgement.evaluated,
        expectations_failed=judgement.failed,
        failures=judgement.failures,
        statistics=_statistics(evidence, time.monotonic() - started),
        docs=judgement.docs,
    )


def _statistics(evidence: Evidence, seconds: float) -> dict[str, float | int | None]:
    return {
        "events": evidence.events,
        "rows": evidence.rows,
        "reference_rows": evidence.reference_rows,
        "missing_rows": evidence.missing_rows,
        "unexpected_rows": evidence.unexpected_rows,
        "seconds": round(seconds, 3),
    }
