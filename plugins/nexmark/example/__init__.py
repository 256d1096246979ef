"""Sixty nights to look at before anything is measured: simulated figures, real verdicts."""
