"""Read the event streams of a query job: generated, from files, or from Kafka."""

CONSUMER = {"max.poll.records": "5000", "fetch.min.bytes": "65536"}
"""The consumer settings with which queries read Kafka; `nexmark kafka bench` uses the same."""
