"""Deployed jobs are whole, and stay where they are while a night reads them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from nexmark.config import Job
from nexmark.engines.build import scan
from nexmark.night.deployments import deploy_jobs


def test_jobs_are_what_is_installed(tmp_path: Path) -> None:
    name, package = deploy_jobs(tmp_path)
    assert package == tmp_path / name / "nexmark_jobs"
    assert scan(package).id == name
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", name]


def test_whole_ones_stay_as_they_are(tmp_path: Path) -> None:
    _, package = deploy_jobs(tmp_path)
    before = package.parent.stat().st_ino
    assert deploy_jobs(tmp_path)[1].parent.stat().st_ino == before


def test_damaged_ones_are_replaced(tmp_path: Path) -> None:
    name, package = deploy_jobs(tmp_path)
    with (package / "run_query.py").open() as reader:
        (package / "digest.py").write_text("raise SystemExit")
        assert deploy_jobs(tmp_path) == (name, package)
        assert reader.read() == (package / "run_query.py").read_text()
    assert scan(package).id == name
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", name]


def test_nights_that_deploy_at_once_take_no_file_from_each_other(tmp_path: Path) -> None:
    """A cluster that reads them never finds one of them missing."""
    name, package = deploy_jobs(tmp_path)
    shutil.rmtree(package.parent)
    program = (
        "import sys; from pathlib import Path\n"
        "from nexmark.night.deployments import deploy_jobs\n"
        "_, package = deploy_jobs(Path(sys.argv[1]))\n"
        "file = package / 'run_query.py'\n"
        "before = file.stat().st_ino\n"
        "for _ in range(3000): assert file.stat().st_ino == before\n"
    )
    nights = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)], stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    said = [night.communicate(timeout=120)[1] for night in nights]
    assert [night.returncode for night in nights] == [0, 0, 0], said
    assert scan(package).id == name


def test_a_directory_that_is_there_already_is_no_failure(tmp_path: Path) -> None:
    """What a night that was killed has half copied."""
    name, package = deploy_jobs(tmp_path)
    (package / "run_query.py").unlink()
    assert deploy_jobs(tmp_path) == (name, package)
    assert (package / "run_query.py").exists()


def test_a_job_of_ones_own_goes_with_them(tmp_path: Path) -> None:
    """The name is of the content: another text is another copy, and without it nothing differs."""
    plain, _ = deploy_jobs(tmp_path)
    own = Job(name="busy", tables="nexmark", sql="busy.sql", text="SELECT 1 FROM bid")
    name, package = deploy_jobs(tmp_path, [own])
    assert name not in (plain, deploy_jobs(tmp_path, [own.model_copy(update={"text": "2"})])[0])
    assert scan(package).id == name
    assert (package / "own" / "busy" / "busy.sql").read_text() == "SELECT 1 FROM bid"
    assert deploy_jobs(tmp_path, [own]) == (name, package)
    assert deploy_jobs(tmp_path)[0] == plain
