"""Print the table of a recorded run again, or check the evidence of a sign-off.

python -m nexmark.report --run RUN [--out DIR]
python -m nexmark.report verify DIR [--seal SHA256]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from nexmark.config import paths
from nexmark.errors import NexmarkError
from nexmark.report import make_report, write_report
from nexmark.report.bundle import seal, verify
from nexmark.store import open_store


def main(argv: Sequence[str] | None = None) -> int:
    """Print the report; 0, 1 after a one-line error on stderr, 2 for a wrong argument."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments[:1] == ["verify"]:
        return _verify(arguments[1:])
    parser = _Parser(prog="nexmark.report", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--run", required=True, help="its name, or any part of it that is unique")
    parser.add_argument("--out", type=Path, help="also write table, CSV and JSON to this directory")
    parser.add_argument("--db", help="database URL (default: $NEXMARK_DB, else under .nexmark)")
    options = parser.parse_args(arguments)
    try:
        with open_store(options.db or paths.database_url()) as store:
            if options.out is None:
                report = make_report(store, options.run)
            else:
                report = write_report(options.out, store, options.run)
    except NexmarkError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"cannot write the report: {error}; give another --out", file=sys.stderr)
        return 1
    print(report.text())
    return 0


def _verify(arguments: Sequence[str]) -> int:
    """Say whether a bundle is as it was written; 0 if it is, 1 if not."""
    parser = _Parser(prog="nexmark.report verify", description="Check the evidence of a sign-off")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seal", help="what the task `evidence` logged: it must be the same")
    options = parser.parse_args(arguments)
    try:
        problems = verify(options.directory)
        found = seal(options.directory)
    except NexmarkError as error:
        print(error, file=sys.stderr)
        return 1
    if options.seal and options.seal.lower() != found:
        problems.append(f"seal: is {found}, not the one given: the whole bundle was replaced")
    for problem in problems:
        print(f"{options.directory}: {problem}", file=sys.stderr)
    if not problems:
        print(f"{options.directory}: unchanged; seal {found}")
    return 1 if problems else 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see --help\n")


if __name__ == "__main__":
    sys.exit(main())
