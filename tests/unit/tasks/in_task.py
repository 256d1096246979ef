from __future__ import annotations

from types import SimpleNamespace

import pytest

from nexmark.night.night_plan import Night


def in_task_of(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the code runs as in a task of this night, whose plan is this very object."""
    run = SimpleNamespace(dag_id=night.dag_id, run_id=night.run_id, triggering_user_name=None)
    monkeypatch.setattr("nexmark.tasks.get_current_context", lambda: {"dag_run": run})
    monkeypatch.setattr(Night, "read", lambda dag_id, run_id: night)
