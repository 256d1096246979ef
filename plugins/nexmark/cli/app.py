"""The command `nexmark`: its verbs, and how each of them ends."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import typer
from typer.exceptions import TyperException

from nexmark.cli import (
    acceptance,
    job_verbs,
    kafka_verbs,
    laboratory,
    machine,
    measuring_verbs,
    nights,
    prune_verb,
    record_verb,
    recovery_verbs,
    results,
    site_verb,
)
from nexmark.cli.compat import compat
from nexmark.cli.help_groups import GroupedVerbs
from nexmark.cli.shared_options import PASSED_ON
from nexmark.terminal import COULD_NOT_RUN, INTERRUPTED, run_command

app = typer.Typer(
    name="nexmark",
    cls=GroupedVerbs,
    help="Did last night's Spark build get slower, or wrong, on streaming work?",
    epilog="Exit codes: 0 green; 1 red; 2 could not be run, or a typo; 130 interrupted.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
#: The verbs by the group of the help that lists them.
_VERBS: Mapping[str, Sequence[Callable[..., Any] | typer.Typer]] = {
    "Nights": (
        nights.run,
        nights.build,
        nights.soak,
        nights.backfill,
        nights.bisect,
        nights.rollout,
    ),
    "Results": (
        results.nights,
        results.show,
        results.history,
        results.report,
        results.verify,
        results.export,
        site_verb.site,
        results.replay,
        results.validate,
        record_verb.record,
        prune_verb.prune,
    ),
    "Baselines": (acceptance.accept, acceptance.withdraw, acceptance.acks),
    "Questions that need no night": (
        job_verbs.job,
        compat,
        measuring_verbs.experiment,
        measuring_verbs.latency,
        recovery_verbs.recovery,
    ),
    "Airflow, clusters, Kafka": (machine.ui, machine.cluster, kafka_verbs.kafka),
    laboratory.LABORATORY: (
        laboratory.bench,
        laboratory.recovery_damage,
        laboratory.recovery_sizes,
    ),
}
_PASSED_ON = (results.replay, laboratory.bench)
for group, verbs in _VERBS.items():
    for verb in verbs:
        if isinstance(verb, typer.Typer):
            app.add_typer(verb, rich_help_panel=group)
        else:
            settings = PASSED_ON if verb in _PASSED_ON else None
            app.command(rich_help_panel=group, context_settings=settings)(verb)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a verb.

    Returns:
        Its exit code: 0 green, 1 red, 2 if it could not be run, after one line on stderr that says
        why; 130 if interrupted. SIGTERM interrupts as Ctrl-C does.
    """
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    return run_command(partial(_run, list(sys.argv[1:] if arguments is None else arguments)))


def _run(arguments: list[str]) -> int:
    try:
        return int(app(arguments, prog_name="nexmark", standalone_mode=False) or 0)
    except typer.Abort:
        return INTERRUPTED
    except SystemExit as ended:  # of argparse, by a verb that passes its arguments on
        return int(ended.code or 0)
    except TyperException as error:  # names the problem of an argument
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "nexmark"
        message = " ".join(error.format_message().split()).rstrip(".")
        print(f"{command}: {message}; see --help", file=sys.stderr)
        return COULD_NOT_RUN
