"""The names of stack frames: the same in both arms, and readable.

What the JVM or Spark numbers as it goes is left out, for it differs from run to run: the stage of
generated code, lambda and hidden classes, accessors, proxies, threads. So are the bridges that the
compilers put in front of a method (`name$`, `name$adapted`).
"""

from __future__ import annotations

import re
from functools import lru_cache

TRUNCATED = "[deeper than the recorder looks]"
NATIVE_SUFFIX = " (native)"

_NUMBERED = (
    (re.compile(r"(GeneratedIteratorForCodegenStage)\d+"), r"\1"),
    (re.compile(r"(\$\$Lambda)(?:\$\d+)?(?:[/.+]0x[0-9a-f]+)?"), r"\1"),
    (re.compile(r"[/+]0x[0-9a-f]+|\.0x[0-9a-f]+(?=\.)"), ""),
    (re.compile(r"(Generated\w*Accessor)\d+"), r"\1"),
    (re.compile(r"(\$Proxy)\d+"), r"\1"),
    (re.compile(r"jdk\.proxy\d+\."), "jdk.proxy."),
    (re.compile(r"(\$anonfun\$\w+?)(?:\$\d+)+(?=$|\$)"), r"\1"),
    (re.compile(r"\$adapted$"), ""),
    (re.compile(r"(?<=[A-Za-z0-9_])\$$"), ""),
)
_THREAD_NUMBERS = re.compile(r"[-_# ]?\d+(?:[-_.]\d+)*$")
_SPECIAL = re.compile(r"[;\n\r\t]")


@lru_cache(maxsize=1 << 16)  # a recording has few methods, and each of them thousands of times
def frame_name(method: str) -> str:
    """`package.Class.method` of a method as `jfr print` names it, without what is numbered."""
    name = method
    for pattern, replacement in _NUMBERED:
        name = pattern.sub(replacement, name)
    return plain(name)


@lru_cache(maxsize=1 << 12)
def thread_name(name: str) -> str:
    """What a thread is for: its name without its number and its task."""
    name = name.partition(" for task ")[0]
    return plain(_THREAD_NUMBERS.sub("", name)) or "thread"


def plain(text: str) -> str:
    """`text` without what separates frames and stacks in a file of collapsed stacks."""
    return _SPECIAL.sub(" ", text).strip()


def label(name: str) -> str:
    """The short form for a box: `Class.method`, of generated code without its outer class."""
    if name.startswith("[") or " " in name.removesuffix(NATIVE_SUFFIX):
        return name
    parts = name.split(".")
    if len(parts) < 3:
        return name
    return f"{parts[-2].removeprefix('GeneratedClass$')}.{parts[-1]}"


def kind(name: str) -> str:
    """Whose code it is: thread, generated, spark, jdk or other."""
    if "GeneratedClass$" in name:
        return "generated"
    if name.startswith(("org.apache.spark.", "org.sparkproject.")):
        return "spark"
    if name.startswith(("java.", "javax.", "jdk.", "sun.", "com.sun.")):
        return "jdk"
    return "other" if "." in name and not name.startswith("[") else "thread"


__all__ = ["NATIVE_SUFFIX", "TRUNCATED", "frame_name", "kind", "label", "plain", "thread_name"]
