"""The evidence of a night and of its alarms, as the night has written it."""

from __future__ import annotations

from pathlib import Path

from nexmark.report.write import ALARMS, HTML
from nexmark.store.models import Night


def night_file(night: Night) -> Path | None:
    """Return the page of a night; None where there is none (yet)."""
    return _existing(_report(night) / HTML)


def alarm_file(night: Night, query: str) -> Path | None:
    """Return the page of a query of a night; None where it did not alarm."""
    return _existing(_report(night) / ALARMS / query / HTML) if query in night.queries else None


def _report(night: Night) -> Path:
    return Path(night.directory) / "report"


def _existing(path: Path) -> Path | None:
    return path if path.is_file() else None


__all__ = ["alarm_file", "night_file"]
