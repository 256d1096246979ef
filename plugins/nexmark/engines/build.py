"""Describe a Spark build: a hash over every file is its name, and a manifest checks it quickly."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationError

from nexmark.config import BuildSource, paths
from nexmark.engines.prerequisites import job_python
from nexmark.engines.short_runs import spark_conf_dir
from nexmark.errors import NexmarkError
from nexmark.home import write_text
from nexmark_jobs.host.processes import plain_environment
from nexmark_jobs.redaction import without_secrets

_KINDS = ("pypi", "tarball", "directory")


class BuildError(NexmarkError):
    """A Spark build is not available; one line with what, where and the remedy."""


@dataclass(frozen=True)
class Build:
    """A Spark build on this machine; its id is the hash of every file's path and content.

    `revision` is the hash of the commit that it was made from, "" if that is not known.
    """

    id: str
    version: str
    spark_home: Path
    source: str
    revision: str = ""


def parse_source(text: str) -> BuildSource:
    """Read a build as a DAG param or a command line has it.

    It is `pypi:4.3.0`, `tarball:PATH-OR-URL#sha512=HEX` or `directory:PATH`; any other text is a
    BuildError.
    """
    kind, _, value = text.strip().partition(":")
    forms = "pypi:4.3.0, tarball:PATH-OR-URL#sha512=HEX or directory:PATH"
    fields: dict[str, str] = {kind: value}
    if kind == "tarball":
        fields["tarball"], separator, fields["sha512"] = value.rpartition("#sha512=")
        if not separator:
            raise BuildError(f"build {text!r}: a tarball needs its #sha512=HEX; add it")
    elif kind not in _KINDS:
        near = get_close_matches(kind, _KINDS, n=1) if value else []
        remedy = f"did you mean '{near[0]}:{value}'?" if near else f"write {forms}"
        raise BuildError(f"build {text!r}: not known; {remedy}")
    try:
        return BuildSource.model_validate(fields)
    except ValidationError as errors:
        error = errors.errors(include_url=False)[0]
        problem = f"{kind} is not well-formed; write {forms}"
        if error["type"] == "value_error":
            problem = str(error["ctx"]["error"])
        shown = f"build {text!r}" if without_secrets(text) == text else "build"
        raise BuildError(f"{shown}: {problem}") from None


def find_spark_home(directory: Path) -> Path:
    """Return the SPARK_HOME in `directory`: itself, its `pyspark`, or its only subdirectory."""
    candidates = [directory, directory / "pyspark"]
    subdirectories = [p for p in directory.iterdir() if p.is_dir()] if directory.is_dir() else []
    if len(subdirectories) == 1:
        candidates += subdirectories
    for candidate in candidates:
        if (candidate / "bin" / "spark-submit").is_file() and _core_jars(candidate):
            return candidate
    problem = "not a Spark build (no bin/spark-submit beside jars/spark-core_*.jar)"
    raise BuildError(f"{directory}: {problem}; give the directory that has bin/ and jars/")


def spark_version(spark_home: Path) -> str:
    """Return the version of the jars of `spark_home`, e.g. `4.3.0` or `4.4.0-SNAPSHOT`."""
    names = [re.fullmatch(r"spark-core_[0-9.]+-(.+)\.jar", p.name) for p in _core_jars(spark_home)]
    versions = sorted({match[1] for match in names if match})
    if len(versions) != 1:
        listed = " and ".join(versions) or "none"
        problem = f"expected one version of spark-core, found {listed}"
        raise BuildError(f"{spark_home}/jars: {problem}; give a build that is whole")
    return versions[0]


def known_version(source: BuildSource) -> str:
    """Return the version of a build, if it shows without fetching or unpacking the build, or ''."""
    if source.directory is not None:
        with suppress(BuildError, OSError):
            return spark_version(find_spark_home(Path(source.directory).expanduser()))
    named = re.search(r"spark-([0-9]+\.[0-9]+\.[0-9]+[^/]*?)-bin", source.tarball or "")
    return source.pypi or (named[1] if named else "")


def _core_jars(spark_home: Path) -> list[Path]:
    return list((spark_home / "jars").glob("spark-core_*.jar"))


_ID_DIGITS = 16
_FORMAT = 1


@dataclass(frozen=True)
class FileRecord:
    """One file: size in bytes, modification time in ns, SHA-256 of the content."""

    size: int
    mtime_ns: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """Every file of a build by its path relative to SPARK_HOME."""

    files: Mapping[str, FileRecord]

    @property
    def id(self) -> str:
        """Return the hash of the sorted (path, SHA-256) pairs, 16 hexadecimal digits."""
        lines = (f"{path}\0{record.sha256}\n" for path, record in sorted(self.files.items()))
        return hashlib.sha256("".join(lines).encode()).hexdigest()[:_ID_DIGITS]

    def changed(self, root: Path, *, full: bool = False) -> list[str]:
        """Return the paths that are missing, new, or of another size or time.

        With `full`, files with other bytes are among them, too.
        """
        now = dict(_walk(root))
        different = sorted(set(now) ^ set(self.files))
        for path, stat in now.items():
            record = self.files.get(path)
            same = record and (record.size, record.mtime_ns) == (stat.st_size, stat.st_mtime_ns)
            if full:
                same = record and record.sha256 == _sha256(root / path)
            if record and not same:
                different.append(path)
        return different

    def write(self, path: Path) -> None:
        """Write it as JSON, to a temporary name first."""
        files = {name: [r.size, r.mtime_ns, r.sha256] for name, r in self.files.items()}
        write_text(path, json.dumps({"format": _FORMAT, "id": self.id, "files": files}))

    @classmethod
    def read(cls, path: Path) -> "Manifest | None":
        """Return the manifest in `path`; None if there is no valid one."""
        try:
            content = json.loads(path.read_text())
            if content["format"] != _FORMAT:
                return None
            return cls({name: FileRecord(*record) for name, record in content["files"].items()})
        except (OSError, ValueError, KeyError, TypeError):
            return None


def manifest_in_place(spark_home: Path, cache: Path) -> Path:
    """Return the file with the manifest of a build that is used where it is."""
    key = hashlib.sha256(str(spark_home).encode()).hexdigest()[:24]
    return cache / "directories" / f"{key}.json"


def scan(root: Path) -> Manifest:
    """Read every file below `root`, except compiled Python files, which come and go."""
    records = (
        (path, FileRecord(stat.st_size, stat.st_mtime_ns, _sha256(root / path)))
        for path, stat in _walk(root)
    )
    return Manifest(dict(records))


def _walk(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    for directory, subdirectories, names in os.walk(root):
        subdirectories[:] = [name for name in subdirectories if name != "__pycache__"]
        for name in names:
            path = Path(directory, name)
            if path.is_file():
                yield path.relative_to(root).as_posix(), path.stat()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def local_environment(spark_home: Path, scratch: Path) -> dict[str, str]:
    """Return the environment of an application in local mode, or with a cluster in its own process.

    The application writes its temporary files to `scratch`.
    """
    return plain_environment() | {
        "SPARK_HOME": str(spark_home),
        "SPARK_CONF_DIR": str(spark_conf_dir(paths.home())),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(scratch),
        "TMPDIR": str(scratch),
        "PYSPARK_PYTHON": job_python(spark_version(spark_home)),
    }
