"""Writes the evidence of a night: one page and one JSON file for all, and for each alarm.

evidence.json, evidence.html                   the night
alarms/<query>/evidence.json, evidence.html    each query that is red, in depth
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nexmark.config import paths
from nexmark.report.alarm_html import render_alarm
from nexmark.report.alarms import alarm_groups, since_of
from nexmark.report.evidence import collect
from nexmark.report.evidence_html import render
from nexmark.report.in_depth import collect_query
from nexmark.store import Store

ALARMS = "alarms"
DRAWN = 8
"""The pages of so many alarms, the worst, have charts: they take nearly all of the time."""
JSON, HTML = "evidence.json", "evidence.html"


@dataclass(frozen=True)
class Written:
    """The page of the night (None if it could not be written), those of the alarms by query.

    ``problems`` has a line for each that could not be written.
    """

    page: Path | None
    alarms: Mapping[str, Path]
    problems: tuple[str, ...]


def write_evidence(directory: Path, store: Store, run: str) -> Written:
    """Write the evidence of a run into a directory; never raises, for a night goes on without."""
    page, problems = None, []
    try:
        content = collect(store, run, None)
        _write(directory, content, render(content))
        page = directory / HTML
    except Exception as error:
        problems.append(f"evidence of the night: not written: {_reason(error)}")
    alarms, more = write_alarms(directory, store, run)
    return Written(page, alarms, (*problems, *more))


def write_alarms(directory: Path, store: Store, run: str) -> tuple[dict[str, Path], list[str]]:
    """Write the evidence of the alarms of a run, in place of what was there; never raises."""
    written: dict[str, Path] = {}
    problems: list[str] = []
    try:
        shutil.rmtree(directory / ALARMS, ignore_errors=True)
        night = store.find_run(run)
        groups = alarm_groups(store, night)
        if not groups:
            return written, problems
        repetitions = store.repetitions(night.id)
    except Exception as error:
        return written, [f"evidence of the alarms: not written: {_reason(error)}"]
    alarms = [(alarm.verdict, group) for group in groups for alarm in group.alarms]
    alarms.sort(key=lambda x: -(x[0].ratio or math.inf))
    for place, (verdict, group) in enumerate(alarms):
        query = verdict.query
        own = directory / ALARMS / paths.safe_name(query)
        try:
            since = since_of(store, group)
            content = collect_query(store, night, query, repetitions, since)
            _write(own, content, render_alarm(content, charts=place < DRAWN))
            written[query] = own / HTML
        except Exception as error:
            problems.append(f"evidence of {query}: not written: {_reason(error)}")
    return written, problems


def _write(directory: Path, content: Mapping[str, Any], page: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, ensure_ascii=False, default=str) + "\n"  # indented: ten times slower
    for name, whole in ((JSON, text), (HTML, page)):
        temporary = directory / f"{name}.tmp"
        temporary.write_text(whole, encoding="utf-8")
        temporary.replace(directory / name)


def _reason(error: Exception) -> str:
    said = " ".join(str(error).split())[:300]
    return said if isinstance(error, OSError) else f"{type(error).__name__}: {said}"


__all__ = ["ALARMS", "HTML", "JSON", "Written", "write_alarms", "write_evidence"]
