"""The builds among which the first bad one is looked for, as a person gives them."""

from __future__ import annotations

import re
from pathlib import Path

from nexmark.engines import parse_source
from nexmark.errors import NexmarkError


def read_builds(good: str, bad: str, between: str) -> list[str]:
    """Good, those between in their order, bad; NexmarkError for one that cannot be.

    `between` is a file (one build a line, lines with # are comments) or names with commas between.
    """
    for name, value in (("--good", good), ("--bad", bad), ("--builds", between)):
        if not value.strip():
            raise NexmarkError(f"bisect: {name} is not given; give {name} ...")
    good, bad = _named("--good", good), _named("--bad", bad)
    listed = [_named("--builds", text) for text in _listed(between)]
    listed = [build for build in listed if build not in (good, bad)]
    builds = [good, *listed, bad]
    twice = [build for build in builds if builds.count(build) > 1]
    if twice:
        raise NexmarkError(f"bisect: build {short(twice[0])} is there twice; list it once")
    if not listed:
        raise NexmarkError("--builds: there is none between --good and --bad; give those that are")
    return builds


def short(build: str) -> str:
    """A build for a table: a tarball by its file name, a directory by its end."""
    kind, _, value = build.partition(":")
    if kind == "tarball":
        return value.rpartition("#sha512=")[0].rpartition("/")[2]
    if kind == "directory":
        return "/".join(Path(value).parts[-2:])
    return build


def _listed(between: str) -> list[str]:
    path = Path(between).expanduser()
    if re.match(r"(pypi|tarball|directory):", between.strip()):
        found = between.split(",")
        if not all(text.strip() for text in found):
            raise NexmarkError(f"--builds: an empty name in {between!r}; write them like a,b,c")
    elif path.is_file():
        lines = path.read_text(encoding="utf-8").splitlines()
        found = [line for line in lines if not line.lstrip().startswith("#")]
    else:
        raise NexmarkError(
            f"--builds: {between!r} is neither a file nor builds; give a file with a build a line, "
            "or pypi:4.1.3,pypi:4.1.4"
        )
    return [text.strip() for text in found if text.strip()]


def _named(where: str, text: str) -> str:
    """Return a build in its usual form; a NexmarkError names the place of a wrong one."""
    try:
        return str(parse_source(text))
    except NexmarkError as error:
        raise NexmarkError(f"{where}: {error}") from None
