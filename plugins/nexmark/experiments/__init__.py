"""Experiments: the arms of `include/conf/experiments.yaml` in turns, and what each saves."""
