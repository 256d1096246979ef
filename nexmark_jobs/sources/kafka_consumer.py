"""The settings with which queries read Kafka, without pyspark: the harness compares with them."""

from __future__ import annotations

CONSUMER = {"max.poll.records": "5000", "fetch.min.bytes": "65536"}
