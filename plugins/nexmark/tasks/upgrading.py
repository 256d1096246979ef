"""The task before the verdicts: do running queries survive the change to the candidate?"""

from functools import partial

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from nexmark.night.deployments import Deployments
from nexmark.night.night_progress import say
from nexmark.recording.night_records import record_upgrades
from nexmark.tasks import current_night


def compatibility() -> None:
    """Check and record it; fail, with the plans in the log, if a query would not survive."""
    from nexmark.compatibility.upgrade import check_upgrades, why_not

    night = current_night()
    deployments = Deployments.read(night)
    if reason := why_not(night, deployments):
        say(f"compatibility: not checked: {reason}")
        raise AirflowSkipException(reason)
    outcomes = check_upgrades(night, deployments, partial(record_upgrades, night), say)
    if red := [outcome for outcome in outcomes if outcome.red]:
        for each in red:
            say(
                f"{each.query}, plan of the baseline:\n{each.baseline_plan or '-'}\n"
                f"{each.query}, plan of the candidate:\n{each.candidate_plan or '-'}"
            )
        named = " | ".join(f"{each.query} {each.outcome}: {each.reason}" for each in red)
        raise AirflowFailException(f"running queries do not survive: {named}")
