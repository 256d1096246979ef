"""Does the gate find real regressions? `nexmark bench detection`: real causes on real Spark."""

from __future__ import annotations

from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """See `bench.detection.__main__`."""
    from bench.detection.__main__ import main as run

    return run(arguments)
