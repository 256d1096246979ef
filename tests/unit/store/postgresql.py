"""A PostgreSQL server of the tests' own, and a PgBouncer before it: sockets, and no port."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

#: Nothing of it has to outlive the tests, but for the one that crashes the server.
FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": "40",
    "autovacuum": "off",
    "listen_addresses": "",
    "logging_collector": "off",
}
START_S = 30
_BOUNCER_PORT = 6432  # the name of its socket
#: A connection that a test has left open holds locks: it is ended first.
_EMPTY = """
DO $$
DECLARE tables text;
BEGIN
    PERFORM pg_terminate_backend(pid, 5000) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid();
    SELECT string_agg(format('%I', tablename), ', ') INTO tables
        FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'nexmark_version';
    EXECUTE 'TRUNCATE ' || tables || ' RESTART IDENTITY CASCADE';
END $$
"""


class Postgresql:
    """A server; ``url`` gives the URL of one of its databases."""

    def __init__(self, programs: Path, directory: Path) -> None:
        self._programs, self.directory = programs, directory
        self._server: subprocess.Popen[bytes] | None = None
        self._databases = 0

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.directory}"

    def make(self) -> None:
        """Make the data directory; the server does not run as root."""
        if os.geteuid() == 0:
            user = pwd.getpwnam(_user())
            os.chown(self.directory, user.pw_uid, user.pw_gid)
        options = ["--username=postgres", "--auth=trust", "--no-sync", "--no-locale"]
        command = [self._program("initdb"), "--encoding=UTF8", *options, "-D", str(self._data)]
        subprocess.run(_unprivileged(command), check=True, stdout=subprocess.DEVNULL, cwd="/")

    def start(self, **settings: str) -> None:
        changes = {**FAST, "unix_socket_directories": str(self.directory), **settings}
        command = [self._program("postgres"), "-D", str(self._data)]
        command += [part for name, x in changes.items() for part in ("-c", f"{name}={x}")]
        with (self.directory / "log").open("ab") as log:
            self._server = subprocess.Popen(_unprivileged(command), stderr=log, stdout=log, cwd="/")
        check = [self._program("pg_isready"), "-q", "-h", str(self.directory), "-t", "1"]
        for _ in range(START_S * 20):
            if subprocess.run(check, check=False).returncode == 0:
                return
            try:
                self._server.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            break
        raise RuntimeError((self.directory / "log").read_text(errors="replace")[-2000:])

    def stop(self, how: str) -> None:
        """End it: ``fast`` in order, ``immediate`` as a crash does, writing nothing more."""
        assert self._server is not None
        stop = [self._program("pg_ctl"), "stop", "-m", how, "-D", str(self._data)]
        subprocess.run(_unprivileged(stop), check=True, stdout=subprocess.DEVNULL, cwd="/")
        self._server.wait(START_S)

    @contextmanager
    def database(self, template: str = "template0", encoding: str = "UTF8") -> Iterator[str]:
        """The URL of another database, which is dropped at the end."""
        self._databases += 1
        name = f"results_{self._databases}"
        how = f"TEMPLATE {template} ENCODING '{encoding}' STRATEGY file_copy"
        self.execute(f"CREATE DATABASE {name} {how}")
        yield self.url(name)
        self.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def emptied(self, database: str) -> str:
        """The URL of a database that has its tables, and nothing in them."""
        url = self.url(database)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(_EMPTY)
        return url

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _program(self, name: str) -> str:
        return str(self._programs / name)


@contextmanager
def server() -> Iterator[Postgresql | None]:
    """A running server; None where PostgreSQL is not installed."""
    programs = _programs()
    if programs is None:
        yield None
        return
    directory = Path(tempfile.mkdtemp(prefix="nexmark-pg-", dir="/tmp"))  # a short path: a socket
    made = Postgresql(programs, directory)
    try:
        made.make()
        made.start()
        yield made
        made.stop("immediate")
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def pgbouncer(before: Postgresql) -> Iterator[str | None]:
    """What a URL of a server has to end with to pass a PgBouncer; None where it is not installed.

    A transaction has a session of the server for itself, and no longer. The sessions are two.
    """
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        yield None
        return
    settings = {
        "listen_addr": "",
        "listen_port": _BOUNCER_PORT,
        "unix_socket_dir": before.directory,
        "auth_type": "any",
        "pool_mode": "transaction",
        "default_pool_size": 2,
        "server_round_robin": 1,
    }
    lines = ["[databases]", f"* = host={before.directory} user=postgres", "[pgbouncer]"]
    file = before.directory / "pgbouncer.ini"
    file.write_text("\n".join([*lines, *(f"{name} = {x}" for name, x in settings.items()), ""]))
    file.chmod(0o644)
    with (before.directory / "pgbouncer.log").open("ab") as log:
        command = _unprivileged([program, str(file)])
        process = subprocess.Popen(command, stderr=log, stdout=log, cwd="/")
    try:
        socket = before.directory / f".s.PGSQL.{_BOUNCER_PORT}"
        for _ in range(START_S * 20):
            if socket.exists() or process.poll() is not None:
                break
            time.sleep(0.05)
        if process.poll() is not None:
            raise RuntimeError((before.directory / "pgbouncer.log").read_text()[-2000:])
        yield f"&port={_BOUNCER_PORT}"
    finally:
        process.kill()
        process.wait(START_S)


def _programs() -> Path | None:
    known = shutil.which("initdb")
    found = [Path(known)] if known else []
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    return found[0].resolve().parent if found else None


def _user() -> str:
    names = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def _unprivileged(command: Sequence[str]) -> list[str]:
    """Let it run as another user than root, and end with the process of the tests."""
    wrapper = ["setpriv", "--pdeathsig", "QUIT"]
    if os.geteuid() == 0:
        user = pwd.getpwnam(_user())
        wrapper += [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    return [*wrapper, *command]
