"""Measure how long the server takes for each page, and a site for all: `nexmark bench web`.

Makes a results database of 400 nights with 23 queries and 10 repetitions each (5 pairs), and asks
for every page several times. Prints the medians of CPU and wall-clock time, and the longest
wall-clock time. The exit code is 1 if a page takes more CPU time than its limit. The wall-clock
time has no limit: a page waits only for the database, which is a file, so this time mostly shows
what else the machine does.

Then writes the site of all nights twice, and prints its size and the wall-clock times. The exit
code is 1, too, if the first time or the size is beyond its limit.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Collection, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from bench.arguments import Parser, whole
from bench.web_nights import SLOWER, fill
from nexmark.config.fields import STANDARD_QUERIES
from nexmark.store import Store, open_store
from nexmark.web.auth import AirflowAccess
from nexmark.web.entry import keep_loaded

LIMIT_MS = 150
"""The most CPU time of the server for a page, in milliseconds."""
SITE_S, SITE_MB = 60, 100
"""The most time and room of a site of 400 nights."""


class Anyone(AirflowAccess):
    """Lets everybody see everything: the benchmark measures the pages, not Airflow's login."""

    @property
    def user(self) -> Any:
        """Return a dependency of FastAPI that gives everybody the same name."""

        async def user() -> str:
            return "bench"

        return user

    def name(self, user: str) -> str:
        """Return the name of a user."""
        return user

    def readable(self, user: str, dags: Collection[str]) -> frozenset[str]:
        """Return all DAGs: everybody may read them."""
        return frozenset(dags)

    def next_runs(self, dags: Collection[str]) -> dict[str, Any]:
        """Return no run: nothing is scheduled."""
        return {}

    def may_accept(self, user: str) -> bool:
        """Return True: everybody may accept a run."""
        return True

    def login_url(self) -> str:
        """Return the start page: there is no login."""
        return "/"

    def origins(self) -> frozenset[str]:
        """Return no origin: no other site may send forms."""
        return frozenset()

    def secret(self) -> str:
        """Return the key with which forms are signed."""
        return "bench"


def pages_of(run: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the address of every page."""
    night = f"/night/{run}"
    yield "Overview", "/"
    yield "Night", "/newest"
    yield "Night, sorted", f"{night}?sort=cpu"
    yield "Nights", "/nights"
    yield "Nights, last page", "/nights?page=8"
    yield "Query, red", f"{night}/query/{SLOWER[0]}"
    yield "Query, green", f"{night}/query/q0"
    yield "Nights, filtered", "/nights?red=1&search=4.3.0"
    yield "Queries", "/queries"
    yield "Queries, summed", "/queries?since=first&sort=since"
    yield "Query, all nights", f"/query/{SLOWER[0]}"
    yield "Builds", "/builds"
    yield "Compare", f"/compare?new={'39' + 'b' * 14}&old={'38' + 'b' * 14}"
    yield "Sign-off", "/signoffs"
    yield "Sign-off, one", f"/signoff/{run}"
    yield "Gate health", "/gate"
    yield "Acks", "/acks"


def main(arguments: list[str] | None = None) -> int:
    """Print a table with a line for each page; return 0, or 1 if a page is too slow."""
    parser = Parser(prog="bench.web")
    parser.add_argument("--nights", type=whole(1, 10_000), default=400)
    parser.add_argument("--pairs", type=whole(3, 100), default=5)
    parser.add_argument(
        "--times", type=whole(1, 1000), default=7, help="how often each page is asked for"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="nexmark-web-") as directory:
        url = f"sqlite:///{Path(directory) / 'results.db'}"
        queries = STANDARD_QUERIES[:23]
        with open_store(url) as store:
            run = fill(store, options.nights, queries, options.pairs)
            elapsed, size_of_site = _site(store, Path(directory) / "site")
        size = (Path(directory) / "results.db").stat().st_size / 1e6
        print(
            f"{options.nights} nights x {len(queries)} queries x {2 * options.pairs} repetitions, "
            f"{size:.0f} MB; milliseconds of the server, {options.times} times each"
        )
        slow = [name for name, cpu in _measure(url, run, options.times) if cpu > LIMIT_MS]
    if slow:
        print(f"slower than {LIMIT_MS} ms: {', '.join(slow)}", file=sys.stderr)
    large = elapsed > SITE_S or size_of_site > SITE_MB
    if large:
        print(f"the site: more than {SITE_S} s or {SITE_MB} MB", file=sys.stderr)
    return 1 if slow or large else 0


def _site(store: Store, directory: Path) -> tuple[float, float]:
    """Write the site twice, and print its figures; return the seconds of the first time, and MB."""
    from nexmark.static_site.site_files import write_site

    times = []
    for _ in range(2):
        before = time.perf_counter()
        done = write_site(directory, store)
        times.append(time.perf_counter() - before)
        if done.problems:
            raise SystemExit("\n".join(done.problems))
    size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) / 1e6
    print(f"site: {done.files} files, {size:.0f} MB, {times[0]:.1f} s; again: {times[1]:.1f} s")
    return times[0], size


def _measure(url: str, run: str, times: int) -> Iterator[tuple[str, float]]:
    """Print the figures of each page; yield its name and its median CPU time in milliseconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from fastapi.testclient import TestClient

    from nexmark.web.web_app import Database, create_app

    client = TestClient(create_app(Database(url), Anyone()))
    client.get("/acks")  # opens the database, compiles templates
    keep_loaded()
    print(f"{'page':<18} {'CPU':>6} {'wall':>6} {'worst':>6} {'kB':>6}")
    for name, address in pages_of(run):
        wall_ms, cpu_ms = [], []
        for _ in range(times):
            wall_before, cpu_before = time.perf_counter(), time.process_time()
            response = client.get(address)
            wall_ms.append(1000 * (time.perf_counter() - wall_before))
            cpu_ms.append(1000 * (time.process_time() - cpu_before))
            if response.status_code != 200:
                raise SystemExit(f"{name}: {response.status_code}: {response.text[:300]}")
        size = len(response.content) / 1000
        figures = (median(cpu_ms), median(wall_ms), max(wall_ms), size)
        print(f"{name:<18} {' '.join(f'{figure:>6.0f}' for figure in figures)}", flush=True)
        yield name, median(cpu_ms)


if __name__ == "__main__":
    sys.exit(main())
