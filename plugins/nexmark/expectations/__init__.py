"""Reference results, expectations and Data Docs: is a query's output right?

Importing this package is cheap; DuckDB and Great Expectations are imported when they are used.
"""

from __future__ import annotations

from nexmark.expectations.errors import EventsError, ExpectationsError, OutputError
from nexmark.expectations.events import open_events
from nexmark.expectations.reference import reference
from nexmark.expectations.validation import ValidationOutcome, validate

__all__ = [
    "EventsError",
    "ExpectationsError",
    "OutputError",
    "ValidationOutcome",
    "open_events",
    "reference",
    "validate",
]
