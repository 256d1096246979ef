"""The results database of this process: opened when first needed, and again after an error."""

from __future__ import annotations

from threading import Lock

from nexmark.config import paths
from nexmark.store import Store, open_store


class Database:
    """Opens the store at a URL: the configured one, unless another is given."""

    def __init__(self, url: str | None = None) -> None:
        """Nothing is opened yet."""
        self._url = url
        self._store: Store | None = None
        self._lock = Lock()

    def store(self) -> Store:
        """Return the store; StoreError where it cannot be opened."""
        with self._lock:
            if self._store is None:
                self._store = open_store(self._url or paths.database_url())
            return self._store

    def forget(self) -> None:
        """Open it anew the next time: the database has failed."""
        with self._lock:
            if self._store is not None:
                self._store.close()
            self._store = None


__all__ = ["Database"]
