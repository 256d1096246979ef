"""Where a person watches: one line that moves on a terminal, few lines in a file."""

from __future__ import annotations

import ast
import io
import os
from collections.abc import Iterator

import pytest

from nexmark.cli.shared_options import on_stderr
from nexmark.config import paths
from nexmark.night.night_progress import MOMENTARY
from nexmark.secrets import remember
from nexmark.terminal import EVERY_S, Terminal, sentences, show_line


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Terminal, int]]:
    """A real terminal of 20 columns, and the end to read what it was sent."""
    monkeypatch.setenv("COLUMNS", "20")
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        yield Terminal(stream), ours
    os.close(ours)


def test_on_a_terminal_one_line_moves_and_makes_room(terminal: tuple[Terminal, int]) -> None:
    shown, end = terminal
    shown.show(f"{MOMENTARY}10 %\n")
    shown.show(f"{MOMENTARY}{'x' * 40}\n")
    shown.show("done\n")
    shown.clear()
    expected = f"\r\x1b[K10 %\r\x1b[K{'x' * 19}\r\x1b[Kdone\r\n"
    sent = ""
    while len(sent) < len(expected):  # a terminal hands on what it has so far
        sent += os.read(end, 1000).decode()
    assert sent == expected


def test_in_a_file_it_is_a_line_now_and_then() -> None:
    now, stream = [100.0], io.StringIO()
    shown = Terminal(stream, clock=lambda: now[0])
    for seconds in (0, 5, EVERY_S - 1, EVERY_S, EVERY_S + 1):
        now[0] = 100 + seconds
        shown.show(f"{MOMENTARY}after {seconds:g} s\n")
    shown.show("done\n")
    shown.clear()
    assert stream.getvalue().splitlines() == ["after 0 s", "after 30 s", "done"]
    assert MOMENTARY not in stream.getvalue()


def test_sentences_fit_a_terminal_and_a_command_stays_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = ["Why: q5: slower | q7: wrong", "Next: look; or: nexmark accept --run 'a/b' --reason x"]
    assert sentences(lines, "  ") == f"  {lines[0]}\n  {lines[1]}"  # as it is in a file
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        monkeypatch.setattr("sys.stdout", stream)
        monkeypatch.setenv("COLUMNS", "16")
        text = sentences(lines)
    os.close(ours)
    assert text.splitlines() == [
        "Why: q5: slower",
        "    q7: wrong",
        "Next: look; or:",
        "    nexmark accept --run 'a/b' --reason x",
    ]


def test_what_a_command_prints_has_no_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    remember(["Xk7hushQ2"])
    show_line("downloading https://host/spark.tgz?key=Xk7hushQ2")
    on_stderr("downloading https://host/spark.tgz?key=Xk7hushQ2")
    printed = capsys.readouterr()
    assert "Xk7hushQ2" not in printed.out + printed.err
    assert printed.out.startswith("downloading https://host/spark.tgz")
    assert printed.err == printed.out


def test_there_is_one_say_and_every_task_uses_it() -> None:
    """A second one printed without redaction, and nobody who waited saw it."""
    package = paths.repository() / "plugins" / "nexmark"
    trees = {path: ast.parse(path.read_text()) for path in package.rglob("*.py")}
    named = [
        path.name
        for path, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "say"
    ]
    assert named == ["night_progress.py"]
    others = [
        path.name
        for path, tree in trees.items()
        if path.parent.name in ("tasks", "dag", "night")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "nexmark.terminal"
        for name in node.names
        if name.name == "show_line"
    ]
    assert others == []
