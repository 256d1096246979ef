"""Flame graphs of a query that has changed: the CPU time of both arms, and its changes."""
