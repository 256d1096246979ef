"""Measure latency: events are due at a rate, and each waits until its row is in a topic."""
