"""Who did something: a name that nobody can choose, beside the one that a person gives."""

import os
import pwd


def process_user() -> str:
    """Return the user of this process as the system knows it, whatever its environment says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user without a name
        return f"uid {os.getuid()}"


def signed(user: str, given: str | None) -> str:
    """Return the name to record: the `user`, then the given name, which proves nothing.

    >>> signed("root", "ada")
    'root (for ada)'
    """
    name = (given or "").strip()
    return user if name in ("", user) else f"{user} (for {name})"
