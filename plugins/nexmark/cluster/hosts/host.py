"""Run commands and programs on a host of a cluster and move files, over SSH.

Every command is bounded on the host (`timeout`) and here, and every failure is one line that names
the host. A program of `nexmark_jobs.host` runs there without this package: the command is a small
constant loader that reads one line of JSON with the sources and the request from its standard
input, so they do not appear in the host's list of processes. The program reads the rest.
"""

import inspect
import json
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from nexmark.cluster.hosts import ssh
from nexmark.cluster.hosts.ssh import HostError, HostUnreachable
from nexmark_jobs.host import leases, ports, processes, whole_files

if TYPE_CHECKING:
    import paramiko


_LOADER = """\
import json, sys, types
sent = json.loads(sys.stdin.buffer.readline())
for name, source in sent["modules"]:
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
print(json.dumps(module.main(sent["request"])))
"""
#: The modules that programs may import, in this order.
_LIBRARY = (processes, whole_files, leases, ports)
Request = Mapping[str, Any]
Chunks = Iterable[bytes]
Sink = Callable[[bytes], object]


def program_command(python: str) -> list[str]:
    """Return the command that runs the program on its standard input, without other packages."""
    return [python, "-I", "-S", "-c", _LOADER]


def program_input(program: ModuleType, request: Request) -> bytes:
    """Return the first line for `program_command`; the last line of its output is the result."""
    before = _LIBRARY[: _LIBRARY.index(program)] if program in _LIBRARY else _LIBRARY
    sources = [[module.__name__, inspect.getsource(module)] for module in (*before, program)]
    return json.dumps({"modules": sources, "request": dict(request)}).encode() + b"\n"


def program_result(output: bytes) -> dict[str, Any]:
    """Return the result in the last line that a program printed; ValueError if there is none."""
    lines = output.strip().splitlines()
    result = json.loads(lines[-1]) if lines else None
    if not isinstance(result, dict):
        raise ValueError("the program printed no result")
    return result


#: Seconds after a command's own time until its channel is closed here.
_MARGIN_S = 15.0
_TIMED_OUT = (124, 137)
_NOT_FOUND = (126, 127)


@dataclass(eq=False)
class Host:
    """A host by its Airflow connection (type ssh), which the first command opens."""

    name: str
    connection_id: str
    python: str  # the interpreter there
    _connected: "paramiko.SSHClient | None" = field(default=None, init=False, repr=False)

    def close(self) -> None:
        """Close the connection; the next command opens it again."""
        if self._connected:
            self._connected.close()
        self._connected = None

    def run(self, command: Sequence[str], *, timeout_s: float, stdin: bytes | Chunks = b"") -> str:
        """Run `command` for at most `timeout_s` (s) and return its output.

        The words of `command` reach the program unchanged. HostError with the last line of its
        errors if it does not exit with 0.
        """
        chunks = [stdin] if isinstance(stdin, bytes) else stdin
        output = bytearray()
        self._execute(command, command[0], timeout_s, chunks, output.extend)
        return output.decode(errors="replace")

    def call(
        self, program: ModuleType, request: Request, *, timeout_s: float, data: Chunks = ()
    ) -> dict[str, Any]:
        """Run a program of `nexmark_jobs.host`, and return its answer.

        Args:
            program: The module of the program.
            request: What it is asked to do.
            timeout_s: How long it may take, in seconds.
            data: More input, which follows the request.

        Raises:
            HostError: It failed, took too long, or gave no answer.
        """
        what, command = program.__name__.rpartition(".")[2], program_command(self.python)
        output = bytearray()
        sent = chain([program_input(program, request)], data)
        self._execute(command, what, timeout_s, sent, output.extend)
        try:
            return program_result(bytes(output))
        except ValueError:
            said = bytes(output[-200:]).decode(errors="replace")
            shell = "that the shell of the user prints nothing"
            remedy = f"see that {self.python} is a Python and {shell}"
            raise HostError(f"host {self.name}: {what} answered {said!r}; {remedy}") from None

    def fetch(self, remote: str, local: Path, *, timeout_s: float = 60.0) -> None:
        """Copy the file `remote` to `local`, completely or not at all."""
        local.parent.mkdir(parents=True, exist_ok=True)
        temporary = local.with_name(f".{local.name}.part")
        try:
            with temporary.open("wb") as file:
                self._execute(["cat", "--", remote], "cat", timeout_s, (), file.write)
            temporary.replace(local)
        finally:
            temporary.unlink(missing_ok=True)

    def _execute(
        self, command: Sequence[str], what: str, timeout_s: float, stdin: Chunks, sink: Sink
    ) -> None:
        """Run a command, and hand its output on as it arrives.

        Args:
            command: The words of the command.
            what: Its name in messages.
            timeout_s: How long it may take, in seconds.
            stdin: Its input.
            sink: Called with each piece of its output.

        Raises:
            HostError: It exits with another code than 0.
            HostUnreachable: The connection was lost, or the command did not end in time.
        """
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
            timeout = ssh.DEAD_LINK_S + 5
            channel = transport.open_session(window_size=ssh.WINDOW_BYTES, timeout=timeout)
            channel.exec_command(bounded)
            status, errors = _converse(channel, stdin, sink, deadline)
        except TimeoutError:
            self.close()
            late = f"{what} has not ended after {timeout_s + _MARGIN_S:.0f} s"
            remedy = "and the host does not say why; look at the host and its network"
            raise HostUnreachable(f"host {self.name}: {late} {remedy}") from None
        except (EOFError, OSError, paramiko.SSHException) as error:
            self.close()
            raise self._lost(what, error) from None
        finally:
            if channel is not None:
                channel.close()
        if status < 0:
            if not ssh.is_alive(client):
                self.close()
                raise self._lost(what, None)
            raise HostError(f"host {self.name}: {what} was killed by a signal; see its system log")
        if status:
            raise self._failed(what, status, errors, timeout_s)

    def _lost(self, what: str, error: Exception | None) -> HostUnreachable:
        why = f" ({said})" if (said := ssh.words(error)) else ""
        remedy = "see that the host, its sshd and the network are up, then try again"
        lost = f"the connection was lost during {what}{why}"
        return HostUnreachable(f"host {self.name}: {lost}; {remedy}")

    def _failed(self, what: str, status: int, errors: str, timeout_s: float) -> HostError:
        """Return the error for a command that exits with another code than 0.

        Args:
            what: The name of the command in messages.
            status: The exit code.
            errors: What it wrote to stderr.
            timeout_s: How long it had, in seconds.
        """
        lines = [line.strip() for line in errors.splitlines() if line.strip()]
        last = (lines or ["it gave no reason"])[-1]
        if status in _TIMED_OUT:
            last = f"did not end within {timeout_s:g} s and was ended"
            return HostError(f"host {self.name}: {what} {last}; see what the host is busy with")
        if status in _NOT_FOUND:
            last += "; correct the paths in include/conf/clusters.yaml, or install it there"
        return HostError(f"host {self.name}: {what}: {last}")

    def _client(self) -> "paramiko.SSHClient":
        if self._connected is None or not ssh.is_alive(self._connected):
            self.close()
            self._connected = ssh.connect(self.name, self.connection_id)
        return self._connected


Outcome = TypeVar("Outcome")


def on_all(
    hosts: Iterable[Host], function: Callable[[Host], Outcome]
) -> dict[str, Outcome | HostError]:
    """Call `function` for every host at once; return its results or HostErrors by name."""
    hosts = list(hosts)

    def attempt(host: Host) -> Outcome | HostError:
        try:
            return function(host)
        except HostError as error:
            return error

    with ThreadPoolExecutor(max_workers=max(1, len(hosts))) as pool:
        return dict(zip((host.name for host in hosts), pool.map(attempt, hosts), strict=True))


def _converse(
    channel: "paramiko.Channel", stdin: Chunks, sink: Sink, deadline: float
) -> tuple[int, str]:
    """Send the input, then read everything; return the exit status and the errors.

    The status is -1 if the host gave none. A command that writes more than `WINDOW_BYTES` before it
    has read its input would block; no command here does that.

    Args:
        channel: The open channel of the command.
        stdin: The input.
        sink: Called with each piece of the output.
        deadline: When to give up, by `time.monotonic`.

    Raises:
        TimeoutError: The deadline has passed.
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
        except OSError:  # it ended before it read everything: its status says why
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
