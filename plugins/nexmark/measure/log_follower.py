"""Follow Spark's event log of one application while it is written.

Spark flushes the log after every event of a streaming query, and ends a zstd frame with it: so
what is there can be read at any time, in both forms that `measure.event_log` reads.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nexmark.measure.event_log import EventLogError, growing_files

Handler = Callable[[Mapping[str, Any]], None]


@dataclass
class _Part:
    """A file of the log: how far it has been read, and the beginning of an unfinished line."""

    path: Path
    position: int = 0
    line: bytes = b""
    frame: Any = None

    def news(self) -> Iterator[bytes]:
        """Yield the lines that are whole since the last call.

        The name of a file that is still written ends with `.inprogress`, and loses it at the end.
        """
        try:
            with self._file().open("rb") as file:
                file.seek(self.position)
                data = file.read()
        except FileNotFoundError:  # renamed just now; the next call finds it
            return
        self.position += len(data)
        *whole, self.line = (self.line + self._plain(data)).split(b"\n")
        yield from whole

    def _file(self) -> Path:
        finished = self.path.with_name(self.path.name.removesuffix(".inprogress"))
        return finished if finished.exists() else self.path

    def _plain(self, data: bytes) -> bytes:
        """Return the text of more bytes; of a zstd file, as far as it can be told by now."""
        if not self.path.name.removesuffix(".inprogress").endswith(".zstd"):
            return data
        import zstandard

        text = b""
        while data:
            self.frame = self.frame or zstandard.ZstdDecompressor().decompressobj()
            try:
                text += self.frame.decompress(data)
            except zstandard.ZstdError as error:
                raise EventLogError(f"{self.path}: is no zstd file: {error}") from None
            if not self.frame.eof:
                break
            data, self.frame = self.frame.unused_data, None
        return text


@dataclass
class LogFollower:
    """Calls handlers with the events of the one log in a directory, each once, in their order.

    Attributes:
        directory: the value of `spark.eventLog.dir`, which has no other log.
        handlers: by the name of the event.
    """

    directory: Path
    handlers: Mapping[str, Handler]
    _parts: dict[str, _Part] = field(default_factory=dict)

    def read(self) -> None:
        """Handle what was written since the last call; EventLogError for what is no event log."""
        for path in growing_files(self.directory):
            name = path.name.removesuffix(".inprogress")
            part = self._parts.setdefault(name, _Part(path))
            for line in part.news():
                self._handle(line)

    def _handle(self, line: bytes) -> None:
        try:
            event = json.loads(line)
            handler = self.handlers.get(event["Event"])
        except (ValueError, TypeError, KeyError):
            raise EventLogError(
                f"{self.directory}: a line of the event log is no event: {line[:40]!r}"
            ) from None
        if handler is not None:
            handler(event)
