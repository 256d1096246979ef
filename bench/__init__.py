"""Benchmarks and simulations. Not in the wheel, not on the hosts."""
