"""Every command that a page, a table, a message, a help text or a document prints can be typed."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from nexmark.cli.app import app, main
from nexmark.config import paths
from tests.docs.test_documents import codes

ROOT = paths.repository()
#: Where a command ends in a sentence.
_END = r"(?=$|[`<;)\n]|, |\. |\.$|\"\)| \(|: )"
_WORDS = r"(?:'[^'`\n]*'|\"[^\"`\n]*\"|[^`<;)\n\"'])*?"
_COMMAND = re.compile(rf"\bnexmark ([a-z][a-z-]*\b{_WORDS}){_END}")
#: What a person, or the code, puts in.
_FILLED = {
    **dict.fromkeys(("N", "PORT"), "3"),
    **dict.fromkeys(("DAY", "DAY|30d"), "2099-01-31"),
    "QUERY": "q5",
    "TOPIC": "topic",
    "BUILD": "pypi:4.3.0",
}
#: The old ways of saying an option, which no command line takes.
_NO_OPTION = re.compile(r"\b(?:REASON|RUN|FORMAT|OUT)=|\banother OUT\b")


@cache
def strings() -> list[tuple[str, str]]:
    """The texts in the code of the package and its jobs, with `X` for what is put in."""
    return list(_strings())


def _strings() -> Iterator[tuple[str, str]]:
    for folder in ("plugins", "nexmark_jobs", "dags"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text())
            parts = {
                id(x) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for x in n.values
            }
            for node in ast.walk(tree):
                place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
                if isinstance(node, ast.JoinedStr):
                    yield place, "".join(map(_part, node.values))
                elif isinstance(node, ast.Constant) and id(node) not in parts:
                    yield place, node.value if isinstance(node.value, str) else ""


def _part(value: ast.expr) -> str:
    return str(value.value) if isinstance(value, ast.Constant) else "X"


def templates() -> Iterator[tuple[str, str]]:
    """The texts of the pages, without what Jinja puts in."""
    for path in sorted((ROOT / "plugins").rglob("*.html")):
        yield str(path.relative_to(ROOT)), re.sub(r"\{[{%#].*?[}%#]\}", "X", path.read_text())


@cache
def printed() -> list[tuple[str, str]]:
    """Every command with its arguments, and where it is printed."""
    verbs = set(command_of([])[0].commands)
    texts = [*strings(), *templates(), *codes()]
    found = [
        (place, " ".join(m[1].split()))
        for place, text in texts
        for m in _COMMAND.finditer(text.replace("...", "…"))
    ]
    return [(place, line) for place, line in found if line.split()[0] in verbs]


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """The command that words begin with, and its arguments."""
    command: Any = typer.main.get_command(app)
    while hasattr(command, "commands") and words and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    return command, words


def _filled(words: list[str]) -> Iterator[str]:
    """The words with a value for `…` behind an option; elsewhere it stands for more of them."""
    for before, word in zip(["", *words], words, strict=False):
        if word != "…":
            yield word
        elif before.startswith("-"):
            yield "3"


def problem_of(line: str) -> str:
    """What the real command line has against a command, '' if it takes it; nothing is run."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        return str(error)
    command, given = command_of(words)
    given = [_FILLED.get(word, word) for word in _filled(given)]
    if not given or "--help" in given or command.name in ("bench", "replay"):
        return ""  # its name alone
    try:
        command.make_context(command.name, given)
    except Exception as error:
        return str(error.format_message() if hasattr(error, "format_message") else error)
    return ""


def test_every_command_that_is_printed_can_be_typed() -> None:
    wrong = {(place, line): why for place, line in printed() if (why := problem_of(line))}
    assert wrong == {}
    assert len(printed()) > 100


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("accept --run X", "Missing option '--reason'"),
        ("accept --run X --reason 'WHY'", ""),
        ("accept --run X --reason 'WHY' --until 3", "No such option"),
        ("withdraw --id X --reason WHY", "is not a whole number"),
        ("ui --port PORT", ""),
    ],
)
def test_a_command_that_always_fails_is_found(line: str, why: str) -> None:
    assert why in problem_of(line)
    assert bool(why) == bool(problem_of(line))


def test_no_message_asks_for_what_is_no_option() -> None:
    found = [(place, text) for place, text in strings() if _NO_OPTION.search(text)]
    assert found == []


def test_every_target_of_make_that_is_printed_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.M))
    found = {m for _, text in strings() for m in re.findall(r"`make ([a-z-]+)", text)}
    assert found
    assert found <= targets


def test_commands_that_read_can_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    monkeypatch.delenv("NEXMARK_DB", raising=False)
    lines = {line for _, line in printed() if line in ("kafka status", "experiment --list")}
    assert lines
    for line in lines:
        assert main(line.split()) in (0, 2), line
        assert "Traceback" not in "".join(capsys.readouterr())


def helps() -> Iterator[tuple[str, str]]:
    """The help of the command and of each of its groups."""
    for words in ([], ["kafka"], ["cluster"]):
        name = " ".join(["nexmark", *words])
        command, _ = command_of(words)
        yield name, command.get_help(command.make_context(name, ["-"], resilient_parsing=True))


def test_the_help_of_a_command_cuts_no_sentence() -> None:
    for name, text in helps():
        listed = text[text.index("--help") :].splitlines()
        assert [line for line in listed if line.endswith("...")] == [], name


def test_the_help_lists_the_laboratory_apart() -> None:
    for (_, text), verbs in zip(
        helps(), (["bench", "recovery-damage", "recovery-sizes"], ["bench"]), strict=False
    ):
        laboratory = text[text.index("\nLaboratory:\n") :]
        assert re.findall(r"(?m)^  ([a-z-]+) ", laboratory) == verbs


def commands(command: Any = None, name: str = "nexmark") -> Iterator[tuple[str, Any]]:
    """Every command, also below a group, with its name."""
    command = command_of([])[0] if command is None else command
    for verb, below in getattr(command, "commands", {}).items():
        yield from commands(below, f"{name} {verb}")
    if not hasattr(command, "commands"):
        yield name, command


def test_every_option_says_what_it_is() -> None:
    silent = {
        f"{name} {option.opts[0]}"
        for name, command in commands()
        for option in command.params
        if option.opts and not option.help and not {"replay", "bench"} & {command.name}
    }
    assert silent == set()
