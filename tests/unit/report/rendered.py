"""The evidence of a run as it is written: as JSON and as a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nexmark.evidence.night_evidence import NightEvidence, night_evidence
from nexmark.evidence.signoffs import SignOffDecision
from nexmark.report.evidence_json import night_json
from nexmark.store import Store


def evidence(store: Store, run: str, decision: Mapping[str, Any] | None = None) -> NightEvidence:
    """The evidence of a night, or of a sign-off with a decision."""
    made = None if decision is None else SignOffDecision(**decision)
    return night_evidence(store, store.find_run(run), made)


def collect(store: Store, run: str, decision: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The same as JSON."""
    return night_json(evidence(store, run, decision))
