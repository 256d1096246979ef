"""Take pictures of the pages of the newest night: `nexmark bench screenshots`.

Starts the API server with the results of this home, logs in as a person does, and opens the pages
in an installed Chromium.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.arguments import Parser, given, port
from bench.chromium import FLAGS, find_chromium
from nexmark.airflow_site.airflow_home import (
    API_SERVER,
    Components,
    airflow_environment,
    airflow_home,
    check_port,
    prepare,
)
from nexmark.config import load, paths
from nexmark.errors import NexmarkError
from nexmark.reaper import reaper_of_command
from nexmark.report.rendering import part
from nexmark.terminal import run_command
from nexmark.web.entry import PREFIX

if TYPE_CHECKING:
    from playwright.sync_api import Page

LAPTOP, PHONE = (1280, 800), (390, 844)
TALLEST = 1600
"""The largest height of a picture, in pixels: the page below it is cut off."""


def main(arguments: list[str] | None = None) -> int:
    """Write the pictures; return 0, or 1 after an error, which is printed in one line."""
    parser = Parser(prog="nexmark bench screenshots", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=given, default=paths.repository() / "docs" / "images")
    parser.add_argument("--port", type=port, default=8081)
    parser.add_argument("--query", type=given, help="of the query page (default: the first line)")
    return run_command(partial(_run, parser.parse_args(arguments)))


def _run(options: argparse.Namespace) -> int:
    executable = find_chromium()
    if executable is None:
        raise NexmarkError("chromium is not installed; Debian: apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NexmarkError("playwright is not installed; `make env-dev`") from None
    run, query = _newest(options.query)
    Path(options.out).mkdir(parents=True, exist_ok=True)
    with _served(options.port) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        for name, path, look in _pictures(run, query):
            context = browser.new_context(**look)
            page = context.new_page()
            _log_in(page, address)
            _take(page, f"{address}{path}", Path(options.out) / f"{name}.png")
            print(Path(options.out) / f"{name}.png", flush=True)
            context.close()
        browser.close()
    return 0


def _newest(query: str) -> tuple[str, str]:
    """Return the newest night, and `query` or else the query that needs attention most."""
    from nexmark.evidence.night_evidence import SORTS, night_evidence
    from nexmark.store import open_store

    with open_store(paths.database_url()) as store:
        nights = store.nights(1)
        if not nights:
            raise NexmarkError("there is no night to take pictures of; `nexmark run` first")
        lines = sorted(night_evidence(store, nights[0], deep=False).lines, key=SORTS["attention"])
    return nights[0].id, query or (lines[0].row.query if lines else "")


def _pictures(run: str, query: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each picture: its name, the path of its page, and the options of its browser window."""
    dag, _, run_id = run.partition("/")
    night = f"{PREFIX}/night/{part(dag)}/{part(run_id)}"
    laptop, phone = _look(LAPTOP), _look(PHONE)
    yield "airflow", f"/dags/{dag}/runs/{part(run_id)}/plugin/nexmark-night", laptop
    yield "overview", f"{PREFIX}/", laptop
    yield "night", night, laptop
    yield "night-dark", night, {**laptop, "color_scheme": "dark"}
    yield "night-phone", night, phone
    yield "query", f"{night}/query/{query}", laptop
    yield "gate", f"{PREFIX}/gate", laptop


def _look(size: tuple[int, int]) -> dict[str, Any]:
    return {"viewport": {"width": size[0], "height": size[1]}, "color_scheme": "light"}


@contextmanager
def _served(port: int) -> Iterator[str]:
    """Start Airflow's API server; yield its address. The server ends with the context."""
    check_port(port, "nexmark bench screenshots --port PORT")
    environment = airflow_environment(load(), port)
    logs = paths.home() / "logs"
    with reaper_of_command(environment), closing(Components(environment, port, logs)) as components:
        prepare(environment)
        components.bring_up(API_SERVER)
        yield f"http://127.0.0.1:{port}"


def _log_in(page: Page, address: str) -> None:
    passwords: Mapping[str, str] = json.loads((airflow_home() / "passwords.json").read_text())
    user, password = next(iter(passwords.items()))
    page.goto(address)
    page.locator("input[name=username]").fill(user)
    page.locator("input[name=password]").fill(password)
    page.locator("button[type=submit]").click()
    page.wait_for_url(lambda url: "/auth/" not in url)


def _take(page: Page, address: str, path: Path) -> None:
    page.goto(address)
    if "/plugin/" in address:
        page.frame_locator("iframe").first.locator("main").wait_for()
        page.screenshot(path=path)
        return
    if page.locator("[data-chart]").count():
        page.wait_for_selector("html[data-drawn]")
    height = int(page.evaluate("document.documentElement.scrollHeight"))
    width = (page.viewport_size or {"width": LAPTOP[0]})["width"]
    page.set_viewport_size({"width": width, "height": min(height, TALLEST)})
    page.screenshot(path=path)


if __name__ == "__main__":
    sys.exit(main())
