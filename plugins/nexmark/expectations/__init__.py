"""Reference results, expectations and Data Docs: is a query's output right?

Importing this package is cheap; DuckDB and Great Expectations are imported when they are used.
"""

from nexmark.expectations.contract import ExpectationsError
from nexmark.expectations.suites import ValidationOutcome, validate, validate_boundary

__all__ = ["ExpectationsError", "ValidationOutcome", "validate", "validate_boundary"]
