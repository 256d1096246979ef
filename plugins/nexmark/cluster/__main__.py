"""Checks a cluster: `python -m nexmark.cluster check NAME`, which is `make check-cluster`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from nexmark.airflow_home import airflow_environment, prepare
from nexmark.cluster import open_cluster
from nexmark.config import load, paths, suggest
from nexmark.errors import NexmarkError


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table of the hosts and what is wrong with them; 0 if a night can be run."""
    parser = argparse.ArgumentParser(prog="nexmark.cluster", description=__doc__)
    parser.add_argument("command", choices=["check"])
    parser.add_argument("cluster", help="a name in include/conf/clusters.yaml")
    name = parser.parse_args(argv).cluster
    try:
        config = load()
        if name not in config.clusters:
            known = suggest(name, config.clusters)
            raise NexmarkError(f"cluster: unknown cluster {name!r}; {known}")
        environment = airflow_environment(config)
        prepare(environment)
        os.environ.update(environment)  # the connections are Airflow's
        problems = open_cluster(config.clusters[name], paths.home()).problems(print)
    except NexmarkError as error:
        print(error, file=sys.stderr)
        return 1
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"cluster {name}: " + (f"{len(problems)} problems" if problems else "ready"))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
