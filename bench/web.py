"""Measure how long the server takes for each page, and a site for all: `nexmark bench web`.

Makes a results database of 400 nights with 23 queries and 10 repetitions each (5 pairs), and asks
for every page several times. Prints the medians of the CPU time: of a page that is the first one
after a night wrote to the database, and of the same page again, for which the server has kept what
it read. Prints the median of the wall-clock time of the first page and the longest one, too. The
exit code is 1 if a page takes more CPU time than its limit. The wall-clock time has no limit: a
page waits only for the database, which is a file, so this time mostly shows what else the machine
does. Its speed at the moment is printed above the pages, as the time of a fixed piece of work.

Then writes the site of all nights twice, and prints its size and the wall-clock times. The exit
code is 1, too, if the first time or the size is beyond its limit.

With `--paint`, every page is opened in an installed Chromium without its cache, from a server on
this machine without a login. The median times of the first contentful paint are printed; the exit
code is 1, too, if one is beyond its limit.
"""

from __future__ import annotations

import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias

from bench.arguments import Parser, whole
from bench.chromium import FLAGS, find_chromium
from bench.web_nights import SLOWER, fill
from nexmark.config.fields import STANDARD_QUERIES
from nexmark.store import Store, open_store
from nexmark.store.kept_reads import KeptReads
from nexmark.web.auth import AirflowAccess
from nexmark.web.entry import keep_loaded

if TYPE_CHECKING:
    from playwright.sync_api import Page

LIMIT_MS = 150
"""The most CPU time of the server for a page, in milliseconds."""
PAINT_MS = 500
"""The most time until the first contentful paint of a page, in milliseconds."""
SITE_S, SITE_MB = 60, 100
"""The most time and room of a site of 400 nights."""

_FIRST_PAINT = """() => new Promise(found => new PerformanceObserver((list, observer) => {
    const paint = list.getEntriesByName("first-contentful-paint")[0];
    if (paint) { observer.disconnect(); found(paint.startTime); }
}).observe({type: "paint", buffered: true}))"""
"""Waits in a page for its first contentful paint, and returns its moment in milliseconds."""


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

    def is_running(self, dag_id: str, run_id: str) -> bool:
        """Return False: no run is under way."""
        return False

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


_Pages: TypeAlias = Sequence[tuple[str, str]]
"""The name and the address of each page."""


def pages_of(run: str, nights: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the address of every page; ``run`` is the newest of the nights."""
    night = f"/night/{run}"
    new = (nights - 1) // 10
    old = max(0, new - 1)
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
    yield "Compare", f"/compare?new={new:02d}{'b' * 14}&old={old:02d}{'b' * 14}"
    yield "Sign-off", "/signoffs"
    yield "Sign-off, one", f"/signoff/{run}"
    yield "Gate health", "/gate"
    yield "Acks", "/acks"


def main(arguments: list[str] | None = None) -> int:
    """Print a table with a line for each page; return 0, or 1 if a page is too slow."""
    parser = Parser(prog="nexmark bench web")
    parser.add_argument("--nights", type=whole(1, 10_000), default=400)
    parser.add_argument("--pairs", type=whole(3, 100), default=5)
    parser.add_argument(
        "--times", type=whole(1, 1000), default=7, help="how often each page is asked for"
    )
    parser.add_argument(
        "--paint", action="store_true", help="also measure the first paint in Chromium"
    )
    options = parser.parse_args(arguments)
    if options.paint and find_chromium() is None:
        print(
            "bench.web: chromium is not installed; Debian: apt-get install chromium",
            file=sys.stderr,
        )
        return 1
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
        pages = list(pages_of(run, options.nights))
        slow = [name for name, cpu in _measure(url, pages, options.times) if cpu > LIMIT_MS]
        paints = dict(_paints(url, pages, options.times)) if options.paint else {}
    if slow:
        print(f"slower than {LIMIT_MS} ms: {', '.join(slow)}", file=sys.stderr)
    late = [name for name, paint in paints.items() if paint > PAINT_MS]
    if late:
        print(f"painted later than {PAINT_MS} ms: {', '.join(late)}", file=sys.stderr)
    large = elapsed > SITE_S or size_of_site > SITE_MB
    if large:
        print(f"the site: more than {SITE_S} s or {SITE_MB} MB", file=sys.stderr)
    return 1 if slow or late or large else 0


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


def _measure(url: str, pages: _Pages, times: int) -> Iterator[tuple[str, float]]:
    """Print the figures of each page; yield its name and the CPU time that has a limit, in ms."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from fastapi.testclient import TestClient

    from nexmark.web.web_app import Database, create_app

    database = Database(url)
    client = TestClient(create_app(database, Anyone()))

    def timed(address: str) -> tuple[float, float, float]:
        """Return the milliseconds of CPU and wall-clock time of a page, and its size in kB."""
        wall_before, cpu_before = time.perf_counter(), time.process_time()
        response = client.get(address)
        cpu, wall = time.process_time() - cpu_before, time.perf_counter() - wall_before
        if response.status_code != 200:
            raise SystemExit(f"{address}: {response.status_code}: {response.text[:300]}")
        return 1000 * cpu, 1000 * wall, len(response.content) / 1000

    client.get("/acks")  # opens the database, compiles templates
    keep_loaded()
    print(f"a loop of a million additions takes {1000 * _fixed_work():.0f} ms now")
    print(f"{'page':<18} {'first':>6} {'again':>6} {'wall':>6} {'worst':>6} {'kB':>6}")
    for name, address in pages:
        firsts, agains = [], []
        for _ in range(times):
            database.store().kept = KeptReads()
            firsts.append(timed(address))
            agains.append(timed(address))
        first, wall = (median(one[place] for one in firsts) for place in (0, 1))
        again, worst = median(one[0] for one in agains), max(one[1] for one in firsts)
        figures = (first, again, wall, worst, firsts[0][2])
        print(f"{name:<18} {' '.join(f'{figure:>6.0f}' for figure in figures)}", flush=True)
        yield name, max(first, again)


def _fixed_work() -> float:
    """Return the CPU-seconds of a fixed piece of work, the median of five."""
    times = []
    for _ in range(5):
        before, total = time.process_time(), 0
        for number in range(1_000_000):
            total += number
        times.append(time.process_time() - before)
    return median(times)


def _paints(url: str, pages: _Pages, times: int) -> Iterator[tuple[str, float]]:
    """Print and yield the name of each page, and its median first contentful paint in ms."""
    from playwright.sync_api import sync_playwright

    with _served(url) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.context.new_cdp_session(page).send("Network.setCacheDisabled", {"cacheDisabled": True})
        first_paint(page, f"{address}/acks")  # opens the database, compiles templates
        print(f"{'first paint, ms':<18} {'median':>6} {'worst':>6}")
        for name, path in pages:
            paints = [first_paint(page, address + path) for _ in range(times)]
            print(f"{name:<18} {median(paints):>6.0f} {max(paints):>6.0f}", flush=True)
            yield name, median(paints)
        browser.close()


def first_paint(page: Page, address: str) -> float:
    """Open a page; return the milliseconds from asking for it to its first contentful paint."""
    response = page.goto(address)
    if response is None or not response.ok:
        raise SystemExit(f"{address}: {response.status if response else 'no answer'}")
    return float(page.evaluate(_FIRST_PAINT))


@contextmanager
def _served(url: str) -> Iterator[str]:
    """Serve the pages of a results database without a login; yield the address."""
    import uvicorn

    from nexmark.web.web_app import Database, create_app

    app = create_app(Database(url), Anyone())
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


if __name__ == "__main__":
    sys.exit(main())
