"""Where the source of the builds is: checked when it is read, and looked up by the engine."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from nexmark.config import ConfigError, Repository, load, load_repository

SHIPPED = re.compile(r"^    repository: .*\n", re.MULTILINE)
COMPARE = "https://forge.example/compare/{{ old }}...{{new}}"


def write(conf: Path, text: str) -> Path:
    """Let the first engine name this repository, and the others none."""
    file = conf / "engines.yaml"
    without = SHIPPED.sub("", file.read_text())
    file.write_text(
        without.replace("{pypi: 4.3.0}\n", f"{{pypi: 4.3.0}}\n    repository: {text}\n")
    )
    return file


def test_both_revisions_are_put_into_the_address() -> None:
    repository = Repository(compare=COMPARE)
    assert repository.comparison("a1", "b2") == "https://forge.example/compare/a1...b2"
    assert Repository(clone="/x").comparison("a1", "b2") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "neither compare nor clone is given; add one, or remove repository"),
        ('{compare: "https://x/{{ old }}"}', "lacks a revision; write {{ old }} and {{ new }}"),
        ('{compare: "https://x/{{ old }}{{ newer }}"}', "{{ newer }} is not known; write {{ old"),
        ('{compare: "/x/{{ old }}...{{ new }}"}', "is not the address of a web server; write it"),
        ('{compare: "javascript:{{ old }}{{ new }}"}', "is not the address of a web server"),
        ('{compare: "https://x/ {{ old }}...{{ new }}"}', "is not the address of a web server"),
        ('{compare: "https://x/{{ old }}{{ new }}?token=hunter2hunter2"}', "has a secret in its"),
        ("{clone: ''}", "repository.clone"),
        ("{clown: /x}", "unknown key 'clown'; did you mean 'clone'?"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(conf: Path, text: str, says: str) -> None:
    write(conf, text)
    with pytest.raises(ConfigError, match=r"engines\.yaml:\d+: ") as caught:
        load(conf)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_it_is_looked_up_by_the_engine_and_again_when_the_file_has_changed(conf: Path) -> None:
    file = write(conf, f'{{compare: "{COMPARE}", clone: /spark}}')
    assert load_repository("spark-4.3.0", conf) == Repository(compare=COMPARE, clone="/spark")
    assert load_repository("spark-4.2.1", conf) is None
    assert load_repository("gone", conf) is None
    file.write_text(file.read_text().replace("/spark}", "/other}"))
    os.utime(file, ns=(1, 1))
    assert load_repository("spark-4.3.0", conf) == Repository(compare=COMPARE, clone="/other")


def test_a_file_that_is_wrong_or_gone_says_nothing(conf: Path) -> None:
    file = write(conf, "{clown: /x}")
    assert load_repository("spark-4.3.0", conf) is None
    file.unlink()
    assert load_repository("spark-4.3.0", conf) is None
