"""Latency: events that are due at a rate, and the time until their rows are in the output topic."""
