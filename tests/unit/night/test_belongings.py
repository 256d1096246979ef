"""Whose a topic, a directory, a run, a sampler is: never asked by a name that another may have."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nexmark.config import load
from nexmark.errors import NexmarkError
from nexmark.kafka import topics
from nexmark.night.kinds.kafka import ReadsKafka, topic_of
from nexmark.night.kinds.paced import prefix_of
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.sampling.sampler_processes import end_driver_sampler
from nexmark.store import Store, StoreError, open_store
from nexmark_jobs.host.processes import Process, end, start_detached
from tests.unit.store.store_builder import night as record_of
from tests.unit.store.store_builder import repetition
from tests.waiting import wait_for

RUN = "scheduled__2026-11-27T02:00:00+00:00"
SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Night]:
    def made(home: str = "one", run_id: str = RUN) -> Night:
        monkeypatch.setenv("NEXMARK_HOME", str(tmp_path / home))
        params = {"workload": "smoke", "cluster": "local", "queries": "q0"}
        return make_night(load(), "spark-4.3.0", "nexmark_spark_4_3_0", run_id, params)

    return made


def test_nights_of_two_homes_at_the_same_time_have_topics_of_their_own(
    planned: Callable[..., Night],
) -> None:
    """Both may use the same brokers; each fills its topics, and removes them at its end."""
    one, again, two = planned("one"), planned("one"), planned("two")
    names = []
    for home, night in (("one", one), ("one", again), ("two", two)):
        planned(home)  # the home of the process
        (size, *_) = ReadsKafka().sizes(night)
        names.append((topic_of(night, size), prefix_of(night)))
    assert names[0] == names[1]
    assert not set(names[0]) & set(names[2])


def test_a_run_directory_is_one_run_s(planned: Callable[..., Night]) -> None:
    first, other = planned(), planned(run_id=RUN.replace(":", "_").replace("+", "_"))
    assert first.directory == other.directory
    first.write()
    first.write()  # tried again
    with pytest.raises(NexmarkError, match=r"is the directory of run scheduled__2026-11-27T02:00"):
        other.write()
    assert Night.read(first.dag_id, first.run_id) == first


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'results.db'}") as opened:
        yield opened


def test_a_run_that_another_home_has_measured_is_not_replaced(store: Store) -> None:
    first = record_of(directory=Path("/one/runs/1"))
    store.record_night(first)
    other = replace(first, directory=Path("/two/runs/1"))
    store.record_night(other)  # nothing is lost yet
    store.record_night(first)
    store.record_repetition(repetition(first.run, "q0"))
    store.record_night(first)
    with pytest.raises(StoreError, match="it was measured in another home, /one/runs/1"):
        store.record_night(other)


def test_a_sampler_is_ended_though_its_pid_file_names_another_process(
    planned: Callable[..., Night], tmp_path: Path
) -> None:
    """And the file goes: it would say that the next sampler is ready."""
    night = planned()
    directory = night.query_dir("q1")
    directory.mkdir(parents=True)
    mark, log = night.spark_cluster.mark, tmp_path / "log"
    pid_file = directory / "sampler.pid"
    others = night.query_dir("q11") / "sampler.pid"

    def start(*more: str) -> Process:
        return start_detached([*SLEEP, *more], {}, mark, log)

    sampler = start("--pid-file", str(pid_file))
    executor, of_another = start(), start("--pid-file", str(others))
    try:
        pid_file.write_text(f"{executor.pid}\n")
        wait_for(lambda: str(pid_file) in sampler.command or "sampler.pid" in sampler.command)
        end_driver_sampler(night, "q1")
        assert [x.alive for x in (sampler, executor, of_another)] == [False, True, True]
        assert not pid_file.exists()
    finally:
        end([sampler, executor, of_another], grace_s=0)


def test_a_consumer_commits_no_offsets_to_a_group_of_somebody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, object] = {}

    class Consumer:
        def __init__(self, settings: dict[str, object]) -> None:
            given.update(settings)

        def close(self) -> None:
            pass

    monkeypatch.setattr(topics, "Consumer", Consumer)
    with topics.KafkaCluster("127.0.0.1:9092").consumer():
        pass
    assert given["enable.auto.commit"] is False
