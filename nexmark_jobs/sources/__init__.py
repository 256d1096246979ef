"""Where the event streams of a query job come from."""

CONSUMER = {"max.poll.records": "5000", "fetch.min.bytes": "65536"}
"""The settings with which queries read Kafka: the harness compares with them, without pyspark."""
