"""Before the verdicts: do running queries survive the change from the baseline to the candidate?"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from nexmark.config import paths
from nexmark.night.night_progress import say
from nexmark.night.plan import Deployments, Night
from nexmark.tasks import current_night, results
from nexmark_jobs.host.leases import write_whole

if TYPE_CHECKING:
    from nexmark.compatibility.classes import Compatibility
    from nexmark.compatibility.upgrade import Upgrade
    from nexmark.store import CompatibilityRecord

_UNFINISHED = "the check did not end; clear the task compatibility"


def compatibility() -> None:
    """Check and record it; fails if a query would not survive.

    A check that does not end counts as not known, which is red.
    """
    from nexmark.compatibility.classes import as_json, matrix
    from nexmark.compatibility.upgrade import upgrades, why_not

    night = current_night()
    deployments = Deployments.read(night)
    if reason := why_not(night, deployments):
        say(f"compatibility: not checked: {reason}")
        raise AirflowSkipException(reason)
    planned = list(upgrades(night, deployments))
    records = {x.query: x for one in planned for x in not_known(one, _UNFINISHED)}
    found: list[Compatibility] = []
    with results() as store:
        store.record_compatibility(night.name, list(records.values()))
    for one in planned:
        checked, made = checked_upgrade(night, one)
        found += checked
        records = {query: x for query, x in records.items() if query not in one.queries}
        records |= {x.query: x for x in made}
    told = json.dumps(as_json(found), indent=1) + "\n"
    write_whole(night.directory / paths.COMPATIBILITY, told)
    with results() as store:
        store.record_compatibility(night.name, list(records.values()))
    if found:
        say(matrix(found))
    if red := [x for x in records.values() if x.red]:
        for record in red:
            say(plans_of(record))
        named = " | ".join(f"{x.query} {x.outcome}: {x.reason}" for x in red)
        raise AirflowFailException(f"running queries do not survive: {named}")


def checked_upgrade(
    night: Night, one: "Upgrade"
) -> "tuple[list[Compatibility], list[CompatibilityRecord]]":
    """Return the findings on queries and their records; not known where Spark does not start."""
    from nexmark.compatibility.application import ApplicationError

    versions = f"{one.baseline.spark_version} to {one.candidate.spark_version}"
    say(f"compatibility: {', '.join(one.queries)} from Spark {versions} and back")
    try:
        found = one.check(night, say)
    except ApplicationError as error:
        return [], not_known(one, str(error))
    return found, records_of(one.baseline.build, found)


def records_of(baseline: str, found: "Sequence[Compatibility]") -> "list[CompatibilityRecord]":
    """Return the records of comparisons with a build, for the results database."""
    from nexmark.compatibility.classes import RED, carried
    from nexmark.store import CompatibilityRecord

    return [
        CompatibilityRecord(
            query=each.case.query,
            baseline_build=baseline,
            outcome=str(each.class_),
            red=each.class_ in RED,
            reason=each.reason,
            plans=str(each.difference.change) if each.difference else "-",
            forward=str(each.forward or "-"),
            backward=str(each.backward or "-"),
            checkpoint=carried(each),
            baseline_plan=each.plans[0].text if each.plans[0] else None,
            candidate_plan=each.plans[1].text if each.plans[1] else None,
        )
        for each in found
    ]


def not_known(one: "Upgrade", reason: str) -> "list[CompatibilityRecord]":
    """Records of queries that were not checked."""
    from nexmark.compatibility.classes import Class
    from nexmark.store import CompatibilityRecord

    return [
        CompatibilityRecord(query, one.baseline.build, Class.UNKNOWN, True, reason)
        for query in one.queries
    ]


def plans_of(record: "CompatibilityRecord") -> str:
    """Both plans of a query, for the log."""
    plans = (("baseline", record.baseline_plan), ("candidate", record.candidate_plan))
    return "\n".join(f"{record.query}, plan of the {arm}:\n{plan or '-'}" for arm, plan in plans)
