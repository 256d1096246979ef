"""What all tests share: no skip goes unseen, and the Spark builds under test."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where nothing may be skipped (CI), a skipped test is a failed one."""
    report = yield
    if report.skipped and os.environ.get("NEXMARK_REQUIRE_ALL_TESTS"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, which CI does not accept: {report.longrepr}"
    return report
