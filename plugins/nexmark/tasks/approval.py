"""The question to a person: sign the build off, or not, and why.

A person who approves a red night has to say why; Airflow's form cannot insist on that, so an
approval of a red night without a reason does not count (`Decision.objection`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param

from nexmark.config.fields import Model

if TYPE_CHECKING:
    from airflow.sdk import Context

#: The XCom of the question with the Decision.
DECISION_KEY = "decision"

Choice = Literal["approved", "rejected", "nobody decided"]


class Decision(Model):
    """What was decided, by whom, when (UTC, ISO 8601) and why."""

    choice: Choice
    who: str = ""
    when: str = ""
    reason: str = ""

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Decision:
        """The decision in what Airflow resumes the question with."""
        if "error" in event:
            return cls(
                choice="nobody decided",
                when=datetime.now(UTC).isoformat(),
                reason=str(event.get("error_type", event["error"])),
            )
        approved = ApprovalOperator.APPROVE in event["chosen_options"]
        when = event["responded_at"]
        return cls(
            choice="approved" if approved else "rejected",
            who=_name(event["responded_by_user"]),
            when=when.astimezone(UTC).isoformat() if isinstance(when, datetime) else str(when),
            reason=str((event["params_input"] or {}).get("reason") or "").strip(),
        )

    def objection(self, red: bool) -> str:
        """Why the build is not signed off; '' if it is."""
        by = f" by {self.who}" if self.who else ""
        why = f": {self.reason}" if self.reason else ""
        if self.choice != "approved":
            return f"{self.choice}{by}{why}"
        if red and not self.reason:
            return f"approved{by} without a reason, which a red night needs; clear `approval`"
        return ""


class SignOffOperator(ApprovalOperator):
    """Asks to approve or reject, for as many days as the param `timeout_days` says.

    Whatever the answer is, it goes into an XCom first; Reject and no answer then fail the task.
    """

    def __init__(self, **options: Any) -> None:
        """Ask with a field for the reason."""
        reason = Param(
            "",
            type=["null", "string"],
            maxLength=2000,
            title="Reason",
            description="Why; to approve a red night it has to be given.",
        )
        super().__init__(fail_on_reject=True, params={"reason": reason}, **options)

    def execute(self, context: Context) -> Any:
        """Ask, and wait without a worker."""
        self.response_timeout = timedelta(days=float(context["params"]["timeout_days"]))
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Keep the decision, then end as it says."""
        context["ti"].xcom_push(key=DECISION_KEY, value=Decision.of(event).model_dump())
        return super().execute_complete(context, event)


def _name(user: Any) -> str:
    """The name of the user who answered, and the id where that is another."""
    if not isinstance(user, Mapping):
        return str(user or "")
    name, number = str(user.get("name") or ""), str(user.get("id") or "")
    return name if number in ("", name) else f"{name} ({number})"


__all__ = ["DECISION_KEY", "Decision", "SignOffOperator"]
