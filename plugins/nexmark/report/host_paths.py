"""Shorten the paths of this machine in evidence and in sites.

These are sent to others, who need none of the paths.
"""

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from nexmark.config import paths

HOME = "$NEXMARK_HOME"
"""What paths below the home of the package begin with; a shell of this machine can expand it."""
USER_HOME = "~"
"""What paths below the home directory of the user begin with."""


def with_short_paths(text: str) -> str:
    """Return a text with the paths of this machine shortened."""
    for root, pattern, name in _roots(paths.home(), os.environ.get("NEXMARK_HOME"), Path.home()):
        text = pattern.sub(name, text) if root in text else text
    return text


def without_host_paths(content: Mapping[str, object]) -> dict[str, object]:
    """Return JSON with the paths of this machine shortened in all texts."""
    return {key: _item(value) for key, value in content.items()}


def _item(value: object) -> object:
    if isinstance(value, str):
        return with_short_paths(value)
    if isinstance(value, Mapping):
        return without_host_paths(value)
    return [_item(one) for one in value] if isinstance(value, list | tuple) else value


@cache
def _roots(
    home: Path, named: str | None, user_home: Path
) -> list[tuple[str, re.Pattern[str], str]]:
    """Return directories, the longest first, with a pattern and with what stands in their place.

    Args:
        home: The home of the package.
        named: The same as the environment names it; None if it does not.
        user_home: The home directory of the user.
    """
    names = {str(path): HOME for path in (home, home.resolve(), Path(named or home).absolute())}
    names = {str(user_home): USER_HOME, str(user_home.resolve()): USER_HOME, **names}
    return [
        (root, _whole(re.escape(root)), name)
        for root, name in sorted(names.items(), key=lambda item: len(item[0]), reverse=True)
        if root != "/"
    ]


def _whole(root: str) -> re.Pattern[str]:
    """Return the pattern of a path that is not a part of another name.

    It begins with the path, for which a long text is searched much faster than for what is before.
    """
    return re.compile(rf"{root}(?<![\w.~-]{root})(?![\w.-])")
