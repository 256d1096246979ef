"""Read from which revision of its source a Spark build was made."""

import re
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

_HASH = "[0-9a-f]{7,64}"
_RELEASE = re.compile(rf"\(git revision ({_HASH})\)")
_PROPERTY = re.compile(rf"^revision=({_HASH})\s*$", re.MULTILINE)
#: The id of a build in our cache has 16 digits, and is no revision.
_NAMED = re.compile(r"(?<![0-9A-Za-z])([0-9a-f]{40,64}|[0-9a-f]{7,12})(?![0-9A-Za-z])")
_PROPERTIES = "spark-version-info.properties"
#: The jars that have had the properties: spark-core first, spark-common-utils since Spark 3.5.
_JARS = ("spark-core_*.jar", "spark-common-utils_*.jar")
_MOST_BYTES = 1 << 16
_WHOLE = 40


def revision_of(spark_home: Path, source: str) -> str:
    """Return the hash of the commit that a build was made from, or its first digits, or ``""``.

    The file RELEASE, which `dev/make-distribution.sh` writes, goes before the properties in the
    jars, and these before the name of the snapshot. Where the jars have all digits of the hash in
    RELEASE, these are returned.

    Args:
        spark_home: The directory of the build.
        source: Where it came from, in the form of the DAG's param `candidate`.
    """
    release, of_jars = _in_release(spark_home / "RELEASE"), _in_jars(spark_home / "jars")
    if release and not of_jars.startswith(release):
        return release
    return of_jars or _in_name(source)


def _in_release(file: Path) -> str:
    with suppress(OSError), file.open("rb") as stream:
        match = _RELEASE.search(stream.read(_MOST_BYTES).decode(errors="replace"))
        return match[1] if match else ""
    return ""


def _in_jars(jars: Path) -> str:
    for pattern in _JARS:
        for jar in sorted(jars.glob(pattern)):
            if match := _PROPERTY.search(_properties(jar)):
                return match[1]
    return ""


def _properties(jar: Path) -> str:
    """Return the properties of the version in a jar; '' if there are none, or it is damaged."""
    damaged = (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError)
    with (
        suppress(OSError, KeyError, *damaged),
        zipfile.ZipFile(jar) as archive,
        archive.open(_PROPERTIES) as stream,
    ):
        return stream.read(_MOST_BYTES).decode(errors="replace")
    return ""


def _in_name(source: str) -> str:
    """Return the hash in the name of a tarball or a directory.

    Fewer digits than a whole hash count only with a letter and a digit among them: a date has no
    letter, and a word has no digit.
    """
    kind, _, place = source.partition(":")
    if kind == "pypi":
        return ""
    name = place.rpartition("#sha512=")[0] if kind == "tarball" else place
    for digits in _NAMED.findall(name.rstrip("/").rpartition("/")[2]):
        mixed = re.search("[a-f]", digits) and re.search("[0-9]", digits)
        if len(digits) >= _WHOLE or mixed:
            return str(digits)
    return ""
