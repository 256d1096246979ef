"""The whole results database as files, for whoever wants the raw rows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.orm import Session

from nexmark.store.errors import StoreError
from nexmark.store.replayed import write_nights
from nexmark.store.tables import tables, write_csv, write_parquet

_WRITERS = {"csv": write_csv, "parquet": write_parquet}


def export(session: Session, directory: Path, form: str) -> Mapping[str, int]:
    """Write every table and the paired nights into a directory that is not there, or empty.

    Returns the number of rows by file; of a file of nights, of nights. It is there whole or not at
    all. StoreError when it cannot be written.
    """
    try:
        with _whole(directory) as temporary:
            written = {
                f"{table.name}.{form}": _WRITERS[form](table, temporary / f"{table.name}.{form}")
                for table in tables(session)
            }
            return {**written, **write_nights(session, temporary)}
    except OSError as error:
        raise StoreError(
            f"cannot export to {directory}: {error.strerror or error}; give another OUT"
        ) from error


@contextmanager
def _whole(directory: Path) -> Iterator[Path]:
    """Let a directory be filled under a temporary name beside it; renamed at the end."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        what = "is not empty" if directory.is_dir() else "is a file"
        raise StoreError(f"cannot export to {directory}: it {what}; give another OUT")
    target = directory.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


__all__ = ["export"]
