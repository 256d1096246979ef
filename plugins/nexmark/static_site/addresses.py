"""The pages and files of a site: their addresses on the server, and their paths in the site.

A site has every page of the menu but the comparison, which needs a server, every query over all
nights of a place from which the gate learns, and every night. A query of a night has a page if the
night is the newest judged one of its engine, or if the query was red in it; so does the evidence
that the night has written. Pages for every query of every night would take ten times the room.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nexmark.config import SIGNOFF_DAG_ID, paths
from nexmark.evidence.night_list import PAGE, overview
from nexmark.evidence.query_grid import query_grid
from nexmark.evidence.signoffs import DRAFT, alarm_file, signoff_page
from nexmark.flames.flame_files import flames_of
from nexmark.model import SUITE, grouped
from nexmark.night.run_directory import RunDirectory
from nexmark.report.rendering import part, place_address
from nexmark.store import Store, history
from nexmark.store.page_keys import night_keys
from nexmark.store.place_history import places
from nexmark.store.reading import of_one_moment
from nexmark.store.table_rows import NightRow
from nexmark.web.assets import TYPES
from nexmark.web.request_context import MENU

LEFT_OUT = frozenset({"/compare"})
"""The pages of the menu that need a server."""
ALARMS = 200
"""The number of newest red verdicts whose queries have pages."""
GRAPHS = ("baseline", "candidate", "difference")
_HASH = 6


@dataclass(frozen=True)
class SitePage:
    """A page or a file: its address on the server, and its path in the site.

    ``key`` changes when the content does; None if the content has to be compared.
    """

    address: str
    file: str
    key: str | None = None


@of_one_moment
def site_pages(store: Store, sources: str) -> list[SitePage]:
    """Return all pages and files of a site; ``sources`` is a part of every key."""
    nights = store.nights()
    keys = {
        night: hashlib.sha256(f"{sources} {key}".encode()).hexdigest()
        for night, key in night_keys(store, nights).items()
    }
    dags = {night.dag_id for night in nights}
    of_queries = _of_queries(store, dags)
    return [*_of_menu(store, len(nights)), *of_queries, *_of_nights(store, nights, keys)]


def _of_menu(store: Store, nights: int) -> Iterator[SitePage]:
    """Yield the pages that are not of one night; ``nights`` is the number of all nights."""
    for _, address, _ in MENU:
        if address not in LEFT_OUT:
            yield SitePage(address, f"{address[1:] or 'index'}.html")
    for number in range(2, -(-nights // PAGE) + 1):
        yield SitePage(f"/nights?page={number}", f"nights-{number}.html")
    for run in dict.fromkeys(row.run for row in store.experiments()):
        yield SitePage(f"/experiment/{part(run)}", f"experiment/{_name(run)}.html")
    for name in TYPES:
        yield SitePage(f"/assets/{name}", f"assets/{name}")


def _of_queries(store: Store, dags: Collection[str]) -> Iterator[SitePage]:
    """Yield the pages of queries over the nights of each place."""
    for measured in places(store, dags):
        grid = query_grid(store, dags, measured.place) if measured.nights else None
        if grid is None:
            continue
        directory = "/".join(["queries", *map(_name, measured.place)])
        yield SitePage(place_address(measured.place), f"{directory}/all.html")
        for line in grid.lines:
            address = place_address(measured.place, line.query)
            yield SitePage(address, f"{directory}/{_name(line.query)}-over-time.html")


def _of_nights(
    store: Store, nights: Sequence[NightRow], keys: Mapping[str, str]
) -> Iterator[SitePage]:
    """Yield the pages and files of all nights; ``keys`` has the key of each night."""
    dags = {night.dag_id for night in nights}
    judged = history.reds(store, nights)[::-1]
    reds = [one for one in judged if one.bad and one.query != SUITE][:ALARMS]
    newest = {engine.line.night.id for engine in overview(store, dags).engines}
    alarms = grouped(reds, lambda one: one.night)
    for night in nights:
        red = {one.query for one in alarms.get(night.id, ())}
        queries = [query for query in night.queries if query in red or night.id in newest]
        yield from _of_night(night, queries, keys[night.id])
        if night.dag_id == SIGNOFF_DAG_ID:
            yield from _of_signoff(store, night)


def _of_night(night: NightRow, queries: Collection[str], key: str) -> Iterator[SitePage]:
    """Yield the pages and files of a night: with evidence, if ``queries`` have pages."""
    address, directory = _place("night", night)
    yield SitePage(address, f"{directory}.html", key)
    if queries and alarm_file(night):
        yield SitePage(f"{address}/evidence", f"{directory}/evidence.html")
    graphs = RunDirectory(Path(night.directory)).flames
    for query in queries:
        of_query, file = f"{address}/query/{part(query)}", f"{directory}/{_name(query)}"
        yield SitePage(of_query, f"{file}.html", key)
        if alarm_file(night, query):
            yield SitePage(f"{of_query}/evidence", f"{file}-evidence.html")
        flames = flames_of(graphs, query)
        for name in GRAPHS if flames and not flames.problem else ():
            yield SitePage(f"{of_query}/flames/{name}", f"{file}-{name}.svg")


def _of_signoff(store: Store, night: NightRow) -> Iterator[SitePage]:
    """Yield the page of a sign-off and its evidence."""
    address, directory = _place("signoff", night)
    yield SitePage(address, f"{directory}.html")
    signoff, bundles = signoff_page(store, night)
    drafts = [DRAFT] if signoff.draft and not bundles else []
    for bundle in (*(one.decision.bundle for one in bundles), *drafts):
        file = f"{directory}/{_name(bundle)}.html"
        yield SitePage(f"{address}/evidence/{part(bundle)}", file)


def _place(kind: str, night: NightRow) -> tuple[str, str]:
    """Return the address of a page of a night, and its path in the site without its ending."""
    address = f"/{kind}/{part(night.dag_id)}/{part(night.run_id)}"
    return address, f"{kind}/{_name(night.dag_id)}/{_name(night.run_id)}"


def _name(text: str) -> str:
    """Return a text as the name of a file; texts that differ have names that differ."""
    name = paths.safe_name(text)
    return name if name == text else f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:_HASH]}"
