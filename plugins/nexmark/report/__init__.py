"""What a person reads of a night: the table, the three lines that matter, CSV and JSON."""

from nexmark.report.report import Report, make_report, write_report
from nexmark.report.rows import Row
from nexmark.report.table import render_table

__all__ = ["Report", "Row", "make_report", "render_table", "write_report"]
