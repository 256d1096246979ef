"""The gate: pure functions, numbers in and verdicts out."""
