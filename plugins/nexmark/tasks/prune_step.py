"""The task that deletes what is old."""

from datetime import UTC, datetime

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from nexmark.config import load
from nexmark.errors import NexmarkError
from nexmark.night.night_progress import say
from nexmark.recording.night_records import results
from nexmark.tasks import failing, given_params


def prune() -> None:
    """Delete what `retention.yaml` does not keep, and log the table of it; fail if some stayed."""
    from nexmark.retention.prune_table import prune_table
    from nexmark.retention.pruning import plan
    from nexmark.retention.pruning import prune as pruned

    problems: tuple[str, ...] = ()
    with failing(NexmarkError, AirflowFailException), results() as store:
        config = load()
        if given_params(get_current_context())["dry_run"]:
            decisions = plan(config, store, datetime.now(UTC))
        else:
            done = pruned(config, store, say)
            decisions, problems = list(done.decisions), done.problems
    for line in prune_table(decisions).splitlines():
        say(line)
    if problems:
        raise AirflowException(" | ".join(problems))
