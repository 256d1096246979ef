"""The pages in a real browser, inside a real Airflow: seen, sorted, acknowledged, refused."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

import pytest

from bench.web import PAINT_MS, first_paint
from nexmark.report.rendering import part
from tests.site import DAG_ID
from tests.unit.web.pages import EVERYWHERE
from tests.web.accessibility import FAULTS
from tests.web.conftest import Ui, log_in

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, FrameLocator, Page

pytestmark = pytest.mark.slow

PATHS = (*EVERYWHERE, "/assets/page.css")


def status(ui: Ui, path: str, token: str = "", **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(f"{ui.address}/nexmark{path}", headers=headers)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def of(ui: Ui, *more: str) -> str:
    dag, _, run = ui.newest.partition("/")
    return "/".join([f"/night/{part(dag)}/{part(run)}", *more])


def inside(page: Page) -> FrameLocator:
    """Our page within Airflow's."""
    return page.frame_locator("iframe").first


@pytest.mark.parametrize("path", PATHS)
def test_without_a_login_nothing_is_shown(ui: Ui, path: str) -> None:
    code, text = status(ui, path)
    assert code == 401
    assert "q5" not in text
    assert status(ui, path, token="not-a-token")[0] in (401, 403)


def test_a_token_of_airflow_lets_in(ui: Ui) -> None:
    code, text = status(ui, "/", ui.airflow.token)
    assert code == 200
    assert "RED" in text


def test_the_menu_of_airflow_leads_to_all_engines_and_on_to_a_query(page: Page, ui: Ui) -> None:
    page.goto(ui.address)
    # Airflow draws its menu again when its translations arrive; a click between the two is lost.
    page.wait_for_load_state("networkidle")
    page.get_by_role("link", name="Nexmark", exact=True).first.click()
    page.wait_for_url("**/plugin/nexmark")
    heading = inside(page).get_by_role("heading", level=1)
    heading.wait_for()
    assert "RED" in heading.inner_text()
    engine = inside(page).locator("table").first.locator("tbody tr").first
    assert "RED" in engine.inner_text()
    next_run = engine.locator("td").last.inner_text()
    assert re.fullmatch(r"20\d\d-\d\d-\d\d 22:00( UTC)?", next_run)
    inside(page).locator("table.map a.bad").last.click()
    inside(page).locator("#plan").wait_for()
    inside(page).get_by_role("link", name="Night", exact=True).click()
    inside(page).locator("table.night").wait_for()


@pytest.mark.parametrize(
    ("tab", "seen"),
    [
        ("/plugin/nexmark-dag", "RED"),
        ("/runs/{run}/plugin/nexmark-night", "RED"),
        ("/runs/{run}/tasks/q5.record/plugin/nexmark-query", "q5"),
        ("/tasks/q5.record/plugin/nexmark-task", "q5"),
    ],
)
def test_a_dag_a_run_and_a_task_have_a_tab(
    page: Page, ui: Ui, artifacts: Path, tab: str, seen: str
) -> None:
    page.goto(f"{ui.address}/dags/{DAG_ID}{tab.format(run=quote(ui.run_id, safe=''))}")
    heading = inside(page).get_by_role("heading", level=1)
    heading.wait_for()
    assert seen in heading.inner_text()
    page.screenshot(path=artifacts / f"in-airflow{re.sub(r'[^a-z]', '-', tab)}.png")


def test_airflows_form_shows_what_matters_and_folds_the_rest(page: Page, ui: Ui) -> None:
    page.goto(f"{ui.address}/dags/{DAG_ID}")
    page.get_by_role("button", name="Trigger Dag").first.click()
    fields = page.locator("[id^=element_]")
    fields.first.wait_for()
    shown = [field.get_attribute("id") for field in fields.all() if field.is_visible()]
    assert shown == ["element_candidate", "element_workload", "element_queries"]
    page.get_by_role("button", name="Where it runs").click()
    page.locator("#element_cluster").wait_for()


def test_airflow_shows_a_night_as_five_boxes(page: Page, ui: Ui, artifacts: Path) -> None:
    """Its list, opened, has the queries in the order of measurement: q2 before q10."""
    page.goto(f"{ui.address}/dags/{DAG_ID}")
    page.get_by_role("button", name="Show Graph").click()
    boxes = page.locator(".react-flow__node")
    boxes.nth(4).wait_for()
    names = [text.partition("\n")[0] for text in boxes.all_inner_texts()]
    assert names == ["prepare", "queries", "confirmation", "verdict", "end"]
    page.screenshot(path=artifacts / "graph-in-airflow.png")
    rows = ui.airflow.ask(f"/ui/grid/structure/{DAG_ID}")
    (queries,) = [row["children"] for row in rows if row["id"] == "queries"]
    labels = [query["label"] for query in queries]
    assert labels[:3] == ["1. q0", "2. q1", "3. q2"]
    assert labels.index("11. q10") == 10


def test_what_needs_attention_is_first_and_it_can_be_sorted(page: Page, ui: Ui) -> None:
    page.goto(f"{ui.address}/nexmark{of(ui)}")
    names = page.locator("table.night tbody th")
    assert names.first.inner_text() == "q3"  # INVALID
    page.get_by_role("link", name="Query", exact=True).click()
    page.wait_for_url("**sort=query")
    assert names.all_inner_texts() == [f"q{number}" for number in range(10)]
    page.get_by_role("link", name="CPU, ratio").click()
    page.wait_for_url("**sort=cpu")
    assert names.first.inner_text() == "q2"


def test_a_query_draws_its_charts_and_asks_nobody_else(page: Page, ui: Ui) -> None:
    asked: list[str] = []
    said: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            said.append(message.text)

    page.on("request", lambda request: asked.append(request.url))
    page.on("console", heard)
    page.goto(f"{ui.address}/nexmark{of(ui)}")
    page.get_by_role("link", name="q2", exact=True).click()
    page.wait_for_selector("html[data-drawn]")
    assert page.locator(".canvas svg").count() == page.locator("[data-chart]").count() > 4
    assert [url for url in asked if not url.startswith((f"{ui.address}/nexmark", "data:"))] == []
    assert said == []  # what the Content-Security-Policy stops would be here


def test_an_attackers_texts_are_texts(page: Page, ui: Ui) -> None:
    for path in (of(ui), of(ui, "query", "q2"), of(ui, "query", "q3"), "/acks", "/gate", "/nights"):
        page.goto(f"{ui.address}/nexmark{path}")
        page.wait_for_load_state("networkidle")
        assert page.evaluate("window.hacked") is None
    page.goto(f"{ui.address}/nexmark{of(ui, 'query', 'q2')}")
    assert "<script>window.hacked=1</script>" in page.locator(".what").first.inner_text()


def test_an_ack_is_recorded_in_the_users_name_and_shown(page: Page, ui: Ui) -> None:
    """Within Airflow's page, which takes away what its frames need not do."""
    run = quote(ui.run_id, safe="")
    page.goto(f"{ui.address}/dags/{DAG_ID}/runs/{run}/tasks/q2.record/plugin/nexmark-query")
    frame = inside(page)
    form = frame.locator("form")
    form.get_by_label("Reason").fill("known since <b>Monday</b>")
    form.get_by_label("Until").fill("30d")
    form.get_by_label("Link").fill("https://issues.example/7")
    form.get_by_role("button").click()
    frame.get_by_role("status").wait_for()
    assert "Accepted" in frame.get_by_role("status").inner_text()
    row = frame.locator("#acks tbody tr").first.inner_text()
    assert "admin" in row
    assert "known since <b>Monday</b>" in row
    page.goto(f"{ui.address}/nexmark/acks")
    assert "counts" in page.locator("tbody tr").first.inner_text()
    page.locator("td summary").first.click()
    form = page.locator("form[method=post]")
    form.get_by_label("Reason").fill("no, it is not")
    form.get_by_role("button").click()
    page.wait_for_url("**done=withdrawn")
    assert "withdrawn" in page.locator("tbody tr").first.inner_text()


def test_who_may_only_look_has_no_form_and_is_refused(
    chromium: Browser, ui: Ui, page: Page
) -> None:
    page.goto(f"{ui.address}/nexmark{of(ui, 'query', 'q6')}")
    token = page.locator("form input[name=token]").get_attribute("value")
    context = chromium.new_context()
    try:
        opened = log_in(context, ui, "vera")
        opened.goto(f"{ui.address}/nexmark{of(ui, 'query', 'q6')}")
        assert "You are vera" in opened.locator("footer").inner_text()
        assert opened.locator("form[method=post]").count() == 0
        answer = context.request.post(
            f"{ui.address}/nexmark{of(ui, 'query', 'q6', 'accept')}",
            form={"token": token or "", "reason": "mine"},
            headers={"Origin": ui.address},
        )
        assert answer.status == 403
    finally:
        context.close()


def test_the_theme_is_that_of_airflow_whatever_the_system_says(page: Page, ui: Ui) -> None:
    page.goto(f"{ui.address}/plugin/nexmark")
    body = inside(page).locator("body")
    body.wait_for()
    colours = {}
    for theme, other in (("dark", "light"), ("light", "dark")):
        page.evaluate(
            "([on, off]) => { const c = document.documentElement.classList;"
            " c.remove(off); c.add(on); }",
            [theme, other],
        )
        page.wait_for_function(
            "theme => document.querySelector('iframe').contentDocument"
            ".documentElement?.dataset.theme === theme",
            arg=theme,
        )
        colours[theme] = body.evaluate("x => getComputedStyle(x).backgroundColor")
    assert colours == {"dark": "rgb(21, 24, 28)", "light": "rgb(255, 255, 255)"}


def test_the_keyboard_is_enough(page: Page, ui: Ui) -> None:
    page.goto(f"{ui.address}/nexmark{of(ui)}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == "q3":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/query/q3")


@pytest.mark.parametrize(
    ("scheme", "widths"), [("light", (1280, 800)), ("dark", (1280, 800)), ("light", (390,))]
)
def test_every_page_fits_its_window(
    chromium: Browser,
    admin: BrowserContext,
    ui: Ui,
    artifacts: Path,
    scheme: Literal["light", "dark"],
    widths: Sequence[int],
) -> None:
    """A window that becomes narrower, too, without loading the page again."""
    context = chromium.new_context(storage_state=admin.storage_state(), color_scheme=scheme)
    pages = {
        "overview": "/",
        "night": of(ui),
        "query": of(ui, "query", "q2"),
        "nights": "/nights",
        "builds": "/builds",
        "compare": f"/compare?new={'c430' * 4}&old={'b429' * 4}",
        "signoffs": "/signoffs",
        "queries": "/queries",
        "over-time": "/query/q2",
        "gate": "/gate",
        "acks": "/acks",
    }
    try:
        page = context.new_page()
        for name, path in pages.items():
            page.set_viewport_size({"width": widths[0], "height": 800})
            page.goto(f"{ui.address}/nexmark{path}")
            if page.locator("[data-chart]").count():
                page.wait_for_selector("html[data-drawn]")
            for width in widths:
                page.set_viewport_size({"width": width, "height": 800})
                look = f"{name}-{scheme}-{width}"
                page.screenshot(path=artifacts / f"{look}.png", full_page=True)
                assert page.evaluate("window.innerWidth") == width, look
                wider = "document.documentElement.scrollWidth - window.innerWidth"
                assert page.evaluate(wider) <= 0, look
                assert page.evaluate(FAULTS) == [], look
    finally:
        context.close()


def test_the_overview_and_a_night_are_painted_within_half_a_second(page: Page, ui: Ui) -> None:
    """The fastest of five visits each: a machine that is busy with other things delays some."""
    page.context.new_cdp_session(page).send("Network.setCacheDisabled", {"cacheDisabled": True})
    for path in ("/", of(ui)):
        paints = [first_paint(page, f"{ui.address}/nexmark{path}") for _ in range(5)]
        assert min(paints) < PAINT_MS, path
