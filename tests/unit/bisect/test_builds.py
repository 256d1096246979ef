"""The builds of a search are read as a person gives them, and a mistake is one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexmark.bisect.search import read_builds
from nexmark.errors import NexmarkError
from nexmark.model import origin_of

DIGEST = "a" * 128


def test_a_list_or_a_file_with_or_without_the_ends(tmp_path: Path) -> None:
    expected = ["pypi:4.0.0", "pypi:4.0.1", "pypi:4.0.2", "pypi:4.0.3"]
    assert read_builds("pypi:4.0.0", "pypi:4.0.3", "pypi:4.0.1, pypi:4.0.2") == expected
    file = tmp_path / "builds.txt"
    file.write_text("# of November\n" + "\n".join(expected) + "\n\n")
    assert read_builds(" pypi:4.0.0 ", "pypi:4.0.3", str(file)) == expected


def test_a_tarball_keeps_its_digest_and_is_short_in_tables(tmp_path: Path) -> None:
    file = tmp_path / "builds"
    file.write_text(f"tarball:https://x/spark-1.tgz#sha512={DIGEST}\ndirectory:/opt/spark/2\n")
    builds = read_builds("pypi:4.0.0", "pypi:4.0.3", str(file))
    assert builds[1].endswith(DIGEST)
    assert [origin_of(build) for build in builds] == [
        "pypi:4.0.0",
        "spark-1.tgz",
        "spark/2",
        "pypi:4.0.3",
    ]


@pytest.mark.parametrize(
    ("good", "bad", "between", "says"),
    [
        ("", "pypi:4.0.3", "pypi:4.0.1", "bisect: --good is not given; give --good ..."),
        ("pypi:4.0.0", " ", "pypi:4.0.1", "bisect: --bad is not given"),
        ("pypi:4.0.0", "pypi:4.0.3", "", "bisect: --builds is not given"),
        ("pypi:4.0.0", "pypi:4.0.3", "pypi:4.0.0", "--builds: no build is between"),
        ("pypi:4.0.0", "pypi:4.0.0", "pypi:4.0.1", "build pypi:4.0.0 is listed twice"),
        ("pypi:4.0.0", "pypi:4.0.3", "pypi:4.0.1,pypi:4.0.1", "build pypi:4.0.1 is listed twice"),
        ("pypi:4.0.0", "pypi:4.0.3", "/no/such/file", "'/no/such/file' is neither a file nor"),
        ("4.0.0", "pypi:4.0.3", "pypi:4.0.1", "--good: build '4.0.0': not known; write pypi:4.3.0"),
        ("pypi:4.0.0", "pypi:4.0.3", "pypi:4.0.1,x:2", "--builds: build 'x:2': not known"),
    ],
)
def test_a_mistake_is_one_line(good: str, bad: str, between: str, says: str) -> None:
    with pytest.raises(NexmarkError) as caught:
        read_builds(good, bad, between)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
