"""Judge stored nights again: ``python -m nexmark.verdict --nights nights.csv [--gate gate.yaml]``.

Prints the verdicts as CSV, the nights in the order of the file, each judged with only the earlier
ones as history; stderr says where dates in their names tell another order.
"""

import argparse
import csv
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from nexmark.config import ConfigError
from nexmark.config.load import load_gate
from nexmark.model import GROWTH
from nexmark.verdict.named_dates import other_order
from nexmark.verdict.nightly import replay
from nexmark.verdict.stored_nights import MalformedError, quoted, read_nights, write_verdicts

_NOT_SORTED = (
    "the nights are judged in the order of the file, where {} is before {}; "
    "sort the rows by time if that is not the order in which they were measured"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 0 when the nights were judged, 2 after a one-line error on stderr."""
    parser = _Parser(prog="nexmark.verdict", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--nights", type=_file, required=True, help="CSV of measurements")
    parser.add_argument("--gate", type=Path, help="settings (default: gate.yaml of include/conf)")
    options = parser.parse_args(argv)
    try:
        rules = load_gate(options.gate)
        with options.nights.open(encoding="utf-8", newline="") as lines:
            nights = read_nights(lines)
        measured = {one.metric for night in nights for one in night.measured}
        for metric in {rules.paced_metric, rules.recovery_metric} & measured:
            rules = rules.model_copy(update={"metric": metric})
        if any(night.aged for night in nights):
            rules = rules.model_copy(update={"metric": GROWTH})
    except MalformedError as error:
        return _refuse(f"{options.nights}:{error.line}: {error}")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return _refuse(f"{options.nights}: cannot be read: {reason}")
    except ConfigError as error:
        return _refuse(str(error))
    if turned := other_order([night.name for night in nights]):
        print(f"{options.nights}: {_NOT_SORTED.format(*map(quoted, turned))}", file=sys.stderr)
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name may have letters that it cannot show
        sys.stdout.reconfigure(errors="backslashreplace")
    table = csv.writer(sys.stdout, lineterminator="\n")
    try:
        verdicts = (verdict for night in replay(nights, rules) for verdict in night)
        table.writerows(write_verdicts(verdicts))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _refuse(problem: str) -> int:
    print(problem, file=sys.stderr)
    return 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see --help\n")


def _file(text: str) -> Path:
    if not text.strip():
        raise argparse.ArgumentTypeError("which file? name a CSV of measurements")
    return Path(text)


if __name__ == "__main__":
    sys.exit(main())
