"""Measurements that answer one question once; no night needs them.

The brokers' own benchmark, damaged checkpoints, restarts by the size of the state.
"""
