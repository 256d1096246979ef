"""What a night tells the person who waits for it, besides Airflow's own logs."""

from __future__ import annotations

import logging
import os
from pathlib import Path

#: A file that `make run` shows while the night runs; not set under a scheduler.
PROGRESS_VARIABLE = "NEXMARK_PROGRESS"

log = logging.getLogger(__name__)


def say(text: str) -> None:
    """Log `text` and, where a person waits, show it."""
    log.info("%s", text)
    target = os.environ.get(PROGRESS_VARIABLE)
    if target:
        with Path(target).open("a", encoding="utf-8") as file:
            file.write(text + "\n")


__all__ = ["PROGRESS_VARIABLE", "say"]
