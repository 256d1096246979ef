"""Test whether the gate finds real causes on real Spark: `nexmark bench detection`."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of `bench.detection.__main__`; return the exit code."""
    from bench.detection.__main__ import main as run

    return run(arguments)
