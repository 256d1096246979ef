"""Does the gate find real regressions? `make bench-detection`: real causes on real Spark."""
