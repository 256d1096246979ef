"""What was answered is kept before the question ends; no notifier keeps it from being asked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.providers.standard.exceptions import HITLRejectException, HITLTimeoutError
from airflow.providers.standard.operators import hitl
from airflow.sdk import BaseNotifier
from airflow.sdk.exceptions import TaskAwaitingInput

from nexmark.dag.notifying import careful
from nexmark.dag.signoff import DECISION_KEY, SignOffOperator


class Instance:
    """A task instance that keeps what is pushed."""

    id = "1"

    def __init__(self) -> None:
        self.pushed: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value


class Broken(BaseNotifier):
    def notify(self, context: Any) -> None:
        raise OSError("no mail today")

    def __call__(self, *arguments: Any) -> None:
        raise OSError("no mail today")


def ask(**options: Any) -> SignOffOperator:
    return SignOffOperator(task_id="approval", subject="?", body="!", **options)


def context(**params: Any) -> Any:
    instance = Instance()
    return {"ti": instance, "task_instance": instance, "params": params}


def event(option: str, reason: str = "because") -> dict[str, Any]:
    return {
        "chosen_options": [option],
        "params_input": {"reason": reason},
        "responded_at": datetime(2026, 11, 21, 9, tzinfo=UTC),
        "responded_by_user": {"id": "admin", "name": "admin"},
    }


def test_an_approval_is_kept_and_ends_well() -> None:
    given = context()
    ask().execute_complete(given, event("Approve"))
    assert given["ti"].pushed[DECISION_KEY] == {
        "choice": "approved",
        "who": "admin",
        "when": "2026-11-21T09:00:00+00:00",
        "reason": "because",
    }


def test_a_reason_hides_no_character() -> None:
    given = context()
    ask().execute_complete(given, event("Approve", "fine\n\u202ereversed\x1b[2J"))
    reason = given["ti"].pushed[DECISION_KEY]["reason"]
    assert reason == "fine\n<U+202E>reversed<U+001B>[2J"


def test_a_rejection_is_kept_before_it_fails() -> None:
    given = context()
    with pytest.raises(HITLRejectException):
        ask().execute_complete(given, event("Reject"))
    assert given["ti"].pushed[DECISION_KEY]["choice"] == "rejected"


def test_no_answer_is_kept_before_it_fails() -> None:
    given = context()
    with pytest.raises(HITLTimeoutError):
        ask().execute_complete(given, {"error": "no response", "error_type": "timeout"})
    assert given["ti"].pushed[DECISION_KEY]["choice"] == "nobody decided"


def test_the_person_is_asked_for_as_long_as_the_param_says_whatever_a_notifier_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **detail: asked.append(detail))
    with pytest.raises(TaskAwaitingInput) as waiting:
        ask(notifiers=[careful(Broken())]).execute(context(timeout_days=2))
    assert waiting.value.timeout == timedelta(days=2)
    assert asked[0]["options"] == ["Approve", "Reject"]
    assert set(asked[0]["params"]) == {"reason"}
