"""Before the verdicts: do running queries survive the change from the baseline to the candidate?"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from nexmark.errors import NexmarkError
from nexmark.night.night_progress import say
from nexmark.night.plan import Deployments, Night
from nexmark.reason import reason_of
from nexmark.tasks import current_night, results
from nexmark.tasks.recording import compatibility_kept, keep_compatibility
from nexmark_jobs.host.whole_files import write_whole

if TYPE_CHECKING:
    from nexmark.compatibility.results import Compatibility
    from nexmark.compatibility.upgrade import Upgrade
    from nexmark.store.table_rows import CompatibilityRow

_UNFINISHED = "the check did not end; clear the task compatibility"


def compatibility() -> None:
    """Check and record it; fails if a query would not survive.

    A check that does not end counts as not known, which is red.
    """
    from nexmark.compatibility.results import as_json, matrix
    from nexmark.compatibility.upgrade import upgrades, why_not

    night = current_night()
    deployments = Deployments.read(night)
    if reason := why_not(night, deployments):
        say(f"compatibility: not checked: {reason}")
        raise AirflowSkipException(reason)
    planned = list(upgrades(night, deployments))
    records = {x.query: x for one in planned for x in not_known(one, _UNFINISHED)}
    found: list[Compatibility] = []
    _record(night, list(records.values()))
    for one in planned:
        versions = f"{one.baseline.spark_version} to {one.candidate.spark_version}"
        say(f"compatibility: {', '.join(one.queries)} from Spark {versions} and back")
        try:
            checked = one.check(night, say)
            made = records_of(one.baseline.build, checked)
            found += checked
        except (NexmarkError, OSError) as error:  # Spark does not start, the disk is full
            made = not_known(one, reason_of(error))
        records = {query: x for query, x in records.items() if query not in one.queries}
        records |= {x.query: x for x in made}
    write_whole(night.files.compatibility, json.dumps(as_json(found), indent=1) + "\n")
    _record(night, list(records.values()))
    if found:
        say(matrix(found))
    if red := [x for x in records.values() if x.red]:
        for x in red:
            plans = {"baseline": x.baseline_plan, "candidate": x.candidate_plan}
            told = (f"{x.query}, plan of the {arm}:\n{plan or '-'}" for arm, plan in plans.items())
            say("\n".join(told))
        named = " | ".join(f"{x.query} {x.outcome}: {x.reason}" for x in red)
        raise AirflowFailException(f"running queries do not survive: {named}")


def _record(night: Night, rows: "list[CompatibilityRow]") -> None:
    """Keep what is known, and record it; a database that fails does not end a check of minutes.

    `judge` records what is kept.
    """
    from nexmark.store import StoreError

    keep_compatibility(night, rows)
    try:
        with results() as store:
            store.record_compatibility(night.name, compatibility_kept(night))
    except StoreError as error:
        say(f"compatibility: not recorded yet: {error}")


def records_of(baseline: str, found: "Sequence[Compatibility]") -> "list[CompatibilityRow]":
    """Return the rows of comparisons with a build, for the results database."""
    from nexmark.compatibility.results import RED, carried
    from nexmark.store.table_rows import CompatibilityRow

    return [
        CompatibilityRow(
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


def not_known(one: "Upgrade", reason: str) -> "list[CompatibilityRow]":
    """Rows of queries that were not checked."""
    from nexmark.compatibility.results import UpgradeClass
    from nexmark.store.table_rows import CompatibilityRow

    columns = {"outcome": UpgradeClass.UNKNOWN, "red": True, "reason": reason}
    return [
        CompatibilityRow(query=query, baseline_build=one.baseline.build, **columns)
        for query in one.queries
    ]
