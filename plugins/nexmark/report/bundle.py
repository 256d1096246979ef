"""The evidence bundle: written once, read-only, with the checksum of every file.

evidence.json    all of it, for programs
evidence.html    all of it, for people; opens without a network
report/          the report of the night: table, CSV, JSON with every repetition
alarms/          each query that is red in depth, as JSON and as a page
problems.txt     what of these could not be written, if any
SHA256SUMS       as `sha256sum -c` reads it
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nexmark.errors import NexmarkError
from nexmark.report.evidence_html import render
from nexmark.report.report import write_report
from nexmark.report.write import write_alarms
from nexmark.store import Store

SUMS = "SHA256SUMS"
EVIDENCE = "evidence.json"
READ_ONLY = 0o444
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


@dataclass(frozen=True)
class Bundle:
    """Where it is, where its copy is, and the seal: the SHA-256 of its SHA256SUMS."""

    directory: Path
    copy: Path
    seal: str


def write_bundle(directory: Path, copy: Path, evidence: Mapping[str, Any], store: Store) -> Bundle:
    """Write the bundle and a copy of it; another decision on the run is another bundle.

    A bundle of the same decision that is there already (the task was tried again) is kept.
    """
    made = _place(directory, evidence)
    if not made.exists():
        _fill(made, evidence, store)
    kept = copy.with_name(copy.name + made.name.removeprefix(directory.name))
    if not kept.exists():
        _whole(kept, lambda temporary: shutil.copytree(made, temporary, dirs_exist_ok=True))
    return Bundle(made, kept, seal(made))


def verify(directory: Path) -> list[str]:
    """Return what is not as it was written, a line each; [] for a bundle that is whole.

    NexmarkError when the directory is no bundle.
    """
    sums = _sums(directory)
    problems = []
    for name, digest in sums.items():
        path = directory / name
        if not path.is_file():
            problems.append(f"{name}: is missing")
        elif _digest(path) != digest:
            problems.append(f"{name}: was changed")
    found = {str(x.relative_to(directory)) for x in directory.rglob("*") if not x.is_dir()}
    problems += [f"{name}: was added" for name in sorted(found - set(sums) - {SUMS})]
    missing = {EVIDENCE} - set(sums)
    return problems + [f"{SUMS}: does not list {name}" for name in sorted(missing)]


def seal(directory: Path) -> str:
    """Return what all of a bundle hangs on; kept elsewhere, it tells a bundle that was replaced."""
    return _digest(directory / SUMS)


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


def _fill(directory: Path, evidence: Mapping[str, Any], store: Store) -> None:
    def write(temporary: Path) -> None:
        text = json.dumps(evidence, indent=1, ensure_ascii=False, default=str) + "\n"
        (temporary / EVIDENCE).write_text(text, encoding="utf-8")
        (temporary / "evidence.html").write_text(render(evidence), encoding="utf-8")
        write_report(temporary / "report", store, evidence["run"])
        _, problems = write_alarms(temporary, store, evidence["run"])
        if problems:
            (temporary / "problems.txt").write_text("\n".join(problems) + "\n", encoding="utf-8")
        files = sorted(path for path in temporary.rglob("*") if path.is_file())
        lines = [f"{_digest(path)}  {path.relative_to(temporary)}\n" for path in files]
        (temporary / SUMS).write_text("".join(lines), encoding="utf-8")
        for path in (*files, temporary / SUMS):
            path.chmod(READ_ONLY)

    _whole(directory, write)


def _whole(directory: Path, fill: Any) -> None:
    """Let a directory be filled under a temporary name beside it; it is there whole or not."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    temporary = directory.with_name(f".{directory.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        fill(temporary)
        temporary.replace(directory)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _sums(directory: Path) -> dict[str, str]:
    path = directory / SUMS
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise NexmarkError(
            f"{directory}: is no evidence bundle: {SUMS} cannot be read ({error}); give the "
            "directory `signoff` of a run, or one under `signoffs`"
        ) from None
    sums: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        found = _LINE.fullmatch(line)
        if found is None or Path(found[2]).is_absolute() or ".." in Path(found[2]).parts:
            raise NexmarkError(f"{path}:{number}: is no line of checksums; the file was changed")
        sums[found[2]] = found[1]
    return sums


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


__all__ = ["Bundle", "seal", "verify", "write_bundle"]
