"""Builds the evidence on an output, so that a test states only what matters."""

from __future__ import annotations

from nexmark.expectations.checks import Evidence, invariants


def evidence(query: str, finding: str | None = None) -> Evidence:
    """The evidence on three right rows that were written as four; `finding` is on every check."""
    return Evidence(
        query=query,
        events=10,
        rows=4,
        reference_rows=3,
        reference_may_be_empty=False,
        comparable=True,
        compared_rows=3,
        missing_rows=0,
        unexpected_rows=0,
        findings=dict.fromkeys(
            ("schema", "difference", *(check.name for check in invariants(query))), finding
        ),
    )
