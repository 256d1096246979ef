"""Nightly Nexmark on Spark: the Airflow-side library."""
