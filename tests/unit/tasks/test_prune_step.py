"""The task of the DAG `nexmark_prune`: it deletes, logs the table, and fails for what stayed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from nexmark.config import paths
from nexmark.tasks import prune_step
from nexmark_jobs.host.leases import locked


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    monkeypatch.setenv("NEXMARK_HOME", str(made))
    monkeypatch.delenv("NEXMARK_DB", raising=False)
    return made


def run_with(
    dry_run: bool, monkeypatch: pytest.MonkeyPatch, conf: dict[str, object] | None = None
) -> None:
    params = {"dry_run": dry_run}
    run = SimpleNamespace(dag_id="nexmark_prune", conf=params if conf is None else conf)
    context = {"params": params, "dag_run": run, "dag": SimpleNamespace(params=params)}
    monkeypatch.setattr(prune_step, "get_current_context", lambda: context)
    prune_step.prune()


def left_by_a_killed_one(home: Path) -> Path:
    found = home / "runs" / ".pruned" / "one"
    found.mkdir(parents=True)
    return found


def test_it_deletes_unless_it_is_a_dry_run(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also before the first night: a home without results is no failure."""
    caplog.set_level("INFO")
    left = left_by_a_killed_one(home)
    run_with(True, monkeypatch)
    assert left.exists()
    run_with(False, monkeypatch)
    assert not left.exists()
    assert caplog.text.count("why they stay") == 2


def test_it_is_red_for_what_could_not_be_deleted(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow tries it again."""
    left = left_by_a_killed_one(home)
    monkeypatch.setattr("nexmark.retention.pruning._emptied", lambda x: [f"{left}: is not ours"])
    with pytest.raises(AirflowException, match="is not ours") as raised:
        run_with(False, monkeypatch)
    assert not isinstance(raised.value, AirflowFailException)


def test_a_typo_in_a_param_deletes_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = left_by_a_killed_one(home)
    with pytest.raises(AirflowFailException) as refused:
        run_with(False, monkeypatch, conf={"dryrun": True})
    told = "param 'dryrun': nexmark_prune has none of that name; did you mean 'dry_run'?"
    assert str(refused.value) == told
    assert left.exists()


def test_it_fails_in_one_line_beside_another(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with locked(home / "prune.lock"), pytest.raises(AirflowFailException, match="another prune"):
        run_with(False, monkeypatch)


def test_a_mistake_in_the_configuration_is_its_reason(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    conf = tmp_path / "conf"
    shutil.copytree(paths.conf_dir(), conf)
    (conf / "retention.yaml").write_text("retention:\n  runs: 5\n")
    monkeypatch.setenv("NEXMARK_CONF", str(conf))
    with pytest.raises(AirflowFailException, match=r"retention\.yaml:2: retention\.runs: "):
        run_with(False, monkeypatch)
