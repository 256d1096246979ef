"""The steps of a sign-off that a night lacks: preflight, question, evidence, decision.

    report >> question >> approval >> evidence >> decision >> run_state
    report >> stop_cluster >> run_state

The cluster is not kept while somebody thinks. A red verdict does not end the sign-off: the
question shows it. A person who approves a night that is red, or has a query bound by its source,
has to say why; Airflow's form cannot insist on a reason, so an approval of such a night without one
does not count (`Approval.objection`). `decision` gives the run its colour: green only if a person
has approved. The evidence is written before, whatever was decided.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException

from nexmark.config import paths
from nexmark.config.fields import Model
from nexmark.errors import NexmarkError
from nexmark.model import Mode, Value
from nexmark.night.night_plan import Night
from nexmark.night.night_progress import say
from nexmark.recording.night_records import results_of
from nexmark.tasks import current_night, failing
from nexmark.tasks.preflight import prepare_night

#: The XCom of the question with the Decision.
DECISION_KEY = "decision"


class Approval(Model):
    """A decision: by whom, when (UTC, ISO 8601) and why."""

    choice: Literal["approved", "rejected", "nobody decided"]
    who: str = ""
    when: str = ""
    reason: str = ""

    @classmethod
    def of(cls, event: Mapping[str, Any], approve: str) -> "Approval":
        """Return the decision in the event with which Airflow resumes the question.

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
        """Return why the build is not signed off; '' if it is."""
        by = f" by {self.who}" if self.who else ""
        why = f": {self.reason}" if self.reason else ""
        if self.choice != "approved":
            return f"{self.choice}{by}{why}"
        if red and not self.reason:
            needed = "which a red night needs; so does one bound by its source"
            return f"approved{by} without a reason, {needed}; clear `approval`"
        return ""


def _name(user: Any) -> str:
    """Return the name of the user who answered, and the id where that is another."""
    if not isinstance(user, Mapping):
        return str(user or "")
    name, number = str(user.get("name") or ""), str(user.get("id") or "")
    return name if number in ("", name) else f"{name} ({number})"


def signoff_preflight() -> None:
    """Do the preflight of a night with the params of a sign-off."""
    params = get_current_context()["params"]
    with failing(NexmarkError, AirflowFailException):
        asked = night_params(params)
    prepare_night(params["engine"], asked)
    night = current_night()
    if night.mode == Mode.PAIRED and not night.against:
        place = f"{night.engine.name}, workload {night.workload.name}, cluster {night.cluster.name}"
        remedy = "name the build to compare with, the last release say: pypi:4.2.1"
        raise AirflowFailException(f"against: nothing is accepted for {place}; {remedy}")


def night_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the params of the night that a sign-off measures; it has all queries."""
    compared = ("workload", "cluster", "against", "mode", "compatibility")
    measured = ("pairs", "budget_minutes", "batches", "verify_scale")
    asked = {name: params[name] for name in (*compared, *measured)}
    return {**asked, "candidate": params["build"], "queries": None}


def question() -> str:
    """Return the question as Markdown; write the evidence so far as well."""
    from nexmark.evidence.night_evidence import PENDING, night_evidence
    from nexmark.report.evidence_files import night_html, question_text

    night = current_night()
    draft = night.files.evidence
    with results_of(night) as opened, opened.at_one_moment() as store:
        so_far = night_evidence(store, store.night(night.name), PENDING)
    draft.parent.mkdir(parents=True, exist_ok=True)
    draft.write_text(night_html(so_far), encoding="utf-8")
    say(f"evidence so far: {draft}")
    return question_text(so_far, draft, _kept_in(night))


def evidence() -> dict[str, Any]:
    """Write the bundle, in the run directory and under `signoffs`; returns what came of it."""
    from dataclasses import replace

    from nexmark.evidence.night_evidence import night_evidence
    from nexmark.evidence.signoffs import SignOffDecision
    from nexmark.report.evidence_files import write_bundle

    try:
        night = current_night()
    except NexmarkError as error:
        raise AirflowFailException(f"no evidence, for the night did not begin: {error}") from None
    answer = get_current_context()["ti"].xcom_pull(task_ids="approval", key=DECISION_KEY)
    if not answer:
        problem = "no evidence, for nobody was asked, or the question was ended by hand"
        raise AirflowFailException(f"{problem}; see the first red task")
    decision = Approval.model_validate(answer)
    with results_of(night) as opened, opened.at_one_moment() as store:
        content = night_evidence(store, store.night(night.name))
        bound = any(row.value == Value.SOURCE_BOUND for row in content.report.rows)
        objection = decision.objection(content.report.failed or bound)
        said = decision.model_dump()
        made = SignOffDecision(**said, signed_off=not objection, objection=objection)
        content = replace(content, decision=made)
        bundle = write_bundle(night.files.signoff, _kept_in(night), content, store)
    say(f"evidence: {bundle.directory}")
    say(f"the same, to keep: {bundle.copy}")
    say(f"seal (SHA-256 of its SHA256SUMS): {bundle.seal}")
    return {"directory": str(bundle.directory), "seal": bundle.seal, "objection": objection}


def decision() -> None:
    """Fail unless a person has approved, naming who has not and why."""
    night = current_night()
    written = get_current_context()["ti"].xcom_pull(task_ids="evidence")
    kept = f"evidence: {written['directory']}"
    if why := written["objection"]:
        raise AirflowFailException(f"{night.candidate} is not signed off: {why}; {kept}")
    say(f"{night.candidate} is signed off; {kept}")
    say(f"to compare with it: nexmark accept --run '{night.name}' --reason 'signed off'")


def _kept_in(night: Night) -> Path:
    return paths.home() / "signoffs" / paths.safe_name(night.name)
