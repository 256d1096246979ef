"""Additions to Great Expectations for our Data Docs: rows on the page, and speed.

Only a task that validates imports this module: Great Expectations takes seconds to import.
"""

import logging
from types import CodeType
from typing import Any, ClassVar

from great_expectations.exceptions.exceptions import ExpectationNotFoundError
from great_expectations.expectations.core import unexpected_rows_expectation
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.registry import list_registered_expectation_implementations
from great_expectations.render.components import (
    CollapseContent,
    LegacyDiagnosticRendererType,
    RenderedTableContent,
)
from great_expectations.render.renderer.renderer import renderer
from great_expectations.render.view.view import DefaultJinjaIndexPageView, DefaultJinjaPageView
from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

from nexmark.config.expectation_files import AddedExpectation
from nexmark.errors import ConfigError, suggest

SHOWN_ROWS = 20
"""The largest number of rows of a failed expectation in a result and on its page."""

logging.getLogger("great_expectations.expectations.registry").setLevel(logging.ERROR)


class UnexpectedRowsExpectation(unexpected_rows_expectation.UnexpectedRowsExpectation):
    """The expectation of this name in Great Expectations, with its rows on the page.

    Great Expectations 1.24 shows only the number of rows. It keeps the rows only in results of the
    format COMPLETE, which also keeps all unexpected values of the other expectations.
    """

    def _validate(
        self,
        metrics: dict[str, Any],
        runtime_configuration: dict[str, Any] | None = None,
        execution_engine: Any = None,
    ) -> dict[str, Any]:
        count = metrics["unexpected_rows_query.row_count"]
        rows = metrics["unexpected_rows_query.table"][:SHOWN_ROWS]
        details = {"unexpected_rows": rows}
        return {"success": count == 0, "result": {"observed_value": count, "details": details}}

    @classmethod
    @renderer(renderer_type=LegacyDiagnosticRendererType.UNEXPECTED_TABLE)
    def _diagnostic_unexpected_table_renderer(
        cls, configuration: Any = None, result: Any = None, runtime_configuration: Any = None
    ) -> list[RenderedTableContent | CollapseContent] | None:
        rows = (result.result or {}).get("details", {}).get("unexpected_rows") if result else None
        if not rows:
            return None
        table = RenderedTableContent(
            content_block_type="table",
            header_row=list(rows[0]),
            table=[[str(value) for value in row.values()] for row in rows],
            styling={"body": {"classes": ["table-bordered", "table-sm", "mt-3"]}},
        )
        return [table]


class _CompiledTemplates(BytecodeCache):
    """The compiled templates, kept as long as the process runs.

    Without this cache, each page compiles about twenty templates again.
    """

    codes: ClassVar[dict[str, CodeType]] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self.codes.get(bucket.key)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if bucket.code is not None:
            self.codes[bucket.key] = bucket.code


class PageView(DefaultJinjaPageView):
    """The page of a suite, or the page of a result."""

    def __init__(self, **directories: Any) -> None:
        """Take the same directories as the base class."""
        super().__init__(**directories)
        self.env.bytecode_cache = _CompiledTemplates()


class IndexPageView(DefaultJinjaIndexPageView):
    """The page that lists all results."""

    def __init__(self, **directories: Any) -> None:
        """Take the same directories as the base class."""
        super().__init__(**directories)
        self.env.bytecode_cache = _CompiledTemplates()


def expectation_of(added: AddedExpectation) -> Expectation:
    """Return an expectation that a person added; ConfigError if Great Expectations refuses it."""
    configuration = ExpectationConfiguration(
        type=added.type,
        kwargs=added.kwargs,
        description=added.description,
        severity=FailureSeverity(added.severity or "critical"),
        meta=added.meta,
        notes=list(added.notes) if isinstance(added.notes, tuple) else added.notes,
    )
    try:
        expectation: Expectation = configuration.to_domain_obj()
    except ExpectationNotFoundError:
        known = list_registered_expectation_implementations()
        problem = f"unknown expectation {added.type!r}; {suggest(added.type, known)}"
    except (ValueError, TypeError) as error:
        problem = f"{added.type}: {' '.join(str(error).split())}; correct its kwargs"
    else:
        return expectation
    raise ConfigError(f"{added.where}: {problem}")
