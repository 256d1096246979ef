"""Connect to a host by its Airflow connection (type ssh), with its host key pinned.

Only the host key in the connection counts; known_hosts, agents and the keys in ~/.ssh are not used.
Every failure is one line that names the host.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from nexmark.cluster.lease import ClusterError

if TYPE_CHECKING:
    import paramiko
    from airflow.providers.ssh.hooks.ssh import SSHHook

#: The link is dead after these seconds without an answer.
DEAD_LINK_S = 20
WINDOW_BYTES = 8 * 1024 * 1024

_SSH_PORT = 22
_CONNECT_S = 10.0
_ATTEMPTS = 3
_ATTEMPTS_S = 20.0
_PAUSE_S = 1.0
_KEEPALIVE_S = 5
#: The ciphers that paramiko and sshd both have, the cheapest first.
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
    """The connection failed or was lost, so nobody knows whether the command has run."""


def connect(name: str, connection_id: str) -> paramiko.SSHClient:
    """Open a connection to host `name`, in a few attempts and at most `_ATTEMPTS_S` seconds.

    Raises:
        HostUnreachable: No attempt succeeds.
        HostError: The Airflow connection is missing or not safe, the host has another key, or it
            refuses the login. Then there is only one attempt.
    """
    hook = _hook(name, connection_id)
    end = time.monotonic() + _ATTEMPTS_S
    for attempt in range(_ATTEMPTS):
        try:
            return _connect(name, hook, min(_CONNECT_S, end - time.monotonic()))
        except HostUnreachable:
            if attempt == _ATTEMPTS - 1 or time.monotonic() + _PAUSE_S >= end:
                raise
            time.sleep(_PAUSE_S)
    raise AssertionError("unreachable")


def is_alive(client: paramiko.SSHClient) -> bool:
    """Return whether the connection is open, as far as this side knows."""
    transport = client.get_transport()
    return transport is not None and transport.is_active()


def words(error: Exception | None) -> str:
    """Return the text of an exception, without Python's errno prefix."""
    text = getattr(error, "strerror", None) or str(error or "")
    return " ".join(str(text).split()).rstrip(".")


def _hook(name: str, connection_id: str) -> SSHHook:
    """Return the login of the Airflow connection; HostError if it is missing or not safe."""
    from airflow.providers.ssh.hooks.ssh import SSHHook

    where = f"host {name}: Airflow connection {connection_id}"
    try:
        with _lookup:
            hook = SSHHook(connection_id)
    except Exception as error:  # from Airflow, paramiko, or the parser of the extra
        raise HostError(f"{where}: {words(error)}; create or correct it") from None
    if hook.no_host_key_check or hook.allow_host_key_change or hook.host_key is None:
        raise HostError(
            f"{where} does not pin the host's key; give its extra "
            f"host_key: the type and key that `ssh-keyscan -t ed25519 {hook.remote_host}` "
            "prints, compared with the host's own, and no no_host_key_check"
        )
    if not (hook.key_file or hook.pkey or hook.password):
        raise HostError(f"{where} has no key; give its extra key_file or private_key")
    return hook


def _key(name: str, hook: SSHHook) -> paramiko.PKey | None:
    """Return the key to log in with, None with a password only; HostError if it cannot be read."""
    import paramiko

    if hook.pkey or not hook.key_file:
        return hook.pkey
    try:
        return paramiko.PKey.from_path(hook.key_file, (hook.password or "").encode() or None)
    except Exception as error:  # every library below has its own
        problem = f"key {hook.key_file} cannot be used ({words(error)})"
        remedy = f"correct key_file of Airflow connection {hook.ssh_conn_id}"
        raise HostError(f"host {name}: {problem}; {remedy}") from None


def _connect(name: str, hook: SSHHook, timeout_s: float) -> paramiko.SSHClient:
    import paramiko

    port = hook.port or _SSH_PORT
    where = f"host {name}: {hook.username}@{hook.remote_host}:{port}"
    key = _key(name, hook)
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
            f"extra of Airflow connection {hook.ssh_conn_id}, if not, find out who answers"
        ) from None
    except (paramiko.AuthenticationException, paramiko.PasswordRequiredException) as error:
        client.close()
        login = f"login and key of Airflow connection {hook.ssh_conn_id}"
        remedy = f"see {login} and authorized_keys on the host"
        raise HostError(f"{where}: login refused ({words(error)}); {remedy}") from None
    except (OSError, EOFError, paramiko.SSHException) as error:
        client.close()
        reason = words(error) or "closed by the host"
        remedy = "see that the host, its sshd and the network are up"
        raise HostUnreachable(f"{where}: no connection ({reason}); {remedy}") from None
    transport = client.get_transport()
    if transport:
        transport.set_keepalive(_KEEPALIVE_S)
    return client


def _tcp(address: str, port: int, timeout_s: float) -> socket.socket:
    """Open a connection that breaks when the other end has not answered for `DEAD_LINK_S`."""
    connection = socket.create_connection((address, port), timeout_s)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_LINK_S * 1000)
    return connection


def _transport(sock: socket.socket, **options: Any) -> paramiko.Transport:
    import paramiko

    # The reasons come as exceptions; its log would only repeat them with tracebacks.
    logging.getLogger("paramiko.transport").setLevel(logging.CRITICAL)
    transport = paramiko.Transport(sock, default_window_size=WINDOW_BYTES, **options)
    security = transport.get_security_options()
    security.ciphers = tuple(name for name in _CIPHERS if name in security.ciphers)
    return transport
