"""The test cluster on this machine: ``python -m nexmark.cluster.namespaces up|down|status``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from nexmark import config
from nexmark.cluster import namespaces
from nexmark.config import SshCluster, paths
from nexmark.errors import NexmarkError

#: The name of the test cluster in clusters.yaml.
CLUSTER = "namespaces"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; 0, 1 after a one-line error on stderr, 2 for a wrong argument."""
    parser = argparse.ArgumentParser(prog="nexmark.cluster.namespaces", description=__doc__)
    parser.add_argument("command", choices=["up", "down", "status"])
    command = parser.parse_args(argv).command
    try:
        cluster = _cluster()
        if command == "up":
            namespaces.up(cluster, paths.home())
        elif command == "down":
            namespaces.down(cluster, paths.home())
        if command != "down":
            print("\n".join(namespaces.status(cluster, paths.home())))
    except NexmarkError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _cluster() -> SshCluster:
    cluster = config.load().clusters.get(CLUSTER)
    if not isinstance(cluster, SshCluster):
        raise NexmarkError(
            f"{paths.conf_dir()}/clusters.yaml has no cluster {CLUSTER} of kind ssh; "
            "take the one this package came with"
        )
    return cluster


if __name__ == "__main__":
    sys.exit(main())
