"""The commit that a build was made from is read from what the build, or its name, says."""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
from pathlib import Path

import pytest

from nexmark.config import BuildSource
from nexmark.engines import resolve
from nexmark.engines.revisions import revision_of
from tests.unit.engines.test_resolve import make_spark_home

WHOLE = "98bc0212c94705434471627068f41e374ccab143"
OTHER = "617618396087429b5627a86ce933bb0f5d6645cb"
RELEASE = "Spark 4.3.0 (git revision {}) built for Hadoop 3.4.1\nBuild flags: -Phive\n"


def with_properties(home: Path, jar: str, revision: str = WHOLE) -> Path:
    """Put a jar with the properties of a version into a build."""
    with zipfile.ZipFile(home / "jars" / jar, "w") as archive:
        text = f"version=4.3.0\nuser=runner\nrevision={revision}\nbranch=HEAD\n"
        archive.writestr("spark-version-info.properties", text)
    return home


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_spark_home(tmp_path / "spark")


def test_release_says_it(home: Path) -> None:
    (home / "RELEASE").write_text(RELEASE.format("98bc0212c94"))
    assert revision_of(home, "pypi:4.3.0") == "98bc0212c94"


@pytest.mark.parametrize("jar", ["spark-core_2.13-4.3.0.jar", "spark-common-utils_2.13-4.3.0.jar"])
def test_a_jar_says_it(home: Path, jar: str) -> None:
    assert revision_of(with_properties(home, jar), "pypi:4.3.0") == WHOLE


def test_the_jar_completes_what_release_abbreviates(home: Path) -> None:
    with_properties(home, "spark-core_2.13-4.3.0.jar")
    (home / "RELEASE").write_text(RELEASE.format(WHOLE[:11]))
    assert revision_of(home, "pypi:4.3.0") == WHOLE
    (home / "RELEASE").write_text(RELEASE.format(OTHER[:11]))
    assert revision_of(home, "pypi:4.3.0") == OTHER[:11]


@pytest.mark.parametrize(
    ("source", "revision"),
    [
        (f"tarball:https://ci/9/spark-20261103-1a2b3c4d5.tgz#sha512={'0' * 128}", "1a2b3c4d5"),
        (f"directory:/builds/commits/{WHOLE}", WHOLE),
        ("directory:/builds/spark-1a2b3c4/", "1a2b3c4"),
        ("directory:/builds/4.3.0-190d4599466ce465", ""),
        (f"tarball:/ci/spark-20261103-bin-hadoop3.tgz#sha512={'a1' * 64}", ""),
        ("directory:/1a2b3c4/spark-defaced-bin", ""),
        ("pypi:4.3.0", ""),
    ],
)
def test_the_name_of_a_snapshot_says_it(home: Path, source: str, revision: str) -> None:
    """A date, a word and the id that our cache gives a build are no revisions."""
    assert revision_of(home, source) == revision


@pytest.mark.parametrize("text", ["", "Spark 4.3.0 built for Hadoop 3", RELEASE.format("; rm -r")])
def test_what_does_not_say_it_says_nothing(home: Path, text: str) -> None:
    (home / "RELEASE").write_text(text)
    (home / "jars" / "spark-common-utils_2.13-4.3.0.jar").write_bytes(b"PK\3\4 torn")
    assert revision_of(home, "pypi:4.3.0") == ""


def test_a_build_has_its_revision_fetched_cached_and_in_place(home: Path, tmp_path: Path) -> None:
    with_properties(home, "spark-core_2.13-4.3.0.jar")
    packed = tmp_path / "spark.tgz"
    with tarfile.open(packed, "w:gz") as tar:
        tar.add(home, "spark-4.3.0-bin-hadoop3")
    digest = hashlib.sha512(packed.read_bytes()).hexdigest()
    cache = tmp_path / "cache"
    tarball = BuildSource(tarball=str(packed), sha512=digest)
    builds = [resolve(tarball, cache), resolve(tarball, cache)]
    builds.append(resolve(BuildSource(directory=str(home)), cache))
    assert [build.revision for build in builds] == [WHOLE] * 3
