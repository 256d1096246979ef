"""A paced night by the command that a person uses: both arms are sent events, and are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from hdrh.histogram import HdrHistogram

from nexmark.engines import Build
from nexmark.model import P50, P99, Status
from nexmark_jobs.host.processes import marked
from tests.kafka.conftest import share_jars
from tests.site import ENGINE, Site, make_site, run_name

pytestmark = [pytest.mark.spark, pytest.mark.long]

PACED = {
    **{"kind": "paced", "source": "kafka", "partitions": 2, "queries": ["q0", "q17"]},
    **{"rate": 100, "seconds": 5, "warm_up": 2, "repetitions": 3, "conf_profile": "quick"},
    **{"sampling_interval_s": 0.2, "verify": {"events": 2000, "tps": 1000, "rows_per_batch": 1000}},
}
TOO_LATE = "the producer was "
"""What other load on the machine may make of a repetition."""


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, engine_build: Callable[[str], Build]
) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("paced-night")
    made = make_site(directory / "home", directory / "conf", engine_build(ENGINE))
    share_jars(made.home)
    yield made
    made.stop()


@pytest.mark.parametrize(("trigger", "query"), [("micro-batch", "q0"), ("real-time", "q17")])
def test_both_arms_are_sent_events_and_their_latencies_are_compared(
    trigger: str, query: str, site: Site, engine_build: Callable[[str], Build]
) -> None:
    content = {"workloads": {"tiny": PACED | {"trigger": trigger}}}
    site.gate(pairs=3, self_test=0)
    (site.conf / "workloads.yaml").write_text(yaml.safe_dump(content))
    home = engine_build(ENGINE).spark_home
    done = site.night("--queries", query, "--against", f"directory:{home}")
    with site.store() as store:
        rows = store.repetitions(run_name(done))
        verdicts = {row.metric: row for row in store.verdicts(run_name(done))}
    assert len(rows) == 6, done.stdout
    for row in rows:
        if row.status != Status.OK:
            assert row.reason.startswith(TOO_LATE), row.reason
            continue
        assert row.events == 700
        assert 0 < row.figures[P50] <= row.figures[P99]
        events = HdrHistogram.decode(row.latency).get_total_count()
        assert 400 < events <= 500
    assert verdicts[P50].decides
    assert not verdicts["cpu_s_per_mevent"].decides
    if all(row.ok for row in rows):
        assert done.returncode == 0, done.stdout
        assert verdicts[P50].pairs == 3
    assert [process.command for process in marked(f"{site.home}|")] == []
    assert not list(site.home.glob("clusters/*/kafka/broker-*"))
    assert not list(Path(site.home).glob("runs/*/*/paced-events"))
