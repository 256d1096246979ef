"""Flame graphs are whole files, show whatever frames are called, and can be found again."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from nexmark.flames.flame_files import flames_of, write_flames, write_problem
from nexmark.flames.svg import DEEPEST, NARROWEST, arm_style, difference_style, flame_graph
from nexmark.flames.tree import Profile, compare
from nexmark.night.run_directory import RunDirectory

DATA = Path(__file__).parents[2] / "data" / "flames"
SVG = "{http://www.w3.org/2000/svg}"
NASTY = "<script>alert(1)</script>]]>&\"'"


def stacks(path: Path) -> dict[tuple[str, ...], int]:
    lines = (line.rsplit(" ", 1) for line in path.read_text().splitlines())
    return {tuple(stack.split(";")): int(count) for stack, count in lines}


def real(arm: str, cpu: float) -> Profile:
    """Of q5 on Spark 4.3.0 with 2 shuffle partitions (baseline) and with 16 (candidate)."""
    return Profile(stacks(DATA / f"q5-{arm}.txt"), cpu)


@pytest.fixture
def night(tmp_path: Path) -> Path:
    arms = real("baseline", 41.2), real("candidate", 58.9)
    write_flames(RunDirectory(tmp_path).flames, "q5", *arms, "steady")
    return tmp_path


def boxes(svg: str) -> dict[str, ET.Element]:
    """The first box of each frame, by its name."""
    found: dict[str, ET.Element] = {}
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        title = group.find(f"{SVG}title")
        assert title is not None
        found.setdefault(str(title.text).split("\n")[0], group)
    return found


def rect(box: ET.Element) -> ET.Element:
    found = box.find(f"{SVG}rect")
    assert found is not None
    return found


def test_all_files_are_there_and_found(night: Path) -> None:
    found = flames_of(RunDirectory(night).flames, "q5")
    assert found is not None
    assert {path.name for path in found.files.values()} == {
        *("q5-baseline.svg", "q5-candidate.svg", "q5-difference.svg"),
        *("q5-baseline.txt", "q5-candidate.txt"),
    }
    assert all(path.is_file() for path in found.files.values())
    assert found.cpu_s_per_mevent == {"baseline": 41.2, "candidate": 58.9}
    assert (found.problem, found.basis) == (None, "steady")
    assert stacks(found.files["candidate_stacks"]) == stacks(DATA / "q5-candidate.txt")


def test_what_changed_most_is_in_the_summary(night: Path) -> None:
    """More partitions, more shuffle files to open."""
    found = flames_of(RunDirectory(night).flames, "q5")
    assert found is not None
    assert found.changes[0].frame == "java.io.FileOutputStream.open0 (native)"
    assert found.changes[0].change > 0.1
    assert found.changes[0].certain


@pytest.mark.parametrize("query", ["q0", "q99", "../q5", "q5/../q5", ""])
def test_a_query_without_flame_graphs_has_none(night: Path, query: str) -> None:
    assert flames_of(RunDirectory(night).flames, query) is None


def test_why_there_are_none_is_kept(tmp_path: Path) -> None:
    write_problem(RunDirectory(tmp_path).flames, "q5", "no such option")
    found = flames_of(RunDirectory(tmp_path).flames, "q5")
    assert found is not None
    assert (found.problem, dict(found.files)) == ("no such option", {})


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema_version": 99}'])
def test_a_summary_that_cannot_be_read_is_none(night: Path, text: str) -> None:
    (RunDirectory(night).flames / "q5-summary.json").write_text(text)
    assert flames_of(RunDirectory(night).flames, "q5") is None


@pytest.mark.parametrize("name", ["baseline", "candidate", "difference"])
def test_a_graph_needs_nothing_from_anywhere(night: Path, name: str) -> None:
    svg = (RunDirectory(night).flames / f"q5-{name}.svg").read_text()
    boxes(svg)  # it is XML
    assert set(re.findall(r"https?://[^\"'\s)]+", svg)) == {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xhtml",
    }
    assert not re.search(r"(href|src|@import|url\()", svg)


def test_whatever_a_frame_is_called_it_is_only_text() -> None:
    stacks = {(NASTY, f"a.{NASTY}.b"): 5}
    compared = compare(Profile(stacks, 1.0), Profile(stacks, 2.0))
    for look in (
        arm_style(compared, "baseline", NASTY, (NASTY,)),
        difference_style(compared, NASTY, (NASTY,)),
    ):
        svg = flame_graph(compared.root, look)
        assert NASTY in boxes(svg)
        assert svg.count("<script>") == 1
        assert "alert(1)</script>" not in svg


def test_a_box_is_as_wide_as_in_the_arm_that_has_more() -> None:
    before = {("main", "a.B.gone"): 10, ("main", "a.B.same"): 10}
    after = {("main", "a.B.new"): 10, ("main", "a.B.same"): 10}
    compared = compare(Profile(before, 2.0), Profile(after, 2.0))
    found = boxes(flame_graph(compared.root, difference_style(compared, "x", ())))
    widths = {name: float(rect(found[name]).attrib["width"]) for name in found}
    third = widths["all"] / 3
    assert widths["a.B.gone"] == pytest.approx(third, abs=0.1)
    assert widths["a.B.new"] == pytest.approx(third, abs=0.1)
    assert widths["a.B.same"] == pytest.approx(third, abs=0.1)
    left = {name: float(rect(box).attrib["x"]) for name, box in found.items()}
    assert left["a.B.gone"] < left["a.B.new"] < left["a.B.same"]


def test_a_change_is_shown_by_colour_and_by_words() -> None:
    before = {("main", "a.B.gone"): 500, ("main", "a.B.same"): 500, ("main", "a.B.bit"): 4}
    after = {("main", "a.B.new"): 500, ("main", "a.B.same"): 500, ("main", "a.B.bit"): 5}
    compared = compare(Profile(before, 2.0), Profile(after, 2.0))
    found = boxes(flame_graph(compared.root, difference_style(compared, "x", ())))
    told = {
        name: (rect(box).attrib["class"], box.attrib["data-label"]) for name, box in found.items()
    }
    assert told["a.B.gone"] == ("d-less3", "▼ B.gone -49.8 %")
    assert told["a.B.new"] == ("d-more3", "▲ B.new +49.8 %")
    assert told["a.B.same"] == ("d-0", "B.same")
    assert told["a.B.bit"] == ("d-0", "B.bit")  # a sample more or less is chance


def test_a_graph_is_bounded_however_deep_and_many_its_stacks_are() -> None:
    deep = tuple(f"a.B.m{number}" for number in range(5000))
    wide = {("main", f"a.B.w{number}"): 1 for number in range(50_000)}
    compared = compare(Profile({deep: 50_000, **wide}, 1.0), Profile(wide, 1.0))
    svg = flame_graph(compared.root, difference_style(compared, "x", ()))
    assert len(boxes(svg)) <= DEEPEST + 3
    assert NARROWEST >= 1
    assert len(svg) < 100_000
