"""The verb that records a night whose results database could not be written."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from nexmark.cli import shared_options as option
from nexmark.errors import NexmarkError
from nexmark.model import LATEST

if TYPE_CHECKING:
    from nexmark.night.night_plan import Night
    from nexmark.store import Store


def record(
    run: Annotated[
        str, typer.Option(help="The name of a kept run, a unique part of it, or latest.")
    ],
    engine: option.OfEngine = None,
    db: option.Database = None,
) -> int:
    """Record a night from its files, judge and report it.

    0 if it is green, 1 if it is red. Only what the results database lacks is recorded. A night that
    the database has whole stays as it is.
    """
    from nexmark.config import paths
    from nexmark.night.kept_nights import kept_night
    from nexmark.report.evidence_files import write_night
    from nexmark.report.table import report_text
    from nexmark.store import open_store
    from nexmark.store.connecting import INTERACTIVE_TIMEOUT_S

    option.check_latest(run, engine)
    night = kept_night(run, engine)
    if run == LATEST:
        option.on_stderr(f"latest: {night.name}")
    with open_store(db or paths.database_url(), patience_s=INTERACTIVE_TIMEOUT_S) as store:
        if not completed(night, store):
            option.on_stderr(f"{night.name}: is recorded and judged already; nothing has changed")
        directory = night.files.report
        try:
            made, evidence = write_night(directory, store, night.name)
        except OSError as error:
            raise NexmarkError(f"recorded, but the report cannot be written: {error}") from None
    for problem in evidence.problems:
        print(problem, file=sys.stderr)
    print(report_text(made))
    return 1 if made.failed else 0


def completed(night: "Night", store: "Store") -> bool:
    """Record what the database lacks of a night, and judge it; False if nothing was lacking.

    NexmarkError for a night that still runs, and for one that measured nothing.
    """
    from nexmark.judging import judge_night
    from nexmark.night.kept_nights import check_over
    from nexmark.recording.night_records import record_lacking

    check_over(night)
    recorded = record_lacking(night, store, option.on_stderr)
    judged = {row.query for row in store.verdicts(night.name)}
    if not recorded and judged.issuperset(night.queries):
        return False
    judge_night(night, store, at=store.night(night.name).started)
    return True
