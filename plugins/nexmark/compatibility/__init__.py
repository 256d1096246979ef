"""Check whether running jobs survive an upgrade: start them on one build, resume on another."""
