"""`nexmark site`: the pages as files, whose links lead to files, written when they have changed."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

import pytest

from nexmark.cli.app import main
from nexmark.errors import NexmarkError
from nexmark.model import Value
from nexmark.report.evidence_files import write_night
from nexmark.static_site.links import with_files
from nexmark.static_site.site_files import LIST, write_site
from nexmark.store import BuildRecord, Store, open_store
from nexmark.web.pages import UNFINISHED
from nexmark.web.request_context import MENU
from tests.unit.web import web_nights

NOW = datetime(2026, 12, 24, 7, tzinfo=UTC)
_TARGET = re.compile(r'\s(?:href|src|action)="([^"]*)"')
_EXTERNAL = ("https://", "http://", "data:")


def record(store: Store, directory: Path, number: int, *reds: str, **changes: object) -> str:
    """Record a night of q0, q5 and q8 with its evidence; ``reds`` are its regressions."""
    values = {
        query: Value.REGRESSION if query in reds else Value.OK for query in ("q0", "q5", "q8")
    }
    run_directory = directory / f"run-{number}"
    run = web_nights.record(store, number, values, directory=run_directory, **changes)
    if reds:
        write_night(run_directory / "report", store, run)
    else:  # to draw the charts takes a second
        (run_directory / "report").mkdir(parents=True)
        (run_directory / "report" / "evidence.html").write_text("<p>All of it.</p>")
    return run


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A database of four nights, and their names; q5 was red in the second one."""
    directory = tmp_path_factory.mktemp("nights")
    with open_store(f"sqlite:///{directory / 'results.db'}") as store:
        reds = {2: ["q5"]}
        names = [record(store, directory, each, *reds.get(each, ())) for each in (1, 2, 3, 4)]
    return directory / "results.db", names


@pytest.fixture
def nights(database: str, recorded: tuple[Path, list[str]]) -> list[str]:
    """The names of the four nights, which are in the database of the test."""
    file, names = recorded
    shutil.copy(file, database.removeprefix("sqlite:///"))
    return names


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "site"


def pages(out: Path) -> dict[str, str]:
    """The HTML pages of a site by their paths."""
    return {str(path.relative_to(out)): path.read_text() for path in sorted(out.rglob("*.html"))}


def page_of(out: Path, run: str, query: str = "") -> Path:
    """The path of the page of a night, or of a query in it."""
    files = json.loads((out / LIST).read_text())["files"]
    name = re.sub(r"[^A-Za-z0-9._-]", "_", run.partition("/")[2])
    (night,) = (file for file in files if re.fullmatch(rf"night/[^/]+/{name}(-\w+)?\.html", file))
    return out / night if not query else (out / night).with_suffix("") / f"{query}.html"


def targets(out: Path) -> Iterator[tuple[str, str]]:
    """Every link of every page, with the page."""
    for name, text in pages(out).items():
        for target in _TARGET.findall(text):
            yield name, html.unescape(target)


def times(out: Path) -> dict[str, int]:
    files = (path for path in out.rglob("*") if path.is_file())
    return {str(path.relative_to(out)): path.stat().st_mtime_ns for path in files}


def age(out: Path) -> None:
    """Let all files of a site be old, so that a file that is written again is newer."""
    for name in times(out):
        os.utime(out / name, (1, 1))


def rewritten(out: Path) -> set[str]:
    return {name for name, time in times(out).items() if time > 10**9} - {LIST}


def test_every_link_leads_to_a_file_and_to_a_place_in_it(
    nights: list[str], store: Store, out: Path
) -> None:
    done = write_site(out, store, NOW)
    assert done.problems == []
    assert done.written == done.files == len(times(out)) - 1
    for name, target in targets(out):
        if target.startswith(_EXTERNAL):
            continue
        assert not target.startswith("/"), f"{name}: {target} needs a server"
        path, _, fragment = target.partition("#")
        file = (out / name).parent / unquote(path.partition("?")[0]) if path else out / name
        assert file.is_file(), f"{name}: {target} leads nowhere"
        if fragment:
            assert f'id="{fragment}"' in file.read_text(), f"{name}: {target}"


def test_a_site_has_every_page_of_the_menu_but_the_comparison(
    nights: list[str], store: Store, out: Path
) -> None:
    write_site(out, store, NOW)
    index = (out / "index.html").read_text()
    for _, address, title in MENU:
        file = f"{address[1:] or 'index'}.html"
        assert (out / file).exists() == (address != "/compare"), title
        assert (f'href="{file}"' in index) == (address != "/compare"), title
    assert "2026-12-24 07:00" in index
    assert "Next run" not in index, "a copy does not know the schedule"


def test_every_query_has_its_page_over_all_nights(
    nights: list[str], store: Store, out: Path
) -> None:
    write_site(out, store, NOW)
    files = pages(out)
    grid = files["queries/spark-4.3.0/smoke/local/all.html"]
    for query in ("q0", "q5", "q8"):
        name = f"{query}-over-time.html"
        assert f'<a href="{name}">{query}</a>' in grid
        assert f"{query} over all nights" in files[f"queries/spark-4.3.0/smoke/local/{name}"]
    page = files["queries/spark-4.3.0/smoke/local/q5-over-time.html"]
    for night in (nights[1], nights[-1]):
        assert f'{page_of(out, night, "q5").relative_to(out)}"' in page


def test_a_night_without_a_verdict_is_not_said_to_run_nor_to_be_over(
    store: Store, out: Path
) -> None:
    """A site is read later, and may be read where the Airflow of the night is out of reach."""
    begun = web_nights.paired_night(1)
    web_nights.start(store, begun)
    write_site(out, store, NOW)
    page = page_of(out, begun.run).read_text()
    assert not [words for words in UNFINISHED.values() if words in page]
    assert "where its run is over, see in Airflow which task failed" in page


def test_no_page_has_a_form_or_a_name_of_a_user(nights: list[str], store: Store, out: Path) -> None:
    write_site(out, store, NOW)
    for name, text in pages(out).items():
        for word in ("<form", "<button", "<input", "<select", "You are", "/nexmark/"):
            assert word not in text, f"{name}: {word}"


def test_a_red_query_has_its_page_and_its_evidence(
    nights: list[str], store: Store, out: Path
) -> None:
    write_site(out, store, NOW)
    red = page_of(out, nights[1], "q5")
    assert "REGRESSION" in red.read_text()
    assert 'href="q5-evidence.html"' in red.read_text()
    assert "REGRESSION" in red.with_name("q5-evidence.html").read_text()
    night = page_of(out, nights[1])
    assert f'href="{night.stem}/evidence.html"' in night.read_text()
    assert (night.with_suffix("") / "evidence.html").is_file()


def test_a_query_without_a_page_leads_to_its_line_in_the_night(
    nights: list[str], store: Store, out: Path
) -> None:
    write_site(out, store, NOW)
    old, newest = page_of(out, nights[0]), page_of(out, nights[3])
    assert not page_of(out, nights[0], "q8").exists()
    link = f'href="{old.relative_to(out)}#query-q8"'
    assert link in (out / "index.html").read_text()
    assert page_of(out, nights[3], "q8").is_file()
    assert f'href="{newest.stem}/q8.html"' in newest.read_text()


def test_a_night_that_is_neither_red_nor_the_newest_does_not_promise_evidence(
    nights: list[str], store: Store, out: Path
) -> None:
    write_site(out, store, NOW)
    assert "all of it as one page" not in page_of(out, nights[0]).read_text()
    assert "all of it as one page" in page_of(out, nights[1]).read_text()


def test_only_the_overview_is_written_again_if_nothing_has_changed(
    nights: list[str], store: Store, out: Path
) -> None:
    write_site(out, store, NOW)
    age(out)
    done = write_site(out, store, NOW + timedelta(days=1))
    assert rewritten(out) == {"index.html"}
    assert (done.written, done.removed) == (1, 0)
    assert "2026-12-25 07:00" in (out / "index.html").read_text()


def test_a_new_night_changes_no_page_of_a_night_but_the_one_before(
    nights: list[str], store: Store, out: Path, tmp_path: Path
) -> None:
    write_site(out, store, NOW)
    age(out)
    added = record(store, tmp_path, 5)
    done = write_site(out, store, NOW)
    written = {name for name in rewritten(out) if name.startswith("night/")}
    expected = {page_of(out, nights[3]), page_of(out, added)}
    assert {out / name for name in written if name.count("/") == 2} == expected
    assert "night after" in page_of(out, nights[3]).read_text()
    assert not page_of(out, nights[3], "q8").exists()  # it is not the newest night any more
    assert page_of(out, added, "q8").is_file()
    assert done.removed == 4  # q0, q5, q8, and the evidence of the night


@pytest.mark.parametrize("change", ["judged", "accepted", "validated"])
def test_a_night_whose_rows_change_is_written_again(
    nights: list[str], store: Store, out: Path, change: str
) -> None:
    write_site(out, store, NOW)
    page = page_of(out, nights[1])
    before = page.read_text()
    if change == "judged":
        store.record_verdicts(
            nights[1], web_nights.verdicts_on(nights[1], "q0", Value.WATCH, "judged again")
        )
    elif change == "accepted":
        store.accept(nights[1], "ada", "judged again", ["q5"])
    else:
        failed = web_nights.ValidationRecord(nights[1], "q0", False, ["judged again"], evaluated=9)
        store.record_validation(failed)
    write_site(out, store, NOW)
    assert "judged again" not in before
    assert "judged again" in page.read_text()


def test_a_file_that_was_lost_is_written_again(nights: list[str], store: Store, out: Path) -> None:
    write_site(out, store, NOW)
    page = page_of(out, nights[0])
    page.unlink()
    assert write_site(out, store, NOW).written == 1
    assert page.is_file()


def test_a_directory_with_something_else_is_refused_and_left_alone(
    nights: list[str], store: Store, out: Path
) -> None:
    out.mkdir()
    (out / "thesis.html").write_text("mine")
    with pytest.raises(NexmarkError, match="is no site and no empty directory"):
        write_site(out, store, NOW)
    assert [path.name for path in out.iterdir()] == ["thesis.html"]


@pytest.mark.parametrize(
    "listed",
    [
        "{",
        "[]",
        '{"schema_version": 2, "files": {}}',
        '{"schema_version": 1, "files": {"../a": null}}',
    ],
)
def test_a_list_that_is_not_of_a_site_is_refused(
    nights: list[str], store: Store, out: Path, tmp_path: Path, listed: str
) -> None:
    (tmp_path / "a").write_text("not of the site")
    out.mkdir()
    (out / LIST).write_text(listed)
    with pytest.raises(NexmarkError, match=r"site\.json: cannot be read .*; remove the site"):
        write_site(out, store, NOW)
    assert (tmp_path / "a").exists()


def test_what_is_not_of_the_site_stays_in_its_directory(
    nights: list[str], store: Store, out: Path, tmp_path: Path
) -> None:
    write_site(out, store, NOW)
    (out / "robots.txt").write_text("User-agent: *")
    record(store, tmp_path, 5)
    assert write_site(out, store, NOW).removed
    assert (out / "robots.txt").is_file()


def test_a_page_that_cannot_be_made_is_named_and_the_others_are_written(
    nights: list[str], store: Store, out: Path
) -> None:
    web_nights.record(store, 6, run_id="with/slash")
    done = write_site(out, store, NOW)
    assert len(done.problems) == 3  # the night and its two queries
    assert all("with%2Fslash" in problem and "404" in problem for problem in done.problems)
    assert "REGRESSION" in page_of(out, nights[1]).read_text()


def test_names_that_a_file_system_would_mix_up_are_two_files(
    nights: list[str], store: Store, out: Path
) -> None:
    for number, run in ((6, "by:hand"), (7, "by+hand")):
        web_nights.record(store, number, run_id=run)
    done = write_site(out, store, NOW)
    assert done.problems == []
    assert len([*out.rglob("by_hand-*.html")]) == 2


def test_a_secret_in_a_text_is_not_in_the_site(store: Store, out: Path) -> None:
    web_nights.record(store, 1, {"q0": Value.REGRESSION}, reason="with password=open-sesame set")
    write_site(out, store, NOW)
    assert not [name for name, text in pages(out).items() if "open-sesame" in text]


def test_no_page_has_a_path_of_this_machine(
    store: Store, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page names the directory of its night, the files to read next, and builds in directories.

    The shorter paths do not change a second time.
    """
    ada = tmp_path / "ada"
    monkeypatch.setenv("HOME", str(ada))
    monkeypatch.setenv("NEXMARK_HOME", str(ada / "nexmark"))
    build = BuildRecord("d1" * 8, "4.4.0", f"directory:{ada}/spark/dist")
    record(store, ada / "nexmark" / "runs", 1, "q5", build=build)
    write_site(out, store, NOW)
    files = pages(out)
    assert [name for name, text in files.items() if str(ada) in text] == []
    assert "$NEXMARK_HOME/runs/run-1" in files["newest.html"]
    assert "directory:~/spark/dist" in files["builds.html"]
    age(out)
    write_site(out, store, NOW + timedelta(days=1))
    assert rewritten(out) == {"index.html"}


def test_no_night_at_all_makes_a_site_that_says_so(store: Store, out: Path) -> None:
    done = write_site(out, store, NOW)
    assert done.problems == []
    assert "Nothing has been measured yet" in (out / "index.html").read_text()


def test_the_command_says_what_it_wrote_and_where_to_look(
    nights: list[str], store: Store, database: str, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["site", "--out", str(out), "--db", database]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r".*/site: (\d+) files: \1 written, 0 as they were, 0 removed", first)
    assert second == f"open {out}/index.html"
    web_nights.record(store, 6, run_id="with/slash")
    assert main(["site", "--out", str(out), "--db", database]) == 2
    assert "with%2Fslash: not written" in capsys.readouterr().err
    assert main(["site", "--out", "", "--db", database]) == 2
    assert "where to?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("/nexmark/", "../../index.html"),
        ("/nexmark/nights?page=2", "../../nights-2.html"),
        ("/nexmark/nights?page=1", "../../nights.html"),
        ("/nexmark/assets/page.css?v=1a", "../../assets/page.css?v=1a"),
        ("/nexmark/night/d/r?sort=cpu", None),
        ("/nexmark/night/d/r/query/q5", "r/q5.html"),
        ("/nexmark/night/d/r/query/q8", "#query-q8"),
        ("/nexmark/night/d/s/query/q8", "s.html#query-q8"),
        ("/nexmark/night/d/r/query/q8/evidence", None),
        ("/nexmark/compare", None),
        ("https://issues.example/7", "https://issues.example/7"),
        ("#main", "#main"),
    ],
)
def test_a_link_leads_to_the_nearest_file(link: str, expected: str | None) -> None:
    files = {
        "/": "index.html",
        "/nights": "nights.html",
        "/nights?page=2": "nights-2.html",
        "/assets/page.css": "assets/page.css",
        "/night/d/r": "night/d/r.html",
        "/night/d/s": "night/d/s.html",
        "/night/d/r/query/q5": "night/d/r/q5.html",
    }
    made = with_files(f'<a href="{link}">a</a>', "/night/d/r", files)
    assert made == ("<a>a</a>" if expected is None else f'<a href="{expected}">a</a>')
