"""Which timed repetitions produced the right rows.

Every repetition reports the events it read, the rows it put out and an order-free digest of them.

- All repetitions must have read all events.
- *Append* queries put every row of the result out once, so the digest does not depend on batches:
  where the verification run read the same events (workload `smoke`), the digest must be the one
  of the verified result, so that the timed rows are proven right to the row. At larger
  sizes it must be the digest stored with the accepted baseline of the same events, if there is one.
- *Update* queries put a row out again whenever it changes, so the digest depends on the batches
  too: it must equal the digest of the accepted baseline of the same events and batches, if any.
- In every case all repetitions must agree. Where there is nothing else to go by, the digest that
  more than half of them have counts as right; without a majority none of them counts as right.
- Without a digest (q12, whose windows use processing time) only the events are checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

_Key = TypeVar("_Key")


@dataclass(frozen=True)
class Produced:
    """The input and output of one application; `digest` is None where there is none."""

    input_rows: int
    output_rows: int
    digest: str | None


@dataclass(frozen=True)
class Expected:
    """The right digest and row count, and where they are from, for messages."""

    output_rows: int
    digest: str
    origin: str


def faults(
    events: int, produced: Mapping[_Key, Produced], expected: Expected | None
) -> dict[_Key, str]:
    """Return the problem of each wrong repetition in one line, by its key.

    `events` is the number of events of the workload; `expected` None where nothing is known.
    """
    found = {
        key: f"read {each.input_rows} of {events} events"
        for key, each in produced.items()
        if each.input_rows != events
    }
    whole = {n: p for n, p in produced.items() if n not in found and p.digest is not None}
    if expected is None:
        expected = _majority(whole)
        if expected is None:
            digests = ", ".join(sorted({str(p.digest) for p in whole.values()}))
            return found | dict.fromkeys(whole, f"the repetitions disagree: digests {digests}")
    for key, each in whole.items():
        if (each.digest, each.output_rows) != (expected.digest, expected.output_rows):
            found[key] = (
                f"put out {each.output_rows} rows with digest {each.digest}, but {expected.origin} "
                f"has {expected.output_rows} rows with digest {expected.digest}"
            )
    return found


def _majority(produced: Mapping[_Key, Produced]) -> Expected | None:
    counts = Counter((p.digest, p.output_rows) for p in produced.values())
    if not counts:
        return None
    (digest, rows), count = counts.most_common(1)[0]
    if 2 * count <= len(produced):
        return None
    return Expected(rows, str(digest), "most repetitions' result")
