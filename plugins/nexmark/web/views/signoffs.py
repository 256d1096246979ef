"""Sign-offs of releases: what was asked, what the gate said, who decided what."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from nexmark.config import SIGNOFF_DAG_ID
from nexmark.errors import NexmarkError
from nexmark.report.bundle import EVIDENCE, SUMS, seal, verify
from nexmark.store import Store, history
from nexmark.store.models import Build, Night
from nexmark.web.views.nights import NightLine, lines_of

SHOWN = 50
HTML = "evidence.html"
DRAFT = "draft"
_BUNDLES = "signoff*"


@dataclass(frozen=True)
class Decision:
    """What a person decided, and the name of the bundle that says so."""

    bundle: str
    choice: str
    who: str
    when: str
    reason: str
    signed_off: bool | None
    objection: str


@dataclass(frozen=True)
class SignOff:
    """A sign-off: its night, its build, and the decisions on it, the last one first."""

    line: NightLine
    build: Build | None
    decisions: tuple[Decision, ...]
    draft: bool


@dataclass(frozen=True)
class Bundle:
    """A bundle of evidence: its decision, its seal, and what is not as it was written."""

    decision: Decision
    seal: str
    problems: tuple[str, ...]


@dataclass(frozen=True)
class SignOffPage:
    """A sign-off with what each bundle of it says."""

    signoff: SignOff
    bundles: tuple[Bundle, ...]


def signoffs_of(store: Store, dags: Collection[str]) -> list[SignOff]:
    """Return the sign-offs, the newest first."""
    rows = history.nights(store, set(dags) & {SIGNOFF_DAG_ID}, SHOWN)
    builds = {build.id: build for build in store.builds({row.build_id for row in rows})}
    lines = lines_of(store, rows)
    places = {row.id: Path(row.directory) for row in history.directories(store, rows)}
    return [
        _signoff(line, builds.get(line.night.build_id), places[line.night.id]) for line in lines
    ]


def signoff_page(store: Store, night: Night) -> SignOffPage:
    """Return one sign-off, its evidence checked."""
    directory = Path(night.directory)
    (line,) = lines_of(store, [night])
    signoff = _signoff(line, store.build(night.build_id), directory)
    return SignOffPage(signoff, tuple(_bundle(directory, x) for x in signoff.decisions))


def evidence_file(night: Night, bundle: str) -> Path | None:
    """Return the page of a bundle of a night, or of the draft before it; None for none."""
    directory = Path(night.directory)
    if bundle == DRAFT:
        found = directory / "report" / HTML
        return found if found.is_file() else None
    names = {path.parent.name: path for path in directory.glob(f"{_BUNDLES}/{HTML}")}
    return names.get(bundle)


def _signoff(line: NightLine, build: Build | None, directory: Path) -> SignOff:
    decisions = [_decision(path) for path in directory.glob(f"{_BUNDLES}/{EVIDENCE}")]
    decisions.sort(key=lambda one: (len(one.bundle), one.bundle), reverse=True)
    draft = (directory / "report" / HTML).is_file()
    return SignOff(line, build, tuple(decisions), draft)


def _decision(path: Path) -> Decision:
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=256)
def _read(path: Path, _: int) -> Decision:
    """Read a decision; a bundle is read-only, so once is enough."""
    try:
        made: Any = json.loads(path.read_text(encoding="utf-8"))["decision"]
    except (OSError, ValueError, KeyError, TypeError):
        made = {}
    made = made if isinstance(made, dict) else {}
    texts = {name: str(made.get(name) or "") for name in ("choice", "who", "when", "reason")}
    return Decision(
        path.parent.name,
        **{**texts, "choice": texts["choice"] or "cannot be read"},
        signed_off=made.get("signed_off"),
        objection=str(made.get("objection") or ""),
    )


def _bundle(directory: Path, decision: Decision) -> Bundle:
    place = directory / decision.bundle
    try:
        return Bundle(decision, seal(place), tuple(verify(place)))
    except (NexmarkError, OSError) as error:
        return Bundle(decision, "", (f"{SUMS}: {error}",))


__all__ = [
    "DRAFT",
    "Bundle",
    "Decision",
    "SignOff",
    "SignOffPage",
    "evidence_file",
    "signoff_page",
    "signoffs_of",
]
