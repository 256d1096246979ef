"""Great Expectations suites: one per query, judging the evidence that DuckDB gathered.

The batch is one row: row counts as numbers, and per check a column that holds the finding (a
sentence with example rows) or nothing. So Great Expectations never sees a million rows, and its
Data Docs show each rule with its finding.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nexmark.expectations.checks import Evidence, gather, invariants
from nexmark.expectations.contract import contract
from nexmark.expectations.tables import load_output, open_events
from nexmark_jobs import boundary

if TYPE_CHECKING:
    from great_expectations import ExpectationSuite
    from great_expectations.data_context.data_context.abstract_data_context import (
        AbstractDataContext,
    )


@dataclass(frozen=True)
class ValidationOutcome:
    """The outcome of validating one output.

    ``failures`` has a line per failed expectation, for a person; if the columns are wrong, for
    these only. ``statistics`` are plain numbers: rows, reference_rows, missing_rows and
    unexpected_rows (None when the columns made a comparison impossible), events, and of a whole
    validation its seconds. ``docs`` is the index of the Data Docs site.
    """

    query: str
    success: bool
    expectations_evaluated: int
    expectations_failed: int
    failures: tuple[str, ...]
    statistics: dict[str, float | int | None]
    docs: Path | None


def build_suite(query: str, *, may_be_empty: bool) -> "ExpectationSuite":
    """Return the suite of `query`; an empty reference is refused, unless it `may_be_empty`."""
    gx = _great_expectations()
    no_finding = gx.expectations.ExpectColumnValuesToBeNull
    compared = "rows, folded by bidder," if contract(query).fold else "rows"
    listed = ", ".join(map(str, contract(query).columns))
    expectations = [
        no_finding(column="schema", description=f"The columns are, in this order: {listed}."),
        gx.expectations.ExpectColumnValuesToBeBetween(
            column="reference_rows",
            min_value=0 if may_be_empty else 1,
            description="The reference has rows, unless the events are too few.",
        ),
        gx.expectations.ExpectColumnPairValuesToBeEqual(
            column_A="compared_rows",
            column_B="reference_rows",
            description=f"There are as many {compared} as in the reference.",
        ),
        no_finding(
            column="difference",
            description="Every row is as often in the output as in the reference, and no other.",
        ),
    ]
    expectations += [no_finding(column=x.name, description=x.rule) for x in invariants(query)]
    suite: ExpectationSuite = gx.ExpectationSuite(name=query, expectations=expectations)
    return suite


def judge(evidence: Evidence, docs_dir: Path | None = None, name: str = "") -> ValidationOutcome:
    """Run the suite over the evidence; add the result, by `name`, to a Data Docs site, if asked."""
    import pandas as pd

    gx = _great_expectations()
    context = _context(docs_dir)
    name = name or evidence.query
    suite = build_suite(evidence.query, may_be_empty=evidence.reference_may_be_empty)
    suite.name = name
    suite = context.suites.add_or_update(suite)
    asset = context.data_sources.add_pandas("output").add_dataframe_asset(name)
    batch = asset.add_batch_definition_whole_dataframe("evidence")
    definition = gx.ValidationDefinition(name=name, data=batch, suite=suite)
    definitions = [context.validation_definitions.add(definition)]
    actions = [gx.checkpoint.UpdateDataDocsAction(name="docs")] if docs_dir else []
    checkpoint = context.checkpoints.add(
        gx.Checkpoint(name=name, validation_definitions=definitions, actions=actions)
    )
    counted = ("rows", "compared_rows", "reference_rows")
    row = {name: getattr(evidence, name) for name in counted} | evidence.findings
    result = checkpoint.run(
        batch_parameters={"dataframe": pd.DataFrame([row])},
        run_id=gx.RunIdentifier(run_name=name),
    )
    (validation,) = result.run_results.values()
    failed = [entry for entry in validation.results if not entry.success]
    counts = ("events", "rows", "reference_rows", "missing_rows", "unexpected_rows")
    return ValidationOutcome(
        query=evidence.query,
        success=bool(result.success),
        expectations_evaluated=len(validation.results),
        expectations_failed=len(failed),
        failures=tuple(_failures(evidence, (entry.expectation_config for entry in failed))),
        statistics={name: getattr(evidence, name) for name in counts},
        docs=docs_dir / "index.html" if docs_dir else None,
    )


def _failures(evidence: Evidence, failed: Iterable[Any]) -> Iterator[str]:
    """Return a line per failed expectation, with its finding."""
    findings = {
        "reference_rows": f"empty over {evidence.events} events: verify with more events",
        "row_count": f"{evidence.compared_rows}, the reference has {evidence.reference_rows}",
        **evidence.findings,
    }
    for configuration in failed:
        column = configuration.kwargs.get("column", "row_count")
        if evidence.comparable or column == "schema":
            yield f"{column}: {findings[column]} ({configuration.description})"


def _great_expectations() -> Any:
    """Import Great Expectations (seconds, once per process) with its analytics off.

    It imports pyspark if it can, and ``pyspark.sql.connect`` without pyarrow ends the process with
    exit code 0 when ``__main__`` has no file (``python -c``, as some executors start their
    workers): a validation would vanish and look like a success. So that import fails here, unless
    it was made already.
    """
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    absent = {"pyspark", "pyspark.ml", "pyspark.sql.connect"} - sys.modules.keys()
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        import great_expectations as gx
        import great_expectations.checkpoint
        import great_expectations.expectations
    finally:
        for name in absent:
            del sys.modules[name]
    return gx


def _context(data_docs_dir: Path | None) -> "AbstractDataContext":
    """Return a context in memory; only results and Data Docs are files, and only if asked."""
    gx = _great_expectations()
    from great_expectations.data_context.types import base

    stores = base.InMemoryStoreBackendDefaults()
    if data_docs_dir is not None:
        for name in ("expectations_store", "validation_results_store"):
            stores.stores[name] = {
                "class_name": name.title().replace("_", ""),
                "store_backend": _files(data_docs_dir / "results" / name),
            }
        stores.data_docs_sites = {
            "nexmark": {
                "class_name": "SiteBuilder",
                "show_how_to_buttons": False,
                "store_backend": _files(data_docs_dir),
                "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
            }
        }
    config = base.DataContextConfig(store_backend_defaults=stores, analytics_enabled=False)
    context: AbstractDataContext = gx.get_context(project_config=config)
    context.variables.progress_bars = base.ProgressBarsConfig(globally=False)
    return context


def _files(at: Path) -> dict[str, str]:
    return {"class_name": "TupleFilesystemStoreBackend", "base_directory": os.fspath(at.absolute())}


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
    `output_dir`; `events_dir` may be a recorded topic. With `data_docs_dir` the result is added to
    the site there, under `name` (default: the query's). A wrong output is an outcome;
    ExpectationsError: unknown query or sink, or events or output cannot be read.
    """
    started = time.monotonic()
    entry = contract(query)
    with open_events(events_dir) as events:
        output = load_output(events.connection, entry, Path(output_dir), sink)
        evidence = gather(events, entry, output)
    docs = Path(data_docs_dir) if data_docs_dir is not None else None
    outcome = judge(evidence, docs, name)
    seconds = round(time.monotonic() - started, 3)
    return replace(outcome, statistics={**outcome.statistics, "seconds": seconds})


def validate_boundary(
    query: str, output_dir: Path, data_docs_dir: Path | None = None, sink: str = "parquet"
) -> ValidationOutcome:
    """Validate the output of ``run_query.py --boundary DIR``, as `validate` does."""
    with tempfile.TemporaryDirectory(prefix="nexmark-boundary-") as events_dir:
        boundary.write(Path(events_dir))
        return validate(query, output_dir, events_dir, data_docs_dir, sink, f"{query}_boundary")
