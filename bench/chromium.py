"""Find Chromium, and list the flags that start it without a window or a request to others."""

from __future__ import annotations

import shutil

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_chromium() -> str | None:
    """Return the path of an installed Chromium; None if there is none."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)
