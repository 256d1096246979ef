"""A Spark build on demand: `python -m nexmark.build`, which is `make build`.

Runs the DAG `nexmark_build` as `make run` runs a night.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from nexmark.command import ending, engine_of, night_params, night_parser
from nexmark.config import BUILD_DAG_ID, load
from nexmark.errors import NexmarkError
from nexmark.run import run_night


def main(arguments: Sequence[str] | None = None) -> int:
    """Test a build; 0 if it is as good, 1 if not or if it cannot be run, 130 if interrupted."""
    parser = night_parser("nexmark.build", __doc__)
    parser.add_argument("--build", default="", help="the build to test, as pypi:4.3.0")
    return ending(_test, parser.parse_args(arguments))


def _test(options: argparse.Namespace) -> int:
    if not options.build:
        raise NexmarkError(
            "build: none is given; give BUILD=pypi:4.3.0, tarball:PATH-OR-URL#sha512=HEX or "
            "directory:PATH"
        )
    config = load()
    engine = engine_of(config, options.engine).name
    params = {"build": options.build, "engine": engine, **night_params(config, options)}
    return run_night(config, BUILD_DAG_ID, engine, params)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUNBUFFERED", "1")
    sys.exit(main())
