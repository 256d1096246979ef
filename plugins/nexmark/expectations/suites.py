"""The suites of Great Expectations: one per query, over tables in DuckDB.

The batch is the output as it was written. The expectations on its rows are SQL over all tables:
``output`` with the types of the contract, ``reference``, ``person``, ``auction`` and ``bid``. A
person can add expectations to a suite in ``include/conf/expectations/q5.json``.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from nexmark.config.expectation_files import AddedExpectation, load_added
from nexmark.config.own_jobs import Jobs
from nexmark.expectations.checks import (
    Check,
    RowCounts,
    content_checks,
    prepare,
    types_check,
)
from nexmark.expectations.contract import Contract, contract
from nexmark.expectations.findings import cases, columns_finding
from nexmark.expectations.tables import Events, Output, load_output, open_events
from nexmark_jobs import boundary

if TYPE_CHECKING:
    from great_expectations import Checkpoint, ExpectationSuite
    from great_expectations.core import (
        ExpectationSuiteValidationResult,
        ExpectationValidationResult,
    )
    from great_expectations.data_context.data_context.abstract_data_context import (
        AbstractDataContext,
    )
    from great_expectations.expectations.expectation import Expectation

_SCHEMA = ("columns", "types")
_SITE_SECTIONS = ("expectations", "validations", "profiling")


@dataclass(frozen=True)
class ValidationOutcome:
    """The outcome of the validation of one output.

    ``failures`` has a line for people per failed expectation; if the columns are wrong, it has only
    a line on these. ``statistics`` has the numbers of events, rows, reference_rows, missing_rows
    and unexpected_rows, and how many seconds the validation took. missing_rows and unexpected_rows
    are None if the columns cannot be compared. ``docs`` is the index page of the Data Docs.
    """

    query: str
    success: bool
    expectations_evaluated: int
    expectations_failed: int
    failures: tuple[str, ...]
    statistics: dict[str, float | int | None]
    docs: Path | None


def build_suite(
    entry: Contract, added: Iterable[AddedExpectation] = (), *, readable: bool = True
) -> "ExpectationSuite":
    """Return the suite of a query; if its output is not `readable`, only the schema is expected.

    ConfigError if Great Expectations does not know an expectation that a person `added`, or its
    arguments.
    """
    gx = _great_expectations()
    listed = ", ".join(map(str, entry.columns))
    expectations = [
        gx.expectations.ExpectTableColumnsToMatchOrderedList(
            column_list=list(entry.names),
            description=f"The columns are, in this order: {listed}.",
            meta={"name": "columns"},
        ),
        _no_rows(types_check(entry)),
    ]
    if readable and entry.compared:
        if not entry.fold:
            expectations.append(
                gx.expectations.ExpectTableRowCountToEqualOtherTable(
                    other_table_name="reference",
                    description="There are as many rows as in the reference.",
                    meta={"name": "row_count"},
                )
            )
        expectations += map(_no_rows, content_checks(entry))
    if readable:
        expectations += map(_added, added)
    suite: ExpectationSuite = gx.ExpectationSuite(name=entry.query, expectations=expectations)
    return suite


def _no_rows(check: Check) -> "Expectation":
    """Return the expectation that the SELECT of `check` finds no row; it shows the first rows."""
    _great_expectations()
    from nexmark.expectations.data_docs import UnexpectedRowsExpectation

    sql = check.sql.replace("{", "{{").replace("}", "}}")
    return UnexpectedRowsExpectation(
        # Great Expectations prints a warning where {batch}, the table ``written``, is not named.
        unexpected_rows_query=f"/* {{batch}} */ FROM (\n{sql}\n) ORDER BY ALL",
        description=check.rule,
        meta={"name": check.name},
    )


def _added(expectation: AddedExpectation) -> "Expectation":
    """Return an expectation that a person added; ConfigError says where it is wrong."""
    _great_expectations()
    from nexmark.expectations.data_docs import expectation_of

    return expectation_of(expectation)


def judge(
    events: Events,
    entry: Contract,
    output: Output,
    docs_dir: Path | None = None,
    name: str = "",
    added: Sequence[AddedExpectation] | None = None,
) -> ValidationOutcome:
    """Run the suite of a query over its loaded output.

    Args:
        events: The opened events, in whose database the output was loaded.
        entry: The contract of the query.
        output: The loaded output.
        docs_dir: The directory of the Data Docs to which the result is added, if any.
        name: The name of the result in the Data Docs, by default the name of the query.
        added: What a person adds to the suite; None for the file of the query.
    """
    from nexmark.expectations.duckdb_dialect import shared

    counts = prepare(events, entry, output)
    added = load_added(entry.query) if added is None else added
    suite = build_suite(entry, added, readable=output.readable)
    suite.name = name or entry.query
    with shared(events.connection) as url:
        result = _checked(suite, url, docs_dir)
    # Not a dict: two expectations that a person added may have the same name, and both count.
    results = [(_name(each), each) for each in result.results]
    failed = [(name, each) for name, each in results if not each.success]
    return ValidationOutcome(
        query=entry.query,
        success=bool(result.success),
        expectations_evaluated=len(results),
        expectations_failed=len(failed),
        failures=tuple(_failures(failed, events, entry, output, counts)),
        statistics={
            "events": events.count,
            "rows": output.rows,
            "reference_rows": counts.reference,
            "missing_rows": _rows_of("missing", results),
            "unexpected_rows": _rows_of("unexpected", results),
        },
        docs=docs_dir / "index.html" if docs_dir else None,
    )


def _checked(
    suite: "ExpectationSuite", url: str, docs_dir: Path | None
) -> "ExpectationSuiteValidationResult":
    """Run a suite over the table ``written``; add its result to the Data Docs in ``docs_dir``."""
    gx = _great_expectations()
    context, name = _context(docs_dir), suite.name
    suite = context.suites.add_or_update(suite)
    source = context.data_sources.add_sql("output", connection_string=url)
    asset = source.add_table_asset(name, table_name="written")
    batch = asset.add_batch_definition_whole_table("all")
    definition = gx.ValidationDefinition(name=name, data=batch, suite=suite)
    definitions = [context.validation_definitions.add(definition)]
    actions = [gx.checkpoint.UpdateDataDocsAction(name="docs")] if docs_dir else []
    checkpoint: Checkpoint = context.checkpoints.add(
        gx.Checkpoint(name=name, validation_definitions=definitions, actions=actions)
    )
    result = checkpoint.run(run_id=gx.RunIdentifier(run_name=name))
    (validation,) = result.run_results.values()
    return validation


def _name(result: "ExpectationValidationResult") -> str:
    """Return the name of an expectation; if it has none, its type with its column."""
    configuration = result.expectation_config
    assert configuration is not None
    name = (configuration.meta or {}).get("name")
    column = configuration.kwargs.get("column")
    return str(name or configuration.type + (f" of {column}" if column else ""))


def _rows_of(name: str, results: "Iterable[tuple[str, ExpectationValidationResult]]") -> int | None:
    """Return how many rows an expectation of ours found; None if it is not in the suite.

    Our expectations come before those that a person added, so the first of a name is ours.
    """
    result = next((each.result for known, each in results if known == name), {})
    return result.get("observed_value")


def _failures(
    failed: "Sequence[tuple[str, ExpectationValidationResult]]",
    events: Events,
    entry: Contract,
    output: Output,
    counts: RowCounts,
) -> Iterator[str]:
    """Yield a line per failed expectation with what it found, and one line on a wrong schema.

    Args:
        failed: The failed expectations, each with its name.
        events: The opened events.
        entry: The contract of the query.
        output: The loaded output.
        counts: The numbers of rows of the output and of the reference.
    """
    if any(name in _SCHEMA for name, _ in failed):
        listed = ", ".join(map(str, entry.columns))
        finding = columns_finding(entry.columns, output.columns)
        yield f"schema: {finding} (The columns are, in this order: {listed}.)"
    findings = {
        "reference_rows": f"empty over {events.count} events: verify with more events",
        "row_count": f"{counts.compared}, the reference has {counts.reference}",
    }
    for name, result in failed:
        if name not in _SCHEMA:
            rule = result.expectation_config and result.expectation_config.description
            finding = findings.get(name) or cases(name, result.result, result.exception_info)
            yield f"{name}: {finding}" + (f" ({rule})" if rule else "")


def check_added(queries: Iterable[str], jobs: Jobs = MappingProxyType({})) -> None:
    """Raise ConfigError if Great Expectations refuses an expectation that a person added."""
    for query in queries:
        for added in jobs[query].added if query in jobs else load_added(query):
            _added(added)


def _great_expectations() -> Any:
    """Return the module of Great Expectations, imported with its analytics off.

    The first import in a process takes seconds. Great Expectations imports pyspark if it can. But
    without pyarrow, the import of ``pyspark.sql.connect`` ends the process with exit code 0 if
    ``__main__`` has no file (``python -c``, as some executors start their workers). The validation
    would then end without a result and look like a success. So this function lets Great
    Expectations not find pyspark, unless pyspark is imported already.
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
    """Return a context in memory; with ``data_docs_dir``, results and Data Docs are files there."""
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
                "site_index_builder": {
                    "class_name": "DefaultSiteIndexBuilder",
                    "view": _view("IndexPageView"),
                },
                "site_section_builders": {
                    section: {"view": _view("PageView")} for section in _SITE_SECTIONS
                },
            }
        }
    config = base.DataContextConfig(store_backend_defaults=stores, analytics_enabled=False)
    context: AbstractDataContext = gx.get_context(project_config=config)
    context.variables.progress_bars = base.ProgressBarsConfig(globally=False)
    return context


def _view(name: str) -> dict[str, str]:
    return {"module_name": "nexmark.expectations.data_docs", "class_name": name}


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
    """Validate the output of a query against its contract, its reference and its invariants.

    A wrong output is an outcome, not an error.

    Args:
        query: The query.
        output_dir: The directory that ``run_query.py --sink parquet:DIR`` wrote, or
            ``--sink filesystem:DIR`` for q10.
        events_dir: The directory of the events; it may be a recorded topic.
        data_docs_dir: The directory of the Data Docs to which the result is added, if any.
        sink: The sink that wrote the output: parquet or filesystem.
        name: The name of the result in the Data Docs, by default the name of the query.

    Raises:
        ExpectationsError: The query or the sink is not known, or the events or the output cannot be
            read.
    """
    started = time.monotonic()
    entry = contract(query)
    with open_events(events_dir) as events:
        output = load_output(events.connection, entry, Path(output_dir), sink)
        docs = Path(data_docs_dir) if data_docs_dir is not None else None
        outcome = judge(events, entry, output, docs, name)
    seconds = round(time.monotonic() - started, 3)
    return replace(outcome, statistics={**outcome.statistics, "seconds": seconds})


def validate_boundary(
    query: str, output_dir: Path, data_docs_dir: Path | None = None, sink: str = "parquet"
) -> ValidationOutcome:
    """Validate the output of ``run_query.py --boundary DIR``; see `validate`.

    Args:
        query: The query.
        output_dir: The directory of the output.
        data_docs_dir: The directory of the Data Docs to which the result is added, if any.
        sink: The sink that wrote the output.
    """
    with tempfile.TemporaryDirectory(prefix="nexmark-boundary-") as events_dir:
        boundary.write(Path(events_dir))
        return validate(query, output_dir, events_dir, data_docs_dir, sink, f"{query}_boundary")
