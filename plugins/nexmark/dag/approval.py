"""The question to a person: sign the build off, or not, and why."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param

from nexmark.night.signoff_decision import DECISION_KEY, Approval

if TYPE_CHECKING:
    from airflow.sdk import Context


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
        context["ti"].xcom_push(
            key=DECISION_KEY, value=Approval.of(event, self.APPROVE).model_dump()
        )
        return super().execute_complete(context, event)
