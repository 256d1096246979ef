"""What other processes do to a database, from a line on stdin on.

``python -m tests.unit.store.writers WHAT URL NUMBER``
"""

from __future__ import annotations

import sys
import time

from nexmark.store import Store, open_store
from nexmark.store.table_rows import RepetitionRow
from tests.unit.store.store_builder import night, repetition, series


def write(store: Store, number: int) -> None:
    """Record what nobody else does, and what everybody does, as retried tasks may at once."""
    store.record_night(night())
    for _ in range(3):
        for query, own in (("q5", number), ("q0", 9)):
            store.record_repetition(repetition(night().run, query, own, series=[series()]))


def stop_halfway(store: Store, number: int) -> None:
    """Stop in the middle of a transaction and wait to be killed."""
    run = night().run
    with store._writing() as session:
        session.query(RepetitionRow).filter(RepetitionRow.query == "q0").delete()
        of = {"night_id": run, "query": "q5", "arm": "candidate", "number": number}
        session.add(RepetitionRow(**of, status="ok", recorded=night().started))
        session.flush()
        print("halfway", flush=True)
        time.sleep(600)


if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    with open_store(sys.argv[2]) as opened:
        globals()[sys.argv[1]](opened, int(sys.argv[3]))
