"""A changed version of a job is compared with the job as it is, on one build."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexmark.config import load
from nexmark.errors import NexmarkError
from nexmark.model import CANDIDATE_JOB, Mode
from nexmark.night.changed_jobs import recorded
from nexmark.night.make_night import make_night

ENGINE = "spark-4.3.0"
YAML = "tables: nexmark\nsql: busy.sql\nkey: [auction]\n"


@pytest.fixture
def changed(conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the changed version of the job `busy`."""
    monkeypatch.setenv("NEXMARK_CONF", str(conf))
    (conf / "jobs").mkdir(exist_ok=True)
    write(conf / "jobs", "SELECT 1 FROM bid")
    write(tmp_path / "changed", "SELECT 2 FROM bid")
    return tmp_path / "changed"


def write(directory: Path, sql: str, text: str = YAML) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "busy.yaml").write_text(text)
    (directory / "busy.sql").write_text(sql)


def test_the_candidate_has_the_changed_job_and_both_arms_one_build(
    conf: Path, changed: Path
) -> None:
    night = make_night(load(conf), ENGINE, "d", "r", {"candidate_job": str(changed)})
    assert night.queries == ("busy",)
    assert night.jobs["busy"].text == "SELECT 1 FROM bid"
    assert night.candidate_jobs["busy"].text == "SELECT 2 FROM bid"
    assert night.job_of_candidate("busy") == night.candidate_jobs["busy"]
    assert night.against == {"busy": night.candidate}
    assert night.mode == Mode.PAIRED
    assert not night.teaches
    assert type(night).model_validate_json(night.model_dump_json()) == night


def test_a_build_may_be_tested_with_it(conf: Path, changed: Path) -> None:
    params = {"build": "pypi:4.3.0", "against": "pypi:4.2.1", "candidate_job": str(changed)}
    night = make_night(load(conf), ENGINE, "d", "r", {**params, "queries": "q5,busy"})
    assert str(night.against["busy"]) == "pypi:4.2.1"
    assert set(night.candidate_jobs) == {"busy"}


def test_a_night_records_which_version_it_tried(conf: Path, changed: Path) -> None:
    night = make_night(load(conf), ENGINE, "d", "r", {"candidate_job": str(changed)})
    formulation = night.candidate_jobs["busy"].formulation
    assert recorded(night.candidate_job, night.candidate_jobs) == {
        CANDIDATE_JOB: str(changed),
        f"{CANDIDATE_JOB}.busy": formulation,
    }
    assert recorded("", {}) == {}


@pytest.mark.parametrize(
    ("sql", "text", "said"),
    [
        (
            "SELECT 1 FROM bid",
            YAML,
            "candidate_job: busy in .* compute what include/conf/jobs does; change one there",
        ),
        (
            "SELECT 2 FROM a",
            "tables: {a: {files: a.csv}}\nsql: busy.sql\n",
            "candidate_job: busy reads other tables than in include/conf/jobs; both",
        ),
        (
            "SELECT 1",
            "application: {main: script.py, ends: itself}\n",
            "candidate_job: busy is an application in one version alone; both have to be one",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(
    conf: Path, changed: Path, sql: str, text: str, said: str
) -> None:
    write(changed, sql, text)
    (changed / "script.py").write_text("print()\n")
    with pytest.raises(NexmarkError, match=said):
        make_night(load(conf), ENGINE, "d", "r", {"candidate_job": str(changed)})


def test_copies_of_other_jobs_are_left_out(conf: Path, changed: Path) -> None:
    for directory in (conf / "jobs", changed):
        (directory / "quiet.yaml").write_text(YAML.replace("busy", "quiet"))
        (directory / "quiet.sql").write_text("SELECT 1 FROM person")
    night = make_night(load(conf), ENGINE, "d", "r", {"candidate_job": str(changed)})
    assert (night.queries, set(night.candidate_jobs)) == (("busy",), {"busy"})


def test_a_directory_without_jobs_names_the_files_that_it_lacks(
    conf: Path, changed: Path, tmp_path: Path
) -> None:
    (changed / "busy.yaml").unlink()
    with pytest.raises(NexmarkError, match=r"has the file of no job .* the files would be busy\."):
        make_night(load(conf), ENGINE, "d", "r", {"candidate_job": str(changed)})
    with pytest.raises(NexmarkError, match=r"candidate_job: none is no directory; give the abs"):
        make_night(load(conf), ENGINE, "d", "r", {"candidate_job": "none"})
