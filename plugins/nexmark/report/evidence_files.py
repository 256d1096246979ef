"""Writes the report and the evidence of a night, and the bundle of a sign-off.

table.txt, results.csv, repetitions.csv, results.json      the report
evidence.json, evidence.html                               the night, for programs and for people
alarms/<query>/evidence.json, evidence.html                each query that is red, in depth

The bundle of a sign-off has all of these, and SHA256SUMS in the format of `sha256sum -c`. If a file
could not be written, problems.txt says which and why. A bundle is written once, and is read-only.
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

from nexmark.config import paths
from nexmark.evidence.alarms import alarm_groups
from nexmark.evidence.night_evidence import NightEvidence, Report, night_evidence, report_of
from nexmark.evidence.night_rows import NightRows, night_rows
from nexmark.evidence.query_evidence import query_evidence
from nexmark.evidence.rows import Row
from nexmark.evidence.signoffs import EVIDENCE, HTML, SUMS, digest, seal
from nexmark.home import whole_directory, write_text
from nexmark.report.charts import night_charts, query_charts, time_charts
from nexmark.report.evidence_json import night_json, query_json
from nexmark.report.host_paths import with_short_paths
from nexmark.report.plain import IDS, plain, plain_row, plain_verdict
from nexmark.report.rendering import environment, standalone
from nexmark.report.table import render_table, report_text
from nexmark.store import Store
from nexmark.store.table_rows import RepetitionRow

ALARMS = "alarms"
DRAWN = 8
"""The number of worst alarms whose pages have charts; drawing them takes most of the time."""
DERIVED = ("cores", "throughput_per_core")
"""The figures in the report that follow from others."""
NOT_IN_CSV = frozenset({"id", "night_id", "batch_list", "confs"})
"""The columns of a repetition that repetitions.csv does not have."""
_REPORT_SCHEMA = 1


@dataclass(frozen=True)
class Written:
    """The evidence that was written of a night.

    ``page`` is the page of the night, None if it could not be written. ``alarms`` has the page of
    each alarm by query. ``problems`` has a line for each page that could not be written.
    """

    page: Path | None
    alarms: Mapping[str, Path]
    problems: tuple[str, ...]


def write_night(directory: Path, store: Store, run: str) -> tuple[Report, Written]:
    """Write the report and the evidence of a run into a directory, from one reading of its rows.

    A report that cannot be written is an error; evidence that cannot be written is a line of its
    ``problems``, for a night goes on without.
    """
    with store.at_one_moment() as moment:
        stored = night_rows(moment, moment.find_run(run), leave_out=())
        report = _write_report(directory, moment, stored)
        return report, _write_evidence(directory, moment, stored)


def write_report(directory: Path, store: Store, run: str) -> Report:
    """Write the report of a run into a directory, and return it."""
    with store.at_one_moment() as moment:
        stored = night_rows(moment, moment.find_run(run), leave_out=())
        return _write_report(directory, moment, stored)


def _write_report(directory: Path, store: Store, stored: NightRows) -> Report:
    """Write the report of a night into a directory, and return it.

    table.txt is for people. results.csv has a line per query, repetitions.csv has a line per
    repetition with every figure. results.json has all of these, with verdicts and validations.
    """
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
        "source_changes": plain(report.source_changes),
        "rows": rows,
        "compatibility": plain(report.upgrades.rows, keep=IDS),
        "verdicts": [
            {"night_id": verdict.night, **plain_verdict(verdict)} for verdict in stored.verdicts
        ],
        "validations": plain(stored.validations, keep=IDS),
        "repetitions": plain(stored.repetitions, keep=IDS),
    }
    directory.mkdir(parents=True, exist_ok=True)
    _write_text(directory / "table.txt", report_text(report) + "\n")
    tabled = dict.fromkeys(name for row in report.rows for name in row.figures)
    names = [name for name in plain_row(Row("")) if name != "figures"]
    lines = [{**line, **row.figures} for line, row in zip(rows, report.rows, strict=True)]
    _write_text(directory / "results.csv", _csv([*names, *DERIVED, *tabled], lines))
    names_of_columns = (column.name for column in RepetitionRow.__table__.columns)
    columns = [name for name in names_of_columns if name not in NOT_IN_CSV]
    _write_text(directory / "repetitions.csv", _csv(columns, map(vars, stored.repetitions)))
    _write_text(directory / "results.json", json.dumps(content, indent=1) + "\n")
    return report


def _write_text(path: Path, text: str) -> None:
    """Write a text into a file, with the paths of this machine shortened."""
    write_text(path, with_short_paths(text))


def night_html(evidence: NightEvidence) -> str:
    """Return the evidence of a night, or of a sign-off, as HTML that needs no other file."""
    text, charts = report_text(evidence.report), night_charts(evidence)
    return standalone("night.html", page=evidence, text=text, charts=charts)


def _write_evidence(directory: Path, store: Store, stored: NightRows) -> Written:
    """Write the evidence of a night and of its alarms into a directory; raises no error."""
    page, problems = None, []
    try:
        evidence = night_evidence(store, stored.night, stored=stored)
        _write_both(directory, night_json(evidence), night_html(evidence))
        page = directory / HTML
    except Exception as error:
        problems.append(f"evidence of the night: not written: {_reason(error)}")
    alarms, more = _write_alarms(directory, store, stored)
    return Written(page, alarms, (*problems, *more))


def _write_alarms(
    directory: Path, store: Store, stored: NightRows
) -> tuple[dict[str, Path], list[str]]:
    """Write the evidence of the alarms of a night, in place of earlier evidence; raises no error.

    Return the pages by query, and a line for each page that could not be written.
    """
    written: dict[str, Path] = {}
    problems: list[str] = []
    try:
        shutil.rmtree(directory / ALARMS, ignore_errors=True)
        groups = alarm_groups(store, stored.night, stored.verdicts)
    except Exception as error:
        return written, [f"evidence of the alarms: not written: {_reason(error)}"]
    alarms = [(alarm.verdict, group) for group in groups for alarm in group.alarms]
    alarms.sort(key=lambda alarm: -(alarm[0].ratio or math.inf))
    for place, (verdict, group) in enumerate(alarms):
        query = verdict.query
        of_query = directory / ALARMS / paths.safe_name(query)
        try:
            evidence = query_evidence(store, stored.night, query, stored, group)
            page = standalone(
                "query.html",
                draw=place < DRAWN,
                page=evidence,
                charts=query_charts(evidence),
                over_time=time_charts(evidence),
            )
            _write_both(of_query, query_json(evidence), page)
            written[query] = of_query / HTML
        except Exception as error:
            problems.append(f"evidence of {query}: not written: {_reason(error)}")
    return written, problems


def _write_both(directory: Path, content: Mapping[str, object], page: str) -> None:
    """Write evidence.json and evidence.html into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, ensure_ascii=False, default=str) + "\n"  # indented: ten times slower
    write_text(directory / EVIDENCE, text)
    write_text(directory / HTML, page)


def _reason(error: Exception) -> str:
    """Return why a file was not written, in one line."""
    message = " ".join(str(error).split())[:300]
    return message if isinstance(error, OSError) else f"{type(error).__name__}: {message}"


def _csv(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


READ_ONLY = 0o444


@dataclass(frozen=True)
class Bundle:
    """The directory of a bundle, the directory of its copy, and the SHA-256 of its SHA256SUMS."""

    directory: Path
    copy: Path
    seal: str


def write_bundle(directory: Path, copy: Path, evidence: NightEvidence, store: Store) -> Bundle:
    """Write the bundle of a sign-off, and a copy of it.

    Another decision on the same run is another bundle. If a bundle with the same decision exists
    already, because the task was tried again, it is kept.

    Args:
        directory: The directory of the first bundle; the bundle of another decision is beside it.
        copy: The directory of the copy.
        evidence: The evidence of the sign-off, with the decision.
        store: The results database.
    """
    content = night_json(evidence)
    bundle = _bundle_directory(directory, content)
    if not bundle.exists():
        with whole_directory(bundle) as temporary:
            _fill(temporary, evidence, content, store)
    copied = copy.with_name(copy.name + bundle.name.removeprefix(directory.name))
    if not copied.exists():
        with whole_directory(copied) as temporary:
            shutil.copytree(bundle, temporary, dirs_exist_ok=True)
    return Bundle(bundle, copied, seal(bundle))


def question_text(evidence: NightEvidence, draft: Path, bundle: Path) -> str:
    """Return the question to the person who signs a build off, as Markdown.

    It has the colour of the night, the lines that matter, the table, and the paths of the ``draft``
    of the evidence and of the ``bundle`` to come.
    """
    template = environment().get_template("question.md")
    table = render_table(evidence.report.rows)
    return template.render(page=evidence, table=table, draft=draft, bundle=bundle).strip()


def _bundle_directory(directory: Path, evidence: Mapping[str, object]) -> Path:
    """Return the directory of a bundle: ``signoff``, or ``signoff-2`` after another decision."""
    number, bundle = 1, directory
    while bundle.exists():
        with suppress(OSError, ValueError, KeyError):
            decided = json.loads((bundle / EVIDENCE).read_text(encoding="utf-8"))["decision"]
            if decided == evidence["decision"]:
                break
        number += 1
        bundle = directory.with_name(f"{directory.name}-{number}")
    return bundle


def _fill(
    directory: Path, evidence: NightEvidence, content: Mapping[str, object], store: Store
) -> None:
    """Write the files of a bundle.

    Args:
        directory: The directory, which is empty.
        evidence: The evidence of the sign-off.
        content: The same as JSON.
        store: The results database.
    """
    stored = night_rows(store, evidence.night, leave_out=())
    text = json.dumps(content, indent=1, ensure_ascii=False, default=str) + "\n"
    (directory / EVIDENCE).write_text(text, encoding="utf-8")
    (directory / HTML).write_text(night_html(evidence), encoding="utf-8")
    _write_report(directory / "report", store, stored)
    _, problems = _write_alarms(directory, store, stored)
    if problems:
        _write_text(directory / "problems.txt", "\n".join(problems) + "\n")
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    lines = [f"{digest(path)}  {path.relative_to(directory)}\n" for path in files]
    (directory / SUMS).write_text("".join(lines), encoding="utf-8")
    for path in (*files, directory / SUMS):
        path.chmod(READ_ONLY)
