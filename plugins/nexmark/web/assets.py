"""Serve style, scripts and the chart library.

The chart library is Vega-Lite from the package ``vl-convert-python``. The bundler of that package
writes it as one file, in a separate process, because this takes two seconds and 150 MB. It does so
once for each version; the file is kept under ``.nexmark/web``.
"""

import hashlib
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib import metadata, resources

from fastapi import APIRouter, HTTPException, Request
from starlette.responses import Response

from nexmark.config import paths
from nexmark.errors import NexmarkError
from nexmark_jobs.host.whole_files import write_whole

LIBRARY = "vega.js"
TYPES = {
    "page.css": "text/css; charset=utf-8",
    **dict.fromkeys(("page.js", "charts.js", LIBRARY), "text/javascript; charset=utf-8"),
}
VEGA_LITE = "6.4"
_BUNDLE = (
    "import sys, vl_convert; "
    f"sys.stdout.write(vl_convert.javascript_bundle(vl_version={VEGA_LITE!r}))"
)
_TIMEOUT_S = 120

router = APIRouter()


@router.get("/assets/{name}")
def asset(request: Request, name: str) -> Response:
    """Return a file; browsers keep it for a year if its address has its current version."""
    if name not in TYPES:
        raise HTTPException(404, f"there is no file {name!r}")
    is_current = request.query_params.get("v") == version(name)
    caching = "private, max-age=31536000, immutable" if is_current else "private, no-cache"
    return Response(content(name), media_type=TYPES[name], headers={"Cache-Control": caching})


@cache
def version(name: str) -> str:
    """Return the version of a file: a text that changes when the file does."""
    if name == LIBRARY:
        return f"{metadata.version('vl-convert-python')}-{VEGA_LITE}"
    return hashlib.sha256(content(name)).hexdigest()[:12]


@cache
def content(name: str) -> bytes:
    """Return the content of a file."""
    if name == LIBRARY:
        return _library()
    return resources.files("nexmark.report").joinpath("static", name).read_bytes()


def _library() -> bytes:
    kept = paths.home() / "web" / f"vega-{version(LIBRARY)}.js"
    with suppress(OSError):
        return kept.read_bytes()
    command = [sys.executable, "-c", _BUNDLE]
    bundled = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=_TIMEOUT_S)
    if bundled.returncode != 0:
        words = bundled.stderr.strip().split("\n")[-1]
        raise NexmarkError(f"the chart library could not be bundled: {words}; run `make env`")
    with suppress(OSError):  # without write permission, each process bundles it again
        write_whole(kept, bundled.stdout)
    return bundled.stdout.encode()
