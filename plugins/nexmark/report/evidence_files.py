"""Writes the report and the evidence of a night, for all of it and for each alarm; and the bundle.

table.txt, results.csv, repetitions.csv, results.json      the report
evidence.json, evidence.html                               the night, for programs and for people
alarms/<query>/evidence.json, evidence.html                each query that is red, in depth

The bundle of a sign-off has all of these, and problems.txt (what could not be written, if anything)
and SHA256SUMS (as `sha256sum -c` reads it). It is written once, and read-only.
"""

import csv
import io
import json
import math
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nexmark.config import paths
from nexmark.evidence.alarms import alarm_groups, since_of
from nexmark.evidence.night_evidence import NightEvidence, Report, night_evidence, report_of
from nexmark.evidence.night_rows import night_rows
from nexmark.evidence.query_evidence import query_evidence
from nexmark.evidence.rows import Row
from nexmark.evidence.signoffs import EVIDENCE, HTML, SUMS, digest, seal
from nexmark.home import whole_directory, write_text
from nexmark.report.charts import night_charts, query_charts, time_charts
from nexmark.report.evidence_json import night_json, query_json
from nexmark.report.plain import IDS, plain, plain_row, plain_verdict
from nexmark.report.rendering import environment, standalone
from nexmark.report.table import render_table, report_text
from nexmark.store import Store
from nexmark.store.table_rows import RepetitionRow

ALARMS = "alarms"
DRAWN = 8
"""The number of alarms, the worst first, whose pages have charts: charts take most of the time."""
DERIVED = ("cores", "throughput_per_core")
NOT_IN_CSV = frozenset({"id", "night_id", "batch_list", "confs"})
_REPORT_SCHEMA = 1


@dataclass(frozen=True)
class Written:
    """The page of the night (None if it could not be written), and pages of its alarms by query.

    ``problems`` has a line for each page that could not be written.
    """

    page: Path | None
    alarms: Mapping[str, Path]
    problems: tuple[str, ...]


def write_report(directory: Path, store: Store, run: str) -> Report:
    """Write the report of a run into a directory and return it.

    table.txt is what a person reads; results.csv has a line per query, raw numbers; repetitions.csv
    one per repetition, every figure; results.json all of it, with verdicts and validations.
    """
    stored = night_rows(store, store.find_run(run), leave_out=())
    report, night = report_of(store, stored), stored.night
    rows = [
        {
            **plain_row(row),
            "cores": row.cores,
            "throughput_per_core": row.throughput_per_core,
        }
        for row in report.rows
    ]
    content = {
        "schema_version": _REPORT_SCHEMA,
        "night": plain(night, keep=IDS),
        "failed": report.failed,
        "summary": list(report.lines),
        "alarms": list(report.alarms),
        "rows": rows,
        "compatibility": plain(report.upgrades.rows, keep=IDS),
        "verdicts": [
            {"night_id": verdict.night, **plain_verdict(verdict)} for verdict in stored.verdicts
        ],
        "validations": plain(stored.validations, keep=IDS),
        "repetitions": plain(stored.repetitions, keep=IDS),
    }
    directory.mkdir(parents=True, exist_ok=True)
    write_text(directory / "table.txt", report_text(report) + "\n")
    tabled = dict.fromkeys(name for row in report.rows for name in row.figures)
    names = [name for name in plain_row(Row("")) if name != "figures"]
    lines = [{**line, **row.figures} for line, row in zip(rows, report.rows, strict=True)]
    write_text(directory / "results.csv", _csv([*names, *DERIVED, *tabled], lines))
    columns = [x.name for x in RepetitionRow.__table__.columns if x.name not in NOT_IN_CSV]
    write_text(directory / "repetitions.csv", _csv(columns, map(vars, stored.repetitions)))
    write_text(directory / "results.json", json.dumps(content, indent=1) + "\n")
    return report


def night_html(found: NightEvidence) -> str:
    """Return the evidence of a night, or of a sign-off, as a page of its own."""
    text, charts = report_text(found.report), night_charts(found)
    return standalone("night.html", page=found, text=text, charts=charts)


def write_evidence(directory: Path, store: Store, run: str) -> Written:
    """Write the evidence of a run into a directory; never raises, for a night goes on without."""
    page, problems = None, []
    try:
        found = night_evidence(store, store.find_run(run))
        _write_both(directory, night_json(found), night_html(found))
        page = directory / HTML
    except Exception as error:
        problems.append(f"evidence of the night: not written: {_reason(error)}")
    alarms, more = write_alarms(directory, store, run)
    return Written(page, alarms, (*problems, *more))


def write_alarms(directory: Path, store: Store, run: str) -> tuple[dict[str, Path], list[str]]:
    """Write the evidence of a run's alarms, replacing earlier evidence; never raises."""
    written: dict[str, Path] = {}
    problems: list[str] = []
    try:
        shutil.rmtree(directory / ALARMS, ignore_errors=True)
        night = store.find_run(run)
        groups = alarm_groups(store, night, store.verdicts(night.id))
        if not groups:
            return written, problems
        stored = night_rows(store, night, leave_out=())
    except Exception as error:
        return written, [f"evidence of the alarms: not written: {_reason(error)}"]
    alarms = [(alarm.verdict, group) for group in groups for alarm in group.alarms]
    alarms.sort(key=lambda x: -(x[0].ratio or math.inf))
    for place, (verdict, group) in enumerate(alarms):
        query = verdict.query
        own = directory / ALARMS / paths.safe_name(query)
        try:
            found = query_evidence(store, night, query, stored, since_of(store, group))
            charts = {"charts": query_charts(found), "over_time": time_charts(found)}
            page = standalone("query.html", draw=place < DRAWN, page=found, **charts)
            _write_both(own, query_json(found), page)
            written[query] = own / HTML
        except Exception as error:
            problems.append(f"evidence of {query}: not written: {_reason(error)}")
    return written, problems


def _write_both(directory: Path, content: Mapping[str, Any], page: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, ensure_ascii=False, default=str) + "\n"  # indented: ten times slower
    write_text(directory / EVIDENCE, text)
    write_text(directory / HTML, page)


def _reason(error: Exception) -> str:
    said = " ".join(str(error).split())[:300]
    return said if isinstance(error, OSError) else f"{type(error).__name__}: {said}"


def _csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


READ_ONLY = 0o444


@dataclass(frozen=True)
class Bundle:
    """Where it is, where its copy is, and the seal: the SHA-256 of its SHA256SUMS."""

    directory: Path
    copy: Path
    seal: str


def write_bundle(directory: Path, copy: Path, evidence: NightEvidence, store: Store) -> Bundle:
    """Write the bundle and a copy of it; another decision on the run is another bundle.

    A bundle of the same decision that is there already (the task was tried again) is kept.
    """
    content = night_json(evidence)
    made = _place(directory, content)
    if not made.exists():
        with whole_directory(made) as temporary:
            _fill(temporary, evidence, content, store)
    kept = copy.with_name(copy.name + made.name.removeprefix(directory.name))
    if not kept.exists():
        with whole_directory(kept) as temporary:
            shutil.copytree(made, temporary, dirs_exist_ok=True)
    return Bundle(made, kept, seal(made))


def question_text(evidence: NightEvidence, draft: Path, bundle: Path) -> str:
    """Return what stands before the person who is to sign a build off, as Markdown.

    The colour, the lines that matter, the table, and where the rest is.
    """
    content = {"page": evidence, "table": render_table(evidence.report.rows)}
    template = environment().get_template("question.md")
    return template.render(**content, draft=draft, bundle=bundle).strip()


def _place(directory: Path, evidence: Mapping[str, Any]) -> Path:
    """Return where it goes: ``signoff``, or ``signoff-2`` where another decision was before."""
    number, place = 1, directory
    while place.exists():
        with suppress(OSError, ValueError, KeyError):
            decided = json.loads((place / EVIDENCE).read_text(encoding="utf-8"))["decision"]
            if decided == evidence["decision"]:
                break
        number += 1
        place = directory.with_name(f"{directory.name}-{number}")
    return place


def _fill(
    directory: Path, evidence: NightEvidence, content: Mapping[str, Any], store: Store
) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, default=str) + "\n"
    (directory / EVIDENCE).write_text(text, encoding="utf-8")
    (directory / HTML).write_text(night_html(evidence), encoding="utf-8")
    write_report(directory / "report", store, evidence.night.id)
    _, problems = write_alarms(directory, store, evidence.night.id)
    if problems:
        (directory / "problems.txt").write_text("\n".join(problems) + "\n", encoding="utf-8")
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    lines = [f"{digest(path)}  {path.relative_to(directory)}\n" for path in files]
    (directory / SUMS).write_text("".join(lines), encoding="utf-8")
    for path in (*files, directory / SUMS):
        path.chmod(READ_ONLY)
