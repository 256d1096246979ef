"""The nightly build of a date is looked up before it is fetched; a missing one is no failure."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from nexmark.config import Snapshots
from nexmark.engines import BuildError, MissingBuild, snapshot

DAY = date(2026, 11, 3)
DIGEST = "0123456789abcdef" * 8


class Server(http.server.SimpleHTTPRequestHandler):
    asked: list[str]

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, directory=str(self.root), **kwargs)  # type: ignore[arg-type]

    root: Path

    def log_message(self, *args: object) -> None:
        self.asked.append(f"{self.command} {self.path}")

    def do_GET(self) -> None:
        if "broken" in self.path:
            self.send_error(500)
        else:
            super().do_GET()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    Server.root, Server.asked = tmp_path, []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def publish(directory: Path, checksum: str = f"{DIGEST}  spark-20261103.tgz\n") -> Path:
    tarball = directory / "spark-20261103.tgz"
    tarball.write_bytes(b"spark")
    tarball.with_name(tarball.name + ".sha512").write_text(checksum)
    return tarball


def at(place: object) -> Snapshots:
    tarball = f"{place}/spark-{{{{ ds_nodash }}}}.tgz"
    return Snapshots(tarball=tarball, sha512=f"{tarball}.sha512")


def test_both_forms_of_the_date() -> None:
    found = Snapshots(tarball="/{{ds}}/{{ ds_nodash }}.tgz", sha512="/{{ ds }}").of(DAY)
    assert found == ("/2026-11-03/20261103.tgz", "/2026-11-03")


@pytest.mark.parametrize(
    "text",
    [
        f"{DIGEST}  spark-20261103.tgz\n",
        f"{DIGEST}\n",
        f"SHA512 (spark-20261103.tgz) = {DIGEST}\n",
        "spark-20261103.tgz: " + " ".join([*[DIGEST.upper()[i : i + 8] for i in range(0, 128, 8)]]),
    ],
)
def test_the_checksum_is_read_however_it_was_written(tmp_path: Path, text: str) -> None:
    tarball = publish(tmp_path, text)
    assert str(snapshot(at(tmp_path), DAY)) == f"tarball:{tarball}#sha512={DIGEST}"


@pytest.mark.parametrize(("text", "count"), [("soon\n", 0), (f"{DIGEST}\n{DIGEST[::-1]}\n", 2)])
def test_a_file_without_one_checksum_is_refused_in_one_line(
    tmp_path: Path, text: str, count: int
) -> None:
    publish(tmp_path, text)
    with pytest.raises(
        BuildError, match=rf"sha512: {count} SHA-512 digests in it, one is"
    ) as caught:
        snapshot(at(tmp_path), DAY)
    assert not isinstance(caught.value, MissingBuild)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("missing", [".tgz", ".sha512"])
@pytest.mark.parametrize("how", ["path", "http", "file"])
def test_what_is_not_there_is_a_missing_build(
    tmp_path: Path, served: str, how: str, missing: str
) -> None:
    publish(tmp_path)
    place = {"path": str(tmp_path), "http": served, "file": f"file://{tmp_path}"}[how]
    assert snapshot(at(place), DAY).sha512 == DIGEST
    next(path for path in tmp_path.iterdir() if path.suffix == missing).unlink()
    with pytest.raises(MissingBuild, match=r"no build for 2026-11-03: .* is not there"):
        snapshot(at(place), DAY)


def test_the_tarball_is_only_looked_for(tmp_path: Path, served: str) -> None:
    publish(tmp_path)
    snapshot(at(served), DAY)
    assert Server.asked == ["GET /spark-20261103.tgz.sha512", "HEAD /spark-20261103.tgz"]


def test_a_server_that_fails_is_not_taken_for_a_missing_build(tmp_path: Path, served: str) -> None:
    publish(tmp_path)
    with pytest.raises(BuildError, match=r"cannot be asked for: .*500.*; check") as caught:
        snapshot(at(f"{served}/broken"), DAY)
    assert not isinstance(caught.value, MissingBuild)
