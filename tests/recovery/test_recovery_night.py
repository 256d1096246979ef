"""A night whose repetitions are killed, by the command that a person uses: right, judged, red."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nexmark.engines import Build
from nexmark.model import COMMIT, CPU, FIRST_COMMIT, INTERRUPTION, RESTORE
from nexmark_jobs.host.processes import marked
from tests.dags.earlier_nights import make_past
from tests.site import ENGINE, Site, make_site, run_name

pytestmark = [pytest.mark.spark, pytest.mark.long]

SIZE = {"events": 20_000, "tps": 1_000, "rows_per_batch": 4_000}
ROUNDS = {"rounds": [3, 4], "pursue_z": [1.0]}
GATE = {
    "mode": "paired",
    **ROUNDS,
    "comparison": ROUNDS,
    "self_test": 0,
    "canary": 0,
}


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("recovery-night")
    build = engine_build(ENGINE)
    made = make_site(directory / "home", directory / "conf", build)
    write(made.conf)
    made.gate(**GATE)
    yield made
    made.stop()


def write(conf: Path, **recovery: Any) -> None:
    import yaml

    tiny = {**SIZE, "kind": "recovery", "repetitions": 3, "conf_profile": "quick"}
    tiny |= {"queries": ["q20"], "recovery": {"checkpoint": "remote", **recovery}}
    (conf / "workloads.yaml").write_text(yaml.safe_dump({"workloads": {"tiny": tiny}}))


def test_slower_storage_is_red_by_its_restore_and_not_by_its_cpu(site: Site) -> None:
    first = site.night("--queries", "q20")
    assert first.returncode == 0, first.stdout + first.stderr
    with site.store() as store:
        rows = store.repetitions(run_name(first))
        assert [row.status for row in rows] == ["ok"] * 3, [row.reason for row in rows]
        for row in rows:
            assert {RESTORE, COMMIT, INTERRUPTION, FIRST_COMMIT} <= row.figures.keys()
            assert [batch["id"] for batch in row.batch_list][:2] == [0, 1], "of all processes"
        store.accept(run_name(first), "ada", "the first night")
        gate = site.gate(**GATE).model_copy(update={"metric": RESTORE})
        make_past(store, run_name(first), 4, gate)
    same = site.night("--queries", "q20")
    assert same.returncode == 0, same.stdout + same.stderr
    slower = "spark.hadoop.fs.slow.latency.ms=60"
    red = site.night("--queries", "q20", "--candidate-conf", slower)
    assert red.returncode == 1, red.stdout + red.stderr
    with site.store() as store:
        verdicts = {row.metric: row for row in store.verdicts(run_name(red))}
    assert verdicts[RESTORE].red
    assert verdicts[RESTORE].ratio > 1.5
    assert not verdicts[CPU].red
    assert "q20 REGRESSION" in red.stdout
    assert [process.command for process in marked(f"{site.home}|")] == []
    assert not list(site.home.glob("runs/*/*/q20/*/kept"))
