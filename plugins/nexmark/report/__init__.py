"""Renderings of the evidence: the text table, CSV, JSON, pages, the bundle of a sign-off."""

from nexmark.evidence.night_evidence import Report, make_report
from nexmark.evidence.rows import Row
from nexmark.report.evidence_files import write_report
from nexmark.report.table import render_table, report_text

__all__ = ["Report", "Row", "make_report", "render_table", "report_text", "write_report"]
