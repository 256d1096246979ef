"""The files of a Spark event log, as lines: one file or rolling ones, plain or zstd."""

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from nexmark.errors import NexmarkError

_PREFIX = b'{"Event":"'
_ROLLING = "eventlog_v2_"
_PART = re.compile(r"events_(\d+)_")
_ZSTD = ".zstd"
_OTHER_CODECS = (".lz4", ".lzf", ".snappy")
_IN_PROGRESS = ".inprogress"


class EventLogError(NexmarkError):
    """An event log cannot be read, or lacks what the caller asked for."""


def read_events(
    directory: Path,
    application_id: str | None,
    handlers: Mapping[bytes, Callable[[Mapping[str, Any]], None]],
) -> None:
    """Hand the events of the one application whose log is in a directory to their handlers.

    ``application_id`` chooses one if there are several; ``handlers`` are by the name of the event.
    EventLogError, in one line, when there is no log, or when it is cut off or broken.
    """
    for line in chain.from_iterable(map(_lines, _files(directory, application_id))):
        if not line.startswith(_PREFIX):
            raise EventLogError(f"{directory}: a line of the event log is no event: {line[:40]!r}")
        handler = handlers.get(line[len(_PREFIX) : line.find(b'"', len(_PREFIX))])
        if handler is None:
            continue
        try:
            event = json.loads(line)
        except ValueError:
            raise EventLogError(f"{directory}: the event log is cut off in mid-line") from None
        try:
            handler(event)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EventLogError(
                f"{directory}: an event is not as Spark 3.5 to 4.3 writes it: {error!r}"
            ) from None


def _files(directory: Path, application_id: str | None) -> list[Path]:
    try:
        found = [x for x in sorted(directory.iterdir()) if not x.name.startswith(".")]
    except OSError as error:
        raise EventLogError(f"{directory}: no event log: {error.strerror or error}") from None
    if application_id is not None:
        found = [
            x for x in found if x.name.removeprefix(_ROLLING).split(".", 1)[0] == application_id
        ]
    if len(found) != 1:
        whose = f" of {application_id}" if application_id else ""
        raise EventLogError(f"{directory}: {len(found)} event logs{whose}, one expected")
    (log,) = found
    if not log.is_dir():
        return [log]
    parts = {int(x[1]): path for path in log.iterdir() if (x := _PART.match(path.name))}
    if sorted(parts) != list(range(1, len(parts) + 1)) or not parts:
        raise EventLogError(f"{log}: files of the event log are missing; found {sorted(parts)}")
    return [parts[number] for number in sorted(parts)]


def _lines(path: Path) -> Iterator[bytes]:
    import zstandard

    name = path.name.removesuffix(_IN_PROGRESS)
    if name.endswith(_OTHER_CODECS):
        raise EventLogError(
            f"{path}: only plain and zstd event logs are read; set"
            " spark.eventLog.compression.codec=zstd"
        )
    try:
        with path.open("rb") as stream:
            if not name.endswith(_ZSTD):
                yield from stream
                return
            reader = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
            yield from io.BufferedReader(reader)
    except zstandard.ZstdError as error:
        raise EventLogError(f"{path}: is no whole zstd file: {error}") from None
    except OSError as error:
        raise EventLogError(f"{path}: cannot be read: {error.strerror or error}") from None
