"""Name the person who did something: the user of the system, and the name that a person gives."""

import os
import pwd


def process_user() -> str:
    """Return the name of this process's user from the system, whatever the environment says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user without a name
        return f"uid {os.getuid()}"


def signed(user: str, given: str | None) -> str:
    """Return the name to record: `user`, then the name `given` by a person, which proves nothing.

    >>> signed("root", "ada")
    'root (for ada)'
    """
    name = (given or "").strip()
    return user if name in ("", user) else f"{user} (for {name})"
