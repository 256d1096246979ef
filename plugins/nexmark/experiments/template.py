"""The commented entry of a new experiment, which can be run as it is."""

from __future__ import annotations

_TEMPLATE = """\
  {name}:
    question: What does a shuffle in more partitions cost?   # one sentence
    queries: [q5]           # q0 to q23, or of nexmark_jobs/experiments
    sizes: [20_000, 100_000]  # events per micro-batch; the gain is measured at each
    # batches: 5            # micro-batches of a run
    # warmup_batches: 2     # of these do not count
    # tps: 10_000           # events per second of event time
    # source: generated     # or json, or parquet: files of the same events
    arms:                   # the others are compared with the first
      before: {{}}            # no difference
      after:
        conf: {{spark.sql.shuffle.partitions: 8}}
        # formulation: NAME   # of the query
        # rows_per_batch: 50_000
        # memory: 2g
        # build: {{pypi: 4.2.1}}
    # text: {{gain: 10, what: what a published text reports}}
"""


def entry_of(name: str) -> str:
    """Return the entry, as it stands below `experiments:`."""
    return _TEMPLATE.format(name=name)
