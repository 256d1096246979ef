"""One host of a cluster: what runs there, over SSH.

Every command is bounded on the host (`timeout`) and here, and every failure is one line that names
the host. Only the host key in the Airflow connection counts: neither known_hosts nor an agent nor
the keys in ~/.ssh are looked at.
"""

from __future__ import annotations

import logging
import shlex
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from nexmark.cluster.base import ClusterError
from nexmark.cluster.programs import program_command, program_input, program_result

if TYPE_CHECKING:
    import paramiko
    from airflow.providers.ssh.hooks.ssh import SSHHook

_SSH_PORT = 22
_CONNECT_S = 10.0
_ATTEMPTS = 3
_ATTEMPTS_S = 20.0
_PAUSE_S = 1.0
_KEEPALIVE_S = 5
#: After so long without an answer to what was sent, the link is dead.
_DEAD_LINK_S = 20
#: What a command has on top of its own time before its channel is closed here.
_MARGIN_S = 15.0
_WINDOW_BYTES = 8 * 1024 * 1024
_TIMED_OUT = (124, 137)
_NOT_FOUND = (126, 127)
#: The cheapest first that paramiko and sshd both have.
_CIPHERS = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
)
#: Airflow's lookup of a connection talks to the task's supervisor, one question at a time.
_lookup = threading.Lock()


class HostError(ClusterError):
    """`host NAME: what is wrong; remedy`."""


class HostUnreachable(HostError):
    """There is no connection, or it was lost: the command may or may not have run."""


class Host(Protocol):
    """What a cluster needs of a host. Every method raises HostError."""

    @property
    def name(self) -> str:
        """As in include/conf/clusters.yaml."""

    def run(
        self, command: Sequence[str], *, timeout_s: float, stdin: bytes | Iterable[bytes] = b""
    ) -> str:
        """Run `command` for at most `timeout_s` and return its output."""

    def call(
        self,
        program: ModuleType,
        request: Mapping[str, Any],
        *,
        timeout_s: float,
        data: Iterable[bytes] = (),
    ) -> dict[str, Any]:
        """Run a program of `nexmark_jobs.host`; `data` follows the request on its input."""

    def fetch(self, remote: str, local: Path, *, timeout_s: float = 60.0) -> None:
        """Copy the file `remote` to `local`, which is there whole or not at all."""

    def close(self) -> None:
        """Close the connection; the next command opens it again."""


class SshHost:
    """A host by its Airflow connection (type ssh); `python` is the interpreter there."""

    def __init__(self, name: str, connection_id: str, python: str) -> None:
        """Nothing is connected yet."""
        self.name = name
        self.connection_id = connection_id
        self.python = python
        self._connected: paramiko.SSHClient | None = None

    def __enter__(self) -> SshHost:
        """The host itself; its connection is closed at the end."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection; the next command opens it again."""
        if self._connected:
            self._connected.close()
        self._connected = None

    def run(
        self, command: Sequence[str], *, timeout_s: float, stdin: bytes | Iterable[bytes] = b""
    ) -> str:
        """Run `command` for at most `timeout_s` (s) and return its output.

        The words of `command` reach the program as they are, whatever is in them. HostError with
        the last line of its errors if it does not exit with 0.
        """
        chunks = [stdin] if isinstance(stdin, bytes) else stdin
        output = bytearray()
        self._execute(command, command[0], timeout_s, chunks, output.extend)
        return output.decode(errors="replace")

    def call(
        self,
        program: ModuleType,
        request: Mapping[str, Any],
        *,
        timeout_s: float,
        data: Iterable[bytes] = (),
    ) -> dict[str, Any]:
        """Run a program of `nexmark_jobs.host`; `data` follows the request on its input."""
        what = program.__name__.rpartition(".")[2]
        output = bytearray()
        self._execute(
            program_command(self.python),
            what,
            timeout_s,
            _after(program_input(program, request), data),
            output.extend,
        )
        try:
            return program_result(bytes(output))
        except ValueError:
            said = bytes(output[-200:]).decode(errors="replace")
            raise HostError(
                f"host {self.name}: {what} answered {said!r}; "
                f"see that {self.python} is a Python and that the shell of the user prints nothing"
            ) from None

    def fetch(self, remote: str, local: Path, *, timeout_s: float = 60.0) -> None:
        """Copy the file `remote` to `local`, which is there whole or not at all."""
        local.parent.mkdir(parents=True, exist_ok=True)
        temporary = local.with_name(f".{local.name}.part")
        try:
            with temporary.open("wb") as file:
                self._execute(["cat", "--", remote], "cat", timeout_s, (), file.write)
            temporary.replace(local)
        finally:
            temporary.unlink(missing_ok=True)

    def _execute(
        self,
        command: Sequence[str],
        what: str,
        timeout_s: float,
        stdin: Iterable[bytes],
        sink: Callable[[bytes], object],
    ) -> None:
        """Run `command`, `what` in messages, and give its output to `sink` as it comes."""
        import paramiko

        bounded = shlex.join(["timeout", "-k", "5", f"{timeout_s:g}", *command])
        if "\0" in bounded:
            raise HostError(f"host {self.name}: {what}: a word of the command has a NUL in it")
        deadline = time.monotonic() + timeout_s + _MARGIN_S
        client = self._client()
        channel = None
        try:
            transport = client.get_transport()
            if transport is None:
                raise EOFError
            channel = transport.open_session(window_size=_WINDOW_BYTES, timeout=_DEAD_LINK_S + 5)
            channel.exec_command(bounded)
            status, errors = _converse(channel, stdin, sink, deadline)
        except TimeoutError:
            self.close()
            raise HostUnreachable(
                f"host {self.name}: {what} has not ended after {timeout_s + _MARGIN_S:.0f} s "
                "and the host does not say why; look at the host and its network"
            ) from None
        except (EOFError, OSError, paramiko.SSHException) as error:
            self.close()
            raise self._lost(what, error) from None
        finally:
            if channel is not None:
                channel.close()
        if status < 0:
            if not _is_alive(client):
                self.close()
                raise self._lost(what, None)
            raise HostError(f"host {self.name}: {what} was killed by a signal; see its system log")
        if status:
            raise self._failed(what, status, errors, timeout_s)

    def _lost(self, what: str, error: Exception | None) -> HostUnreachable:
        why = f" ({_words(error)})" if error and _words(error) else ""
        return HostUnreachable(
            f"host {self.name}: the connection was lost during {what}{why}; "
            "see that the host, its sshd and the network are up, then try again"
        )

    def _failed(self, what: str, status: int, errors: str, timeout_s: float) -> HostError:
        lines = [line.strip() for line in errors.splitlines() if line.strip()]
        last = lines[-1] if lines else "it gave no reason"
        if status in _TIMED_OUT:
            return HostError(
                f"host {self.name}: {what} did not end within {timeout_s:g} s and was ended; "
                "see what the host is busy with"
            )
        if status in _NOT_FOUND:
            last += "; correct the paths in include/conf/clusters.yaml, or install it there"
        return HostError(f"host {self.name}: {what}: {last}")

    # --- the connection

    def _client(self) -> paramiko.SSHClient:
        """The open connection, or a new one. A few attempts, `_ATTEMPTS_S` s at most."""
        if self._connected and _is_alive(self._connected):
            return self._connected
        self.close()
        hook = self._hook()
        end = time.monotonic() + _ATTEMPTS_S
        for attempt in range(_ATTEMPTS):
            try:
                self._connected = self._connect(hook, min(_CONNECT_S, end - time.monotonic()))
                return self._connected
            except HostUnreachable:
                if attempt == _ATTEMPTS - 1 or time.monotonic() + _PAUSE_S >= end:
                    raise
                time.sleep(_PAUSE_S)
        raise AssertionError("unreachable")

    def _hook(self) -> SSHHook:
        """What the Airflow connection says; HostError if it is not there or not safe."""
        from airflow.providers.ssh.hooks.ssh import SSHHook

        where = f"host {self.name}: Airflow connection {self.connection_id}"
        try:
            with _lookup:
                hook = SSHHook(self.connection_id)
        except Exception as error:  # of Airflow, of paramiko, of whatever parses the extra
            raise HostError(f"{where}: {_words(error)}; create or correct it") from None
        if hook.no_host_key_check or hook.allow_host_key_change or hook.host_key is None:
            raise HostError(
                f"{where} does not pin the host's key; give its extra "
                f"host_key: the type and key that `ssh-keyscan -t ed25519 {hook.remote_host}` "
                "prints, compared with the host's own, and no no_host_key_check"
            )
        if not (hook.key_file or hook.pkey or hook.password):
            raise HostError(f"{where} has no key; give its extra key_file or private_key")
        return hook

    def _key(self, hook: SSHHook) -> paramiko.PKey | None:
        """The key to log in with; HostError if it cannot be read, None with a password only."""
        import paramiko

        if hook.pkey or not hook.key_file:
            return hook.pkey
        try:
            return paramiko.PKey.from_path(hook.key_file, (hook.password or "").encode() or None)
        except Exception as error:  # every library under it has its own
            raise HostError(
                f"host {self.name}: key {hook.key_file} cannot be used ({_words(error)}); "
                f"correct key_file of Airflow connection {self.connection_id}"
            ) from None

    def _connect(self, hook: SSHHook, timeout_s: float) -> paramiko.SSHClient:
        import paramiko

        port = hook.port or _SSH_PORT
        where = f"host {self.name}: {hook.username}@{hook.remote_host}:{port}"
        key = self._key(hook)
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        known = hook.remote_host if port == _SSH_PORT else f"[{hook.remote_host}]:{port}"
        pinned: Any = hook.host_key
        client.get_host_keys().add(known, pinned.get_name(), pinned)
        try:
            client.connect(
                hook.remote_host,
                port,
                hook.username,
                password=hook.password,
                pkey=key,
                sock=hook.host_proxy or _tcp(hook.remote_host, port, timeout_s),
                allow_agent=False,
                look_for_keys=False,
                timeout=timeout_s,
                banner_timeout=timeout_s,
                auth_timeout=timeout_s,
                transport_factory=_transport,
            )
        except paramiko.BadHostKeyException as error:
            client.close()
            raise HostError(
                f"{where}: the host key has changed, it is {error.key.get_name()} "
                f"{error.key.get_base64()} now; if that is expected, put it into host_key in the "
                f"extra of Airflow connection {self.connection_id}, if not, find out who answers"
            ) from None
        except (paramiko.AuthenticationException, paramiko.PasswordRequiredException) as error:
            client.close()
            raise HostError(
                f"{where}: login refused ({_words(error)}); see login and key of Airflow "
                f"connection {self.connection_id} and authorized_keys on the host"
            ) from None
        except (OSError, EOFError, paramiko.SSHException) as error:
            client.close()
            raise HostUnreachable(
                f"{where}: no connection ({_words(error) or 'closed by the host'}); "
                "see that the host, its sshd and the network are up"
            ) from None
        transport = client.get_transport()
        if transport:
            transport.set_keepalive(_KEEPALIVE_S)
        return client


Outcome = TypeVar("Outcome")
AnyHost = TypeVar("AnyHost", bound=Host)


def on_all(
    hosts: Iterable[AnyHost], function: Callable[[AnyHost], Outcome]
) -> dict[str, Outcome | HostError]:
    """`function` of every host at the same time; by name what it returned, or its HostError."""
    hosts = list(hosts)

    def attempt(host: AnyHost) -> Outcome | HostError:
        try:
            return function(host)
        except HostError as error:
            return error

    with ThreadPoolExecutor(max_workers=max(1, len(hosts))) as pool:
        return dict(zip((host.name for host in hosts), pool.map(attempt, hosts), strict=True))


def _after(first: bytes, rest: Iterable[bytes]) -> Iterable[bytes]:
    yield first
    yield from rest


def _converse(
    channel: paramiko.Channel,
    stdin: Iterable[bytes],
    sink: Callable[[bytes], object],
    deadline: float,
) -> tuple[int, str]:
    """Send `stdin`, then read all; (exit status, errors). TimeoutError at `deadline`.

    The status is -1 if the host gave none. Output of more than `_WINDOW_BYTES` before the input
    has been read would wait for itself; no command here does that.
    """

    def bound() -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        channel.settimeout(left)

    for chunk in stdin:
        bound()
        try:
            channel.sendall(chunk)
        except TimeoutError:
            raise
        except OSError:  # it has ended without reading all: its status says why
            break
    with suppress(OSError, EOFError):
        channel.shutdown_write()
    bound()
    while data := channel.recv(1 << 20):
        sink(data)
        bound()
    errors = bytearray()
    while data := channel.recv_stderr(1 << 16):
        errors += data
        bound()
    if not channel.status_event.wait(max(0.0, deadline - time.monotonic())):
        raise TimeoutError
    return channel.exit_status, errors.decode(errors="replace")


def _tcp(address: str, port: int, timeout_s: float) -> socket.socket:
    """A connection that breaks when the other end has not answered for `_DEAD_LINK_S`."""
    connection = socket.create_connection((address, port), timeout_s)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DEAD_LINK_S * 1000)
    return connection


def _transport(sock: socket.socket, **options: Any) -> paramiko.Transport:
    import paramiko

    # The reasons come as exceptions; its log would only repeat them with tracebacks.
    logging.getLogger("paramiko.transport").setLevel(logging.CRITICAL)
    transport = paramiko.Transport(sock, default_window_size=_WINDOW_BYTES, **options)
    security = transport.get_security_options()
    usable = set(security.ciphers)
    security.ciphers = tuple(name for name in _CIPHERS if name in usable)
    return transport


def _is_alive(client: paramiko.SSHClient) -> bool:
    transport = client.get_transport()
    return transport is not None and transport.is_active()


def _words(error: Exception | None) -> str:
    """What an exception says, without Python's errno decoration."""
    text = getattr(error, "strerror", None) or str(error or "")
    return " ".join(str(text).split()).rstrip(".")


__all__ = ["Host", "HostError", "HostUnreachable", "SshHost", "on_all"]
