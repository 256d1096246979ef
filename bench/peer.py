"""List the figures of nexmark-flink, for ``bench.queries``: K events per CPU-second.

They are of nexmark-flink 6b3646c on Flink 2.0.1 with 2 slots and heap state, on a machine with 2
cores and 24 GB, one run each. It cannot run q6; q23 was not measured. Its figures have only the CPU
of its TaskManager. The JobManager, which plans, is left out; our figures include our driver.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """The figures of a query as shipped, and with object reuse (None if it was not measured)."""

    shipped: int
    reuse: int | None


PEER_IS = (
    "5 M events, measured 2026-11-23 in turns with this package "
    "(q1 q2 q7 q10 q11 q13-15 q19 q21: before, on another day)"
)
"""Size and date of the figures, for the head of the table."""

PEER_EARLIER = {
    "q1": Peer(576, 709),
    "q2": Peer(644, 1176),
    "q7": Peer(104, 146),
    "q10": Peer(225, 308),
    "q11": Peer(285, 400),
    "q13": Peer(405, 939),
    "q14": Peer(529, 1099),
    "q15": Peer(177, 290),
    "q19": Peer(156, 247),
    "q21": Peer(214, 314),
}
"""5 M events as shipped, 2 M with object reuse, both on another day than ours."""

PEER = PEER_EARLIER | {
    "q0": Peer(683, 1678),
    "q3": Peer(813, 2370),
    "q4": Peer(158, 232),
    "q5": Peer(305, 379),
    "q8": Peer(557, 1582),
    "q9": Peer(96, 113),
    "q12": Peer(575, 525),
    "q16": Peer(40, 36),
    "q17": Peer(453, 890),
    "q18": Peer(213, 297),
    "q20": Peer(165, 211),
    "q22": Peer(684, 2513),
}
"""5 M events (q16: 1 M) at tps 10 M; but for ``PEER_EARLIER`` measured 2026-11-23, load 2 to 13."""

PEER_LARGE = {"q0": Peer(590, 1492), "q3": Peer(472, 1412), "q8": Peer(464, 828)}
"""30 M events at tps 10 M, measured 2026-11-23 on a quiet machine; no other query was."""
