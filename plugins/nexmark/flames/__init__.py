"""Flame graphs of a suspect: the CPU time of both arms, and its changes."""
