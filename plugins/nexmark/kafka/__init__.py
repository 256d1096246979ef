"""Kafka beside a cluster: a broker of our own, its jars, topics and their filling."""
