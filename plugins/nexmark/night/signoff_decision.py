"""The decision of a person to sign a build off, or not, and why.

A person who approves a night that is red, or has a query bound by its source, has to say why.
Airflow's form cannot insist on a reason, so an approval of such a night without one does not count
(`Approval.objection`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from nexmark.config.fields import Model

#: The XCom of the question with the Decision.
DECISION_KEY = "decision"

Choice = Literal["approved", "rejected", "nobody decided"]


class Approval(Model):
    """A decision: by whom, when (UTC, ISO 8601) and why."""

    choice: Choice
    who: str = ""
    when: str = ""
    reason: str = ""

    @classmethod
    def of(cls, event: Mapping[str, Any], approve: str) -> Approval:
        """Returns the decision in the event with which Airflow resumes the question.

        `approve` is the name of the option that approves.
        """
        if "error" in event:
            return cls(
                choice="nobody decided",
                when=datetime.now(UTC).isoformat(),
                reason=str(event.get("error_type", event["error"])),
            )
        from nexmark.store.accepting import visible

        approved = approve in event["chosen_options"]
        when = event["responded_at"]
        return cls(
            choice="approved" if approved else "rejected",
            who=_name(event["responded_by_user"]),
            when=when.astimezone(UTC).isoformat() if isinstance(when, datetime) else str(when),
            reason=visible(str((event["params_input"] or {}).get("reason") or "").strip()),
        )

    def objection(self, red: bool) -> str:
        """Why the build is not signed off; '' if it is."""
        by = f" by {self.who}" if self.who else ""
        why = f": {self.reason}" if self.reason else ""
        if self.choice != "approved":
            return f"{self.choice}{by}{why}"
        if red and not self.reason:
            needed = "which a red night needs; so does one bound by its source"
            return f"approved{by} without a reason, {needed}; clear `approval`"
        return ""


def _name(user: Any) -> str:
    """The name of the user who answered, and the id where that is another."""
    if not isinstance(user, Mapping):
        return str(user or "")
    name, number = str(user.get("name") or ""), str(user.get("id") or "")
    return name if number in ("", name) else f"{name} ({number})"
