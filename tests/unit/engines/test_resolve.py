"""A build is fetched once, named by its content, and checked before it is used."""

from __future__ import annotations

import functools
import hashlib
import http.server
import multiprocessing
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nexmark.config import BuildSource
from nexmark.engines import Build, BuildError, UnusableBuild, parse_source, resolve, usable
from nexmark.engines.build import Manifest, scan


def make_spark_home(home: Path, version: str = "4.3.0") -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "spark-submit").write_text("#!/bin/sh\n")
    (home / "jars").mkdir()
    (home / "jars" / f"spark-core_2.13-{version}.jar").write_bytes(b"core" * 1000)
    return home


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    return make_spark_home(tmp_path / "spark")


@pytest.fixture
def tarball(tmp_path: Path) -> Path:
    path = tmp_path / "spark.tgz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(make_spark_home(tmp_path / "packed"), "spark-4.3.0-bin-hadoop3")
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    handler = functools.partial(_QuietHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def sha512(path: Path) -> str:
    return hashlib.sha512(path.read_bytes()).hexdigest()


def leftovers(cache: Path) -> list[str]:
    return sorted(p.name for p in cache.iterdir() if p.name not in ("sources", "directories"))


def test_the_same_content_is_the_same_build_wherever_it_comes_from(
    spark_home: Path, tarball: Path, cache: Path, url: str
) -> None:
    directory = resolve(BuildSource(directory=str(spark_home)), cache)
    packed = resolve(BuildSource(tarball=str(tarball), sha512=sha512(tarball)), cache)
    remote = f"{url}/{tarball.name}"
    downloaded = resolve(BuildSource(tarball=remote, sha512=sha512(tarball).upper()), cache)
    assert directory.id == packed.id == downloaded.id
    assert directory.version == "4.3.0"
    assert directory.spark_home == spark_home
    assert (packed.spark_home / "bin" / "spark-submit").is_file()
    assert packed.spark_home == downloaded.spark_home
    assert len(directory.id) == 16


def test_a_changed_file_is_another_build(spark_home: Path, cache: Path) -> None:
    before = resolve(BuildSource(directory=str(spark_home)), cache)
    (spark_home / "jars" / "extra.jar").write_bytes(b"x")
    after = resolve(BuildSource(directory=str(spark_home)), cache)
    assert before.id != after.id


def test_compiled_python_files_do_not_change_the_build(spark_home: Path, cache: Path) -> None:
    before = resolve(BuildSource(directory=str(spark_home)), cache)
    (spark_home / "python" / "__pycache__").mkdir(parents=True)
    (spark_home / "python" / "__pycache__" / "a.pyc").write_bytes(b"x")
    assert resolve(BuildSource(directory=str(spark_home)), cache).id == before.id


def test_a_moved_file_is_another_build(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    (one / "a").write_bytes(b"x")
    (two / "b").write_bytes(b"x")
    assert scan(one).id != scan(two).id


def test_a_wrong_digest_shows_both_and_leaves_nothing(tarball: Path, cache: Path, url: str) -> None:
    for location in (str(tarball), f"{url}/{tarball.name}"):
        with pytest.raises(BuildError) as caught:
            resolve(BuildSource(tarball=location, sha512="0" * 128), cache)
        text = str(caught.value)
        assert sha512(tarball) in text
        assert "0" * 128 in text
        assert location in text
        assert "\n" not in text
        assert leftovers(cache) == []


@pytest.mark.parametrize("content", [b"not a tarball", b""])
def test_what_is_not_a_tarball_is_refused(tmp_path: Path, cache: Path, content: bytes) -> None:
    path = tmp_path / "x.tgz"
    path.write_bytes(content)
    with pytest.raises(BuildError, match=r"x\.tgz: cannot be unpacked: .*; give a \.tgz"):
        resolve(BuildSource(tarball=str(path), sha512=sha512(path)), cache)
    assert leftovers(cache) == []


def test_a_tarball_cannot_write_outside_the_cache(tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "evil.tgz"
    (tmp_path / "payload").write_text("x")
    with tarfile.open(path, "w:gz") as tar:
        tar.add(tmp_path / "payload", "../../outside")
    with pytest.raises(BuildError, match="cannot be unpacked"):
        resolve(BuildSource(tarball=str(path), sha512=sha512(path)), cache)
    assert not (tmp_path / "outside").exists()
    assert leftovers(cache) == []


def test_a_download_that_stops_short_leaves_nothing(cache: Path, tmp_path: Path, url: str) -> None:
    with pytest.raises(BuildError, match=r"cannot be downloaded: .*404"):
        resolve(BuildSource(tarball=f"{url}/none.tgz", sha512="0" * 128), cache)
    assert leftovers(cache) == []


def test_a_build_that_was_tampered_with_is_fetched_again(tarball: Path, cache: Path) -> None:
    source = BuildSource(tarball=str(tarball), sha512=sha512(tarball))
    build = resolve(source, cache)
    jar = next((build.spark_home / "jars").iterdir())
    original = jar.read_bytes()
    jar.write_bytes(b"tampered")
    said: list[str] = []
    again = resolve(source, cache, say=said.append)
    assert any("changed" in line for line in said)
    assert next((again.spark_home / "jars").iterdir()).read_bytes() == original


def test_a_full_check_sees_a_change_that_keeps_size_and_time(tarball: Path, cache: Path) -> None:
    import os

    source = BuildSource(tarball=str(tarball), sha512=sha512(tarball))
    jar = next((resolve(source, cache).spark_home / "jars").iterdir())
    stat = jar.stat()
    original = jar.read_bytes()
    jar.write_bytes(b"x" * stat.st_size)
    os.utime(jar, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert jar.read_bytes() != original
    build = resolve(source, cache, full_check=True)
    assert next((build.spark_home / "jars").iterdir()).read_bytes() == original


def test_a_second_resolve_needs_no_source(tarball: Path, cache: Path) -> None:
    source = BuildSource(tarball=str(tarball), sha512=sha512(tarball))
    first = resolve(source, cache)
    tarball.unlink()
    assert resolve(source, cache) == first


def test_an_interrupted_fetch_is_begun_anew(tarball: Path, cache: Path) -> None:
    source = BuildSource(tarball=str(tarball), sha512=sha512(tarball))
    key = hashlib.sha256(str(source).encode()).hexdigest()[:24]
    (cache / f".{key}" / "half").mkdir(parents=True)
    build = resolve(source, cache)
    assert not (build.spark_home / "half").exists()
    assert leftovers(cache) == sorted([f"4.3.0-{build.id}", f"4.3.0-{build.id}.json"])


def _resolve_in_process(source: BuildSource, cache: Path, results: object) -> None:
    said: list[str] = []
    build: Build = resolve(source, cache, say=said.append)
    fetched = any(line.startswith("build ") for line in said)
    results.put((build.id, fetched))  # type: ignore[attr-defined]


def test_processes_that_want_the_same_build_fetch_it_once(tarball: Path, cache: Path) -> None:
    source = BuildSource(tarball=str(tarball), sha512=sha512(tarball))
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    processes = [
        context.Process(target=_resolve_in_process, args=(source, cache, results)) for _ in range(4)
    ]
    for process in processes:
        process.start()
    outcomes = [results.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(timeout=60)
    assert len({build for build, _ in outcomes}) == 1
    assert sum(fetched for _, fetched in outcomes) == 1


def test_a_directory_that_is_no_build_is_refused(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(BuildError, match=r"not a Spark build .*; give the directory"):
        resolve(BuildSource(directory=str(tmp_path)), cache)
    with pytest.raises(BuildError, match="there is no such directory; correct the path"):
        resolve(BuildSource(directory=str(tmp_path / "none")), cache)


def test_a_build_of_two_versions_is_refused(spark_home: Path, cache: Path) -> None:
    (spark_home / "jars" / "spark-core_2.13-4.2.1.jar").write_bytes(b"old")
    with pytest.raises(BuildError, match=r"found 4\.2\.1 and 4\.3\.0; give a build that is whole"):
        resolve(BuildSource(directory=str(spark_home)), cache)


def test_no_disk_space_is_said_before_fetching(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nexmark.engines import prerequisites

    usage = prerequisites.shutil.disk_usage("/")._replace(free=10**9)
    monkeypatch.setattr(prerequisites.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(BuildError, match=r"disk: 1\.0 GB are free in .*, 2\.5 GB are needed; "):
        resolve(BuildSource(pypi="4.3.0"), cache)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("pypi:4.3.0", BuildSource(pypi="4.3.0")),
        ("pypi:4.4.0.dev1", BuildSource(pypi="4.4.0.dev1")),
        (" directory:/a b/c:d ", BuildSource(directory="/a b/c:d")),
        (
            "tarball:https://example.org/s.tgz#sha512=" + "a" * 128,
            BuildSource(tarball="https://example.org/s.tgz", sha512="a" * 128),
        ),
    ],
)
def test_a_source_reads_back_as_it_is_written(text: str, source: BuildSource) -> None:
    assert parse_source(text) == source
    assert parse_source(str(source)) == source


@pytest.mark.parametrize(
    "text",
    ["", "4.3.0", "pypi:", "pypi:latest", "pypi:4.3.0; rm -rf /", "tarball:/x", "directory:"],
)
def test_a_source_that_cannot_be_read_is_one_line(text: str) -> None:
    with pytest.raises(BuildError, match=r"; (write|add)") as caught:
        parse_source(text)
    assert "\n" not in str(caught.value)


def test_a_manifest_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text("{")
    assert Manifest.read(tmp_path / "m.json") is None
    assert Manifest.read(tmp_path / "none.json") is None


def test_an_old_spark_is_refused_before_it_is_fetched_or_when_it_is_unpacked(
    tmp_path: Path, cache: Path
) -> None:
    with pytest.raises(UnusableBuild, match=r"Spark 3\.4\.4 is too old; give 3\.5 or newer"):
        usable(BuildSource(pypi="3.4.4"), cache)
    assert not cache.exists()
    path = tmp_path / "old.tgz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(make_spark_home(tmp_path / "old", "3.4.4"), "spark-3.4.4-bin-hadoop3")
    digest = hashlib.sha512(path.read_bytes()).hexdigest()
    with pytest.raises(UnusableBuild, match=r"Spark 3\.4\.4 is too old"):
        usable(BuildSource(tarball=str(path), sha512=digest), cache)
