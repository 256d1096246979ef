"""Write a site into a directory: what has changed since the last time, and nothing else.

A site is sent to others, as evidence is: the paths of this machine are shortened in its pages.

`site.json` in the directory lists the files of the site. A page of a night whose key in it is the
same is not made again. A file whose content is the same is left as it is, so that a program that
copies the site to a web server copies only what has changed.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path, PurePosixPath

from nexmark.errors import NexmarkError
from nexmark.home import write_text
from nexmark.report.host_paths import with_short_paths
from nexmark.static_site.addresses import SitePage, site_pages
from nexmark.static_site.links import with_files
from nexmark.static_site.server import Pages
from nexmark.store import Store
from nexmark.web.request_context import StaticCopy

LIST = "site.json"
_SCHEMA_VERSION = 1
_HTML = ".html"
_SOURCES = frozenset({".py", ".html", ".css", ".js"})


@dataclass
class SiteWritten:
    """What was done to a site: its number of files, and how many were written or removed.

    ``problems`` has a line for each page that could not be made; its old file stays.
    """

    files: int = 0
    written: int = 0
    removed: int = 0
    problems: list[str] = field(default_factory=list)


def write_site(directory: Path, store: Store, now: datetime | None = None) -> SiteWritten:
    """Write the pages of all nights into a directory.

    Args:
        directory: A new or empty directory, or a site that was written before.
        store: The results database.
        now: When the site is written; None for now.

    Raises:
        NexmarkError: The directory has something else in it, or cannot be written.
    """
    try:
        known = _known(directory)
        pages = site_pages(store, _sources())
        copy = StaticCopy(now or datetime.now(UTC), frozenset(page.address for page in pages))
        with Pages(store, copy) as server:
            return _write(directory, pages, known, server)
    except OSError as error:
        raise NexmarkError(
            f"{directory}: cannot write the site: {error}; give another --out"
        ) from None


def _write(
    directory: Path, pages: Sequence[SitePage], known: Mapping[str, str | None], server: Pages
) -> SiteWritten:
    """Write the pages that are not as they were.

    Args:
        directory: The directory of the site.
        pages: All pages and files of the site.
        known: The keys of the files that the site has by their paths.
        server: The pages of the server.
    """
    done, files = SiteWritten(len(pages)), {page.address: page.file for page in pages}
    keys: dict[str, str | None] = {}
    for page in pages:
        path = directory / page.file
        keys[page.file] = page.key
        if page.key and page.key == known.get(page.file) and path.is_file():
            continue
        try:
            content = server.text(page.address)
        except Exception as error:  # any failure of one page: the others are written
            words = " ".join(str(error).split())[:300]
            done.problems.append(f"{page.address}: not written: {type(error).__name__}: {words}")
            keys[page.file] = None
            continue
        if page.file.endswith(_HTML):
            content = with_short_paths(with_files(content, page.address, files))
        if not _has(path, content):
            write_text(path, content)
            done.written += 1
    for file in known.keys() - keys.keys():
        done.removed += _remove(directory, file)
    listed = {"schema_version": _SCHEMA_VERSION, "files": dict(sorted(keys.items()))}
    write_text(directory / LIST, json.dumps(listed, indent=1) + "\n")
    return done


def _known(directory: Path) -> dict[str, str | None]:
    """Return the keys of the files of the site in a directory by their paths; {} for a new one."""
    path = directory / LIST
    if not path.exists():
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            problem = f"is no site and no empty directory (there is no {LIST} in it)"
            raise NexmarkError(f"{directory}: {problem}; give another --out")
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        files = dict(content["files"])
        if content["schema_version"] != _SCHEMA_VERSION:
            raise ValueError(f"its version is not {_SCHEMA_VERSION}")
        if not all(map(_inside, files)):
            raise ValueError("it names a file elsewhere")
    except (ValueError, KeyError, TypeError) as error:
        problem = f"cannot be read ({' '.join(str(error).split())[:100]})"
        raise NexmarkError(f"{path}: {problem}; remove the site and write it again") from None
    return files


def _inside(file: str) -> bool:
    """Tell whether a path of a list leads to a file within the directory of the site."""
    path = PurePosixPath(file)
    return not path.is_absolute() and ".." not in path.parts


def _has(path: Path, content: str) -> bool:
    """Tell whether a file has a content already."""
    try:
        return path.read_bytes() == content.encode()
    except FileNotFoundError:
        return False


def _remove(directory: Path, file: str) -> bool:
    """Remove a file of the site, and the directories that are empty without it."""
    path = directory / file
    existed = path.exists()
    path.unlink(missing_ok=True)
    with suppress(OSError):  # the first directory that is not empty
        for parent in path.relative_to(directory).parents[:-1]:
            (directory / parent).rmdir()
    return existed


def _sources() -> str:
    """Return a text that changes when the code or a template of the pages does."""
    package, content = Path(str(resources.files("nexmark"))), hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.suffix in _SOURCES:
            content.update(path.read_bytes())
    return content.hexdigest()
