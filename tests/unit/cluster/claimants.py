"""A night that claims a cluster at a given moment: `claimants.py HOME`, a process of its own.

Reads lines `ROUND TIME` and answers each with `claimed`, or with why not. The cluster is kept until
the next line.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from nexmark.cluster import ClusterError, Lease, LocalCluster, identify
from nexmark.config import EmbeddedCluster, load


def main() -> None:
    config = load().clusters["local"]
    assert isinstance(config, EmbeddedCluster)
    cluster = LocalCluster(config, Path(sys.argv[1]))
    mine = Lease(f"night_{os.getpid()}", "manual__1", identify(os.getpid()))
    print("ready", flush=True)
    for line in sys.stdin:
        if cluster.holder() == mine:
            cluster.release()
            print("released", flush=True)
            continue
        moment = float(line)
        while time.time() < moment:
            pass
        try:
            cluster.reap(mine)
            print("claimed", flush=True)
        except ClusterError as error:
            print(error, flush=True)


if __name__ == "__main__":
    main()
