"""The home of the example nights, beside the results of a person's own nights."""

import hashlib
import os
import shutil
from importlib import resources
from pathlib import Path

from nexmark.config import load, paths
from nexmark.example.nights import make_nights
from nexmark.home import make_home, write_private
from nexmark.model import Say
from nexmark.store import open_store

_DATABASE = "results.db"
_OTHER_DATABASES = ("NEXMARK_DB", "NEXMARK_AIRFLOW_DB")
_MADE_BY = frozenset({".py", ".json", ".yaml"})


def enter_example_home(say: Say) -> Path:
    """Make the home of this process the example's, and fill it unless it is full; return it.

    It is the directory ``example`` of the home, and has databases of its own: no night of a person
    is read or written. The nights are made again if another version of the package made them.
    """
    home = paths.home()
    if not paths.is_example():
        home = home / "example"
    os.environ["NEXMARK_HOME"] = str(home)
    for name in _OTHER_DATABASES:
        os.environ.pop(name, None)
    make_home()
    version = _version()
    mark = paths.example_mark()
    if mark.exists() and mark.read_text(encoding="utf-8") == version:
        return home
    write_private(mark, "unfinished\n")  # so the evidence of its nights is marked, too
    for directory in ("runs", "signoffs"):
        shutil.rmtree(home / directory, ignore_errors=True)
    unfinished = home / f".{_DATABASE}"
    for file in home.glob(f"{unfinished.name}*"):  # with the log of an interrupted attempt
        file.unlink()
    say("making the example nights; this is done once")
    with open_store(f"sqlite:///{unfinished}") as store:
        make_nights(store, load(_shipped()), say)
    unfinished.replace(home / _DATABASE)
    write_private(mark, version)
    return home


def _shipped() -> Path:
    """Return the directory of the configuration that the package came with."""
    return paths.repository() / "include" / "conf"


def _version() -> str:
    """Return a text that changes when the example, or the gate that judges it, does."""
    content = hashlib.sha256((_shipped() / "gate.yaml").read_bytes())
    for room in ("example", "verdict"):
        for path in sorted(Path(str(resources.files("nexmark"))).joinpath(room).rglob("*")):
            if path.suffix in _MADE_BY:
                content.update(path.read_bytes())
    return content.hexdigest()
