"""What the documents name exists: commands, options, links, anchors, files, keys, variables."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from airflow.sdk import DAG
from pydantic import BaseModel

from nexmark.cli.app import app
from nexmark.cli.laboratory import BENCHES
from nexmark.config import (
    BuildSource,
    Engine,
    Gate,
    Repository,
    Retention,
    Size,
    Snapshots,
    Workload,
    load,
    load_experiments,
    paths,
)
from nexmark.config.clusters import EmbeddedCluster, Machine, SshCluster
from nexmark.config.experiment_models import Experiment, ExperimentArm, Notification, ReportedGain
from nexmark.model import Value, is_red

ROOT = paths.repository()
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
OF_THE_ROOT = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
PAGES = [*(ROOT / name for name in OF_THE_ROOT), *sorted((ROOT / "docs").rglob("*.md"))]
CONF = sorted((ROOT / "include" / "conf").rglob("*.*"))
#: The models of each file, its outermost first.
MODELS: dict[str, tuple[type[BaseModel], ...]] = {
    "clusters.yaml": (EmbeddedCluster, SshCluster, Machine),
    "engines.yaml": (Engine, BuildSource, Snapshots, Repository),
    "experiments.yaml": (Experiment, ExperimentArm, ReportedGain),
    "gate.yaml": (Gate,),
    "notifications.yaml": (Notification,),
    "retention.yaml": (Retention,),
    "workloads.yaml": (Workload, Size),
}
FOLDERS = ("dags", "docs", "include", "plugins", "nexmark_jobs", "bench", "testbed", "tests", ".ci")
#: Words that the house says otherwise: see CONTRIBUTING, "Plain English".
REFUSED = re.compile(r"\b(that of|those of|so many|is told|anew|of which)\b", re.IGNORECASE)
#: What a person puts in place of these.
PLACEHOLDERS = re.compile(r"\b(NAME|DIR|FILE|TOPIC|QUERY|HEX)\b")
MAKE = re.compile(r"\bmake ((?:[A-Z_]+=\S+ )*)([a-z][a-z-]*)((?: [A-Z_]+=\S+)*)")


@cache
def dags() -> list[DAG]:
    """A DAG of each kind."""
    from nexmark.dag.graph import (
        build_accept_dag,
        build_experiment_dag,
        build_nightly_dag,
        build_on_demand_dag,
        build_rollout_dag,
    )
    from nexmark.dag.prune_dag import build_prune_dag
    from nexmark.dag.signoff import build_signoff_dag

    config = load()
    nightly = build_nightly_dag(next(iter(config.engines.values())), config)
    others = [build_on_demand_dag(config), build_signoff_dag(config), build_accept_dag()]
    experiment = build_experiment_dag(config, load_experiments())
    return [nightly, *others, experiment, build_rollout_dag(config), build_prune_dag(config)]


@cache
def texts() -> dict[str, str]:
    """Every document by its name: pages, `doc_md`, the comments of the configuration."""
    pages = {str(path.relative_to(ROOT)): path.read_text() for path in PAGES}
    found = {f"doc_md of {dag.dag_id}": str(dag.doc_md) for dag in dags()}
    return pages | found | {path.name: comments(path) for path in CONF}


def comments(path: Path) -> str:
    lines = (line.partition("#") for line in path.read_text().splitlines())
    return "\n".join(after for _, mark, after in lines if mark)


def code_of(text: str) -> Iterator[str]:
    """Code of a document: what is in backticks, and each line of a block."""
    joined = text.replace("\\\n", " ")
    for block in re.findall(r"^```\w*\n(.*?)^```", joined, re.M | re.S):
        yield from block.splitlines()
    rest = re.sub(r"^```\w*\n.*?^```", "", joined, flags=re.M | re.S)
    yield from (line for line in rest.splitlines() if line.startswith("    "))
    yield from inline(rest)


def inline(text: str) -> list[str]:
    return [found.replace("\n", " ") for found in re.findall(r"`([^`]+)`", text)]


def codes() -> list[tuple[str, str]]:
    return [(name, code.strip()) for name, text in texts().items() for code in code_of(text)]


def words_of(code: str) -> list[str]:
    """A command line in words, without prompt and comment."""
    try:
        return shlex.split(code.removeprefix("$ "), comments=True)
    except ValueError:
        return code.split()


def commands() -> list[tuple[str, list[str]]]:
    """Each `nexmark ...` with its words."""
    found = []
    for name, code in codes():
        if re.match(r"(\$ )?(\.venv/bin/)?nexmark( |$)", code):
            found.append((name, words_of(code)[1:]))
    return found


def problem_of(words: list[str]) -> str:
    """What a command names and the program does not have; '' if all of it exists."""
    command: Any = typer.main.get_command(app)
    is_bench = words[:1] == ["bench"]
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        if words[0] not in command.commands:
            return "" if words[0] == "VERB" else f"no verb {words[0]}"
        command, words = command.commands[words[0]], words[1:]
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    known |= {"--help"}
    if is_bench and words:
        if words[0] not in BENCHES:
            return f"no benchmark {words[0]}"
        known |= options_of_bench(words[0])
    elif command.name == "replay":
        known |= {"--nights", "--gate"}
    elif hasattr(command, "commands"):
        known |= {"--install-completion"}
    given = [word.partition("=")[0] for word in words if word.startswith("--")]
    return ", ".join(f"no option {option}" for option in given if option not in known)


def options_of_bench(name: str) -> set[str]:
    """The options of a benchmark; it reads its arguments itself."""
    found = ROOT / "bench" / name.replace("-", "_")
    files = [found.with_suffix(".py"), *found.glob("*.py")]
    text = "".join(path.read_text() for path in files if path.exists())
    return set(re.findall(r'"(--[a-z-]+)"', text))


def test_every_command_and_option_exists() -> None:
    named = commands()
    wrong = [(name, " ".join(words), problem_of(words)) for name, words in named]
    assert [x for x in wrong if x[2]] == []
    assert len(named) > 40


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("run --queries q1", ""),
        ("cluster check nexmark", ""),
        ("bench gate --nights 3", ""),
        ("walk", "no verb walk"),
        ("cluster walk", "no verb walk"),
        ("bench gate --walk", "no option --walk"),
        ("bench walk", "no benchmark walk"),
        ("run --walk", "no option --walk"),
    ],
)
def test_a_wrong_command_is_found(line: str, problem: str) -> None:
    assert problem_of(line.split()) == problem


def test_every_target_and_variable_of_make_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.M))
    named = [(name, *found) for name, code in codes() for found in MAKE.findall(code)]
    assert len(named) > 10
    assert [(name, target) for name, _, target, _ in named if target not in targets] == []
    given = {(name, word) for name, before, _, after in named for word in (before + after).split()}
    assert [x for x in given if not re.search(rf"\b{x[1].partition('=')[0]}\b", makefile)] == []


def test_every_module_that_is_run_exists() -> None:
    for name, code in codes():
        for module in re.findall(r"\bpython -m (\S+)", code):
            assert importlib.util.find_spec(module) is not None, (name, module)


def slugs(path: Path) -> set[str]:
    """The anchors of a page, as GitHub and mkdocs make them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_and_anchor_exists(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if re.match(r"https?://", target):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), target
        assert not anchor or anchor in slugs(path), target


def paths_in(code: str) -> Iterator[str]:
    """The files of this repository that a piece of code names."""
    for word in re.findall(r"[\w./*-]+", code):
        folder = word.partition("/")[0]
        if "/" in word and folder in FOLDERS and not PLACEHOLDERS.search(word):
            yield word.rstrip(".")


def test_every_file_exists() -> None:
    named = {(name, path) for name, code in codes() for path in paths_in(code)}
    named |= {(path.name, x) for path in CONF for x in paths_in(comments(path))}
    assert len(named) > 30
    assert [(name, path) for name, path in named if not list(ROOT.glob(path.rstrip("/")))] == []


def documented(path: Path) -> set[str]:
    """The keys that the comments of a file of the configuration explain."""
    lines = re.findall(r"^#   ((?:[a-z]\w*\*?(?:, |  ))+)", path.read_text(), re.M)
    return {key for line in lines for key in re.findall(r"[a-z]\w*\*?", line)}


@pytest.mark.parametrize("name", MODELS)
def test_the_comments_explain_the_keys_that_exist(name: str) -> None:
    path = ROOT / "include" / "conf" / name
    fields = {field for model in MODELS[name] for field in model.model_fields}
    for key in documented(path):
        prefix = key.rstrip("*")
        assert key in fields or any(f.startswith(prefix) for f in fields if key != prefix), key


@pytest.mark.parametrize("name", MODELS)
def test_every_key_is_explained(name: str) -> None:
    known = documented(ROOT / "include" / "conf" / name)
    for field in MODELS[name][0].model_fields:
        begins = any(field.startswith(key[:-1]) for key in known if key.endswith("*"))
        port = field.endswith("_port")  # one line for all
        assert field in known or begins or port or field in ("name", "where"), field


def test_every_key_of_the_configuration_in_the_documents_exists() -> None:
    fields = {field for models in MODELS.values() for x in models for field in x.model_fields}
    for name, text in texts().items():
        keys = [re.match(r"[a-z]\w+(?=: \S)", code) for code in inline(text)]
        assert {key[0] for key in keys if key} <= fields, name


def test_examples_of_the_configuration_can_be_read() -> None:
    """An indented example that begins with an engine's name is an engine."""
    count = 0
    for page in PAGES:
        for example in re.findall(r"^    (?:spark-\S+:\n(?:     .*\n)+)", page.read_text(), re.M):
            ((name, entry),) = yaml.safe_load(example).items()
            assert set(entry) <= set(Engine.model_fields), (page.name, name)
            count += 1
    assert count >= 2


def test_every_variable_of_the_environment_is_read() -> None:
    files = [*(ROOT / "plugins").rglob("*.py"), *(ROOT / "nexmark_jobs").rglob("*.py")]
    source = "\n".join(path.read_text() for path in files)
    for name, code in codes():
        for variable in re.findall(r"\bNEXMARK_[A-Z_]+", code):
            assert variable in source, (name, variable)


@pytest.mark.parametrize("kind", [*range(5), 6])
def test_the_documentation_of_a_dag_names_its_params(kind: int) -> None:
    dag = dags()[kind]
    named = set(re.findall(r"`(\w+)`", str(dag.doc_md)))
    assert set(dag.params) - named == set()
    section = str(dag.doc_md).partition("## Params")[2].partition("\n## ")[0]
    known = {*dag.params, "paired"}
    assert set(re.findall(r"`([a-z_]+)`", section)) <= known


def test_the_changelog_begins_with_the_version_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert headings[:2] == ["Unreleased", project["version"]]


def test_the_page_on_versions_has_the_ranges_of_the_package() -> None:
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    page = (ROOT / "docs" / "versions.md").read_text()
    ranges = [x for x in content["project"]["dependencies"] if x.startswith("apache-airflow")]
    assert len(ranges) == 4
    for required in ranges:
        assert f"`{required.removeprefix(re.match('[a-z-]+', required)[0])}`" in page, required


@pytest.mark.parametrize("page", ["README.md", "docs/read-the-result.md"])
def test_the_table_of_verdicts_is_what_the_model_says(page: str) -> None:
    """Every value is there with its meaning, and green or red as the gate decides."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    first = lines.index("| verdict | meaning | night |") + 2
    table = [line.strip("| ").split(" | ") for line in lines[first : lines.index("", first)]]
    said = {value: (_LINK.sub(r"\1", meaning), night) for value, meaning, night in table}
    colours = {value: "red" if is_red(value, 1.1) else "green" for value in Value}
    colours[Value.NO_BASELINE] = "not compared"
    assert said == {value: (value.meaning, colours[value]) for value in Value}
    assert len(table) == len(Value)


def test_the_glossary_names_every_verdict() -> None:
    text = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
    (names,) = re.findall(r"\[([A-Z_, or]+)\]\(read-the-result", text)
    assert sorted(re.split(r", | or ", names)) == sorted(Value)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_the_site_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    site = tmp_path / "site"
    mkdocs = Path(sys.executable).with_name("mkdocs")
    command = [str(mkdocs), "build", "--strict", "--site-dir", str(site)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert built.returncode == 0, built.stderr
    for page in site.rglob("*.html"):
        found = re.findall(
            r"<(?:script|link|img)[^>]+(?:src|href)=\"?(https?://[^\" >]+)", page.read_text()
        )
        assert found == [], page.name


def test_documents_use_plain_words() -> None:
    found = {name: REFUSED.findall(text) for name, text in texts().items()}
    assert {name: words for name, words in found.items() if words} == {}


def test_nothing_names_a_file_that_a_user_does_not_have() -> None:
    folders = ("bench", "dags", "docs", "include", "nexmark_jobs", "plugins", "testbed", "tests")
    files = [x for folder in folders for x in (ROOT / folder).rglob("*.*")]
    texts = (x for x in files if x.suffix in (".md", ".py", ".sql", ".yaml", ".html"))
    elsewhere = re.compile(r"\bresearch/\w|\bDESIGN\b")
    found = [str(path.relative_to(ROOT)) for path in texts if elsewhere.search(path.read_text())]
    assert found == []


def test_comments_and_docstrings_use_plain_words() -> None:
    found = []
    for folder in ("plugins", "nexmark_jobs", "dags", "bench", "testbed"):
        for path in (ROOT / folder).rglob("*.py"):
            with path.open("rb") as file:
                tokens = [
                    x
                    for x in tokenize.tokenize(file.readline)
                    if x.type in (tokenize.COMMENT, tokenize.STRING)
                ]
            found += [
                f"{path.relative_to(ROOT)}:{token.start[0]}: {word}"
                for token in tokens
                for word in REFUSED.findall(token.string)
            ]
    assert found == []
