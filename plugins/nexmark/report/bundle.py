"""The evidence bundle: written once, read-only, with the checksum of every file.

evidence.json    all of it, for programs
evidence.html    all of it, for people; opens without a network
report/          the report of the night: table, CSV, JSON with every repetition
alarms/          each query that is red in depth, as JSON and as a page
problems.txt     what of these could not be written, if any
SHA256SUMS       as `sha256sum -c` reads it
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nexmark.evidence.night_evidence import NightEvidence
from nexmark.evidence.signoffs import EVIDENCE, HTML, SUMS, digest, seal
from nexmark.home import whole_directory
from nexmark.report.evidence_files import night_html, write_alarms, write_report
from nexmark.report.evidence_json import night_json
from nexmark.report.rendering import environment
from nexmark.report.table import render_table
from nexmark.store import Store

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
    report = evidence.report
    content = {"page": evidence, "table": render_table(report.rows)}
    places = {"draft": draft, "bundle": bundle}
    return environment().get_template("question.md").render(**content, **places).strip()


def _place(directory: Path, evidence: Mapping[str, Any]) -> Path:
    """Return where it goes: ``signoff``, or ``signoff-2`` where another decision was before."""
    number, place = 1, directory
    while place.exists() and _decision_in(place) != evidence["decision"]:
        number += 1
        place = directory.with_name(f"{directory.name}-{number}")
    return place


def _decision_in(directory: Path) -> object:
    try:
        return json.loads((directory / EVIDENCE).read_text(encoding="utf-8"))["decision"]
    except (OSError, ValueError, KeyError):
        return None


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
