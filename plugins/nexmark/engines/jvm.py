"""Options and paths as Spark and the JVM read them.

Spark splits the options of its JVMs by itself (`CommandBuilderUtils.parseOptionString` in the
launcher, `Utils.splitCommandString` for executors): at blanks that are not quoted.
"""

import re
import unicodedata
from pathlib import Path

from nexmark.errors import NexmarkError

_PLAIN = re.compile(r"[\w@%+=:,./\-#]+")
#: Characters that separate paths, options or jars, or mean something in a glob, a URI or a
#: properties file.
_SPECIAL = frozenset("\\\"'`?*%#,:;|[]{}$!")
#: The last character that Spark's parser of options reads right. Later ones are two halves in Java,
#: and the parser doubles one of them.
_LAST = 0xFFFF
#: Categories of Unicode: control characters, separators of lines, halves of characters, and
#: numbers that are no character.
_UNUSABLE = frozenset({"Cc", "Cn", "Cs", "Zl", "Zp"})


class PathError(NexmarkError):
    """A path that Spark or the JVM would read in another way; one line with the remedy."""


def java_option(option: str) -> str:
    """Return one option as Spark takes it among others, in quotes where it needs them.

    >>> java_option("-Djava.io.tmpdir=/data/my disk")
    '"-Djava.io.tmpdir=/data/my disk"'
    """
    if _PLAIN.fullmatch(option):
        return option
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def temporary_files(directory: Path) -> str:
    """Return the option with which a JVM has its temporary files in `directory`."""
    return java_option(f"-Djava.io.tmpdir={directory}")


def path_problem(path: Path, what: str) -> str:
    """Return the reason why Spark or the JVM cannot work in `path`, or ''.

    `what` is its name in messages. Blanks and letters of all alphabets are fine, if UTF-8 writes
    them in at most three bytes.
    """
    wrong = next((character for character in str(path) if not _is_usable(character)), "")
    if not wrong:
        return ""
    shown = str(path).encode("utf-8", "backslashreplace").decode()
    remedy = "take another path, of letters, digits, blanks and . _ - only"
    return f"{what} {shown!r}: Spark cannot work in a path with {wrong!a} in it; {remedy}"


def check_path(path: Path, what: str) -> None:
    """Raise PathError if `path_problem` finds a problem."""
    if problem := path_problem(path, what):
        raise PathError(problem)


def _is_usable(character: str) -> bool:
    known = ord(character) <= _LAST and unicodedata.category(character) not in _UNUSABLE
    return known and character not in _SPECIAL
