"""Secrets in every place that may have one, and a look at all processes for them."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.foreign_variables import MARK

MARKER = f"Xk7{secrets.token_hex(4)}".encode()
SAMPLED_S = 0.05
RIGHTS = 0o777


def confs(night: str) -> dict[str, str]:
    """A Spark conf of each kind that holds a secret, other ones each night."""
    hush = [f"{MARKER.decode()}-{number}-{night}" for number in range(9)]
    return {
        "spark.hadoop.fs.azure.account.key.store.dfs.core.windows.net": hush[0],
        "spark.hadoop.fs.azure.sas.box.store.blob.core.windows.net": hush[1],
        "spark.my.place": f"https://store.example/data?sv=2024&sig={hush[2]}",
        "spark.executorEnv.MYSQL_PWD": hush[3],
        "spark.ssl.keyStorePassword": hush[4],
        "spark.my.keyStorePwd": hush[5],
        "spark.my.url": f"jdbc:mysql://db.example/x?user=ada&password={hush[6]}",
        "spark.hadoop.fs.s3a.access.key": hush[7],
        "spark.hadoop.fs.s3a.secret.key": hush[8],
    }


@dataclass
class Processes:
    """What was seen of all processes while a night ran."""

    shown: set[str] = field(default_factory=set)
    handed_over: set[str] = field(default_factory=set)
    files: set[int] = field(default_factory=set)
    java: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)

    def note_java(self, command: bytes, environment: bytes, home: Path) -> None:
        """Note the main class of a JVM of the home, and the variables of a stranger in it."""
        if f"\0NEXMARK_OWNER={home}|".encode() in b"\0" + environment:
            self.java.update(re.findall(r"org\.apache\.spark\.[\w.]+", command.decode()))
            foreign = (x.decode() for x in environment.split(b"\0") if MARK.encode() in x)
            self.foreign.update(foreign)


@contextmanager
def watched(home: Path, seen: Processes) -> Iterator[None]:
    """Note the command line and the environment of every process, again and again, in `seen`."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(SAMPLED_S):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    command = (process / "cmdline").read_bytes()
                    if MARKER in command:
                        seen.shown.add(command.replace(b"\0", b" ").decode(errors="replace"))
                    if command.partition(b"\0")[0].endswith(b"java"):
                        seen.note_java(command, (process / "environ").read_bytes(), home)
                    if b"CoarseGrainedExecutorBackend" in command:
                        environment = (process / "environ").read_bytes()
                        seen.handed_over.update(
                            x.decode() for x in re.findall(rb"\0(MYSQL_PWD=[^\0]*)", environment)
                        )
                except OSError:
                    continue  # it has ended
            for file in home.glob("clusters/*/scratch/private/*.conf"):
                seen.files.add(file.stat().st_mode & RIGHTS if file.exists() else 0o600)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
