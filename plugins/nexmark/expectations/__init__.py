"""Reference results, expectations and Data Docs: is a query's output right?

Importing this package is cheap; DuckDB and Great Expectations are imported when they are used.
"""
