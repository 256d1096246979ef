"""Nights of past dates, by Airflow's own backfill."""

from __future__ import annotations
