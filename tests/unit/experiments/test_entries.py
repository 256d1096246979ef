"""experiments.yaml: what ships can be run, a bad entry is one line with file and key."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from nexmark.cli.app import main
from nexmark.config import ConfigError, load, load_experiments, paths
from nexmark.config.experiment_models import EXPERIMENT_QUERY_NAMES
from nexmark.expectations.contract import EXPERIMENT_CONTRACTS
from nexmark.experiments.arm_runs import quick
from nexmark.experiments.experiment_run import check_arms, trial_order, trials_of
from nexmark.experiments.local_applications import ExperimentError
from nexmark.recovery import remote_storage
from nexmark_jobs.experiments import EXPERIMENT_QUERIES
from nexmark_jobs.queries import QUERIES

HEAD = "experiments:\n  x:\n    question: Does it pay?\n    queries: [q5]\n"
ARMS = "    arms: {a: {}, b: {conf: {spark.sql.codegen.wholeStage: false}}}\n"


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the configuration that a test may change."""
    directory = tmp_path / "conf"
    shutil.copytree(paths.conf_dir(), directory)
    monkeypatch.setenv("NEXMARK_CONF", str(directory))
    return directory


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("experiment: {}", 1, "unknown key 'experiment'; did you mean 'experiments'?"),
        (HEAD, 2, "experiments.x.arms: the key is missing; add it"),
        (HEAD + "    arms: {a: {}}\n", 5, "experiments.x.arms: Dictionary should have at least 2"),
        (HEAD + ARMS + "    size: [1]\n", 6, "unknown key 'size'; did you mean 'sizes'?"),
        (HEAD + ARMS + "    sizes: [2000, 1000]\n", 6, "sizes: are not in ascending order"),
        (HEAD + ARMS + "    warmup_batches: 5\n", 6, "5 of 5 batches leaves nothing to measure"),
        (HEAD + ARMS + "    source: csv\n", 6, "experiments.x.source: must be 'generated'"),
        (HEAD + ARMS + "    text: {gain: 20}\n", 6, "text.what: the key is missing; add it"),
        (
            HEAD.replace("q5", "long_windows") + ARMS,
            4,
            "unknown query 'long_windows'; did you mean 'long_window'?",
        ),
        (
            HEAD + "    arms:\n      a: {}\n      b: {conf: {spark.master: local}}\n",
            7,
            "experiments.x.arms.b.conf.spark.master: spark.master is set by the benchmark itself",
        ),
        (
            HEAD + "    arms:\n      a: {}\n      b: {build: {pypi: 4.3.0, directory: /x}}\n",
            7,
            "a build needs exactly one of pypi, tarball and directory",
        ),
        (
            HEAD + "    arms:\n      a: {}\n      b: {conf: {spark.x.password: y}}\n",
            7,
            "experiments.x.arms.b.conf.spark.x.password: spark.x.password is a secret",
        ),
        ((HEAD + ARMS).replace("  x:", "  new:"), 2, "'new' writes a template"),
    ],
)
def test_a_bad_entry_is_one_line_with_file_and_key(
    conf: Path, text: str, line: int, says: str
) -> None:
    (conf / "experiments.yaml").write_text(text)
    with pytest.raises(ConfigError) as error:
        load()
    assert f"experiments.yaml:{line}: " in str(error.value)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_a_configuration_without_experiments_loads(conf: Path) -> None:
    (conf / "experiments.yaml").unlink()
    assert load_experiments() == {}
    load()


def builds(version: str, arms: Any) -> Any:
    return {arm: SimpleNamespace(version=version) for arm in arms}


def test_every_experiment_that_ships_can_be_run() -> None:
    found = load_experiments()
    assert len(found) > 10
    for one in found.values():
        check_arms(one, builds("4.3.0", one.arms))
        assert one.sizes[-1] >= 300_000, one.name


def test_quick_is_small_and_keeps_the_flags_of_each_arm() -> None:
    one = quick(load_experiments()["collectors"])
    options = [arm.conf["spark.driver.extraJavaOptions"] for arm in one.arms.values()]
    assert options[0] == "-XX:TieredStopAtLevel=1 -XX:+UseG1GC"
    assert len(set(options)) == len(one.arms)
    assert (one.sizes, one.batches, one.warmup_batches) == ((2000,), 2, 1)


def test_an_arm_that_no_build_can_run_is_one_line_with_its_place(conf: Path) -> None:
    arms = "    arms: {a: {}, b: {formulation: windws}}\n"
    (conf / "experiments.yaml").write_text(HEAD + arms)
    one = load_experiments()["x"]
    with pytest.raises(ExperimentError, match=r"experiments.yaml:2: experiments.x.arms.b.form"):
        check_arms(one, builds("4.3.0", one.arms))


def test_other_batches_are_refused_where_they_put_out_other_changes(conf: Path) -> None:
    arms = "    arms: {a: {}, b: {rows_per_batch: 500}}\n"
    (conf / "experiments.yaml").write_text((HEAD + arms).replace("q5", "q17"))
    one = load_experiments()["x"]
    if QUERIES["q17"].output_mode == "append":
        check_arms(one, builds("4.3.0", one.arms))
    else:
        with pytest.raises(ExperimentError, match="writes changes of a table"):
            check_arms(one, builds("4.3.0", one.arms))


def test_queries_contracts_and_names_of_experiments_agree() -> None:
    assert set(EXPERIMENT_QUERIES) == set(EXPERIMENT_QUERY_NAMES)
    assert not set(EXPERIMENT_QUERIES) & set(QUERIES)
    columns = {name: query.columns for name, query in EXPERIMENT_QUERIES.items()}
    assert {name: entry.names for name, entry in EXPERIMENT_CONTRACTS.items()} == columns


def test_every_arm_has_every_place_as_often() -> None:
    for name, pairs in (("redundant-shuffle", 4), ("multi-input", 6)):
        one = load_experiments()[name]
        trial = next(iter(trials_of(one, builds("4.3.0", one.arms), cast(Any, None))))
        order = trial_order(trial, pairs)
        places: dict[str, list[int]] = {arm: [] for arm in one.arms}
        for number, (_, arm) in enumerate(order):
            places[arm].append(number)
        assert {len(x) for x in places.values()} == {pairs}
        assert len({sum(x) for x in places.values()}) == 1, order


def test_an_arm_with_a_remote_checkpoint_differs_from_its_twin_by_the_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_storage, "compiled", lambda build, place: Path("/classes"))
    asked: list[dict[str, str]] = []
    fake = SimpleNamespace(work=tmp_path, run=lambda *args, confs, **rest: asked.append(confs))
    one = load_experiments()["remote-state"]
    trial = next(iter(trials_of(one, builds("4.3.0", one.arms), cast(Any, fake))))
    for arm in one.arms:
        trial._submit(arm, arm, "noop", sampled=True)
    for local, remote in zip(asked[::2], asked[1::2], strict=True):
        assert local.items() <= remote.items()
        more = remote.keys() - local.keys()
        assert "spark.sql.streaming.checkpointLocation" in more
        assert remote["spark.hadoop.fs.slow.latency.ms"] == "20"
    assert len({tuple(sorted(confs.items())) for confs in asked}) == len(one.arms)


def test_new_adds_an_entry_that_loads_and_can_be_run(
    conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = load_experiments()
    assert main(["experiment", "new", "wide-shuffle"]) == 0
    assert "nexmark experiment wide-shuffle" in capsys.readouterr().out
    after = load_experiments()
    assert set(after) - set(before) == {"wide-shuffle"}
    check_arms(after["wide-shuffle"], builds("4.3.0", after["wide-shuffle"].arms))
    load()


def test_new_leaves_the_file_as_it_was_where_the_name_cannot_be(
    conf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (conf / "experiments.yaml").read_text()
    assert main(["experiment", "new", "Not A Name"]) == 2
    assert "experiments.yaml" in capsys.readouterr().err
    assert main(["experiment", "new", "json"]) == 2
    assert "there is an experiment 'json'" in capsys.readouterr().err
    assert (conf / "experiments.yaml").read_text() == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give the name of one experiment, or --all"),
        (("json", "--all"), "give the name of one experiment, or --all"),
        (("jsn",), "'jsn' is not an experiment; did you mean 'json'?"),
        (("json", "heap"), "'heap': one experiment at a time, or --all"),
        (("new",), "new: no name is given"),
        (("json", "--sizes", "9"), "'9' is not a whole number from 100 to"),
        (("json", "--pairs", "0"), "'0' is not a whole number from 1 to"),
        (("json", "--out", "/no/where"), "'--out': /no/where exists, or its directory does not"),
    ],
)
def test_bad_arguments(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", *arguments]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert (said.err.count("\n"), said.out) == (1, "")


def test_the_list_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "--list"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in load_experiments())
