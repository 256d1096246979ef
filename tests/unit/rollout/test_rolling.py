"""A rollout stops at the first red stage, says whether the way back is right, and goes on later.

Its nights are made by a test and judged by the shipped gate.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from nexmark.cli.app import main
from nexmark.errors import NexmarkError
from nexmark.report.host_paths import with_short_paths
from nexmark.rollout.rolling import resumed, roll, table, write_page
from nexmark.rollout.state import QueryStep, Rollout, RolloutStage, file_of
from nexmark.store import Store, open_store
from nexmark.store.table_rows import CompatibilityRow
from tests.unit.store.night_builder import PAIRS, judge, paired, record_pair, second_round, validate

CONF = {"spark.sql.shuffle.partitions": "16"}
CARRIED = "the second side asked for 16, the checkpoint has 2"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXMARK_HOME", str(tmp_path))
    monkeypatch.delenv("NEXMARK_DB", raising=False)


def opened() -> Store:
    from nexmark.config import paths

    return open_store(paths.database_url())


def rollout(*stages: tuple[str, ...], **changes: Any) -> Rollout:
    values: dict[str, Any] = {
        "name": "slow",
        "engine": "spark-4.3.0",
        "workload": "nightly",
        "cluster": "local",
        "build": "pypi:4.3.0",
        "against": "pypi:4.3.0",
        "repetitions": 3,
        "conf": CONF,
        "stages": tuple(RolloutStage(queries=x) for x in stages),
    }
    return Rollout(**{**values, **changes})


def survives(query: str, backward: str = "right") -> CompatibilityRow:
    words = {"outcome": "same", "reason": CARRIED, "plans": "same", "forward": "right"}
    return CompatibilityRow(
        query=query, baseline_build="sha-429", red=False, backward=backward, **words
    )


class Nights:
    """Measures stages, with a second round of queries that go on.

    `slower` has the ratio of queries that are not the same, `apart` by how much pairs differ.
    """

    def __init__(
        self,
        slower: dict[str, float],
        backward: str = "right",
        apart: float = 0.001,
        **night: Any,
    ) -> None:
        self.slower, self.backward, self.apart, self.night = slower, backward, apart, night
        self.measured: list[str] = []

    def __call__(self, queries: Sequence[str]) -> str:
        self.measured += queries
        made = paired(
            len(self.measured),
            queries=list(queries),
            baselines=dict.fromkeys(queries, "sha-429"),
            teaches=False,
            **{"run_id": f"run-{len(self.measured)}", **self.night},
        )
        with opened() as store:
            store.record_night(made)
            validate(store, made.run, queries)
            for query in queries:
                self.pairs(store, made.run, query, 1, PAIRS)
            for query in second_round(store, made.run):
                self.pairs(store, made.run, query, 2, 2 * PAIRS)
            stateful = [query for query in queries if query not in ("q0", "q1")]
            store.record_compatibility(made.run, [survives(x, self.backward) for x in stateful])
            judge(store, made.run)
        return made.run

    def pairs(self, store: Store, run: str, query: str, stage: int, count: int) -> None:
        """Record the pairs of a round, one up and one down."""
        for pair in range(1, count + 1):
            figure = 10.0 * self.slower.get(query, 1.0) * (1 + self.apart * (-1) ** (pair + 1))
            record_pair(store, run, query, pair, stage=stage, candidate=figure, baseline=10.0)


def silent(text: str) -> None:
    pass


def test_all_stages_are_given_in_turn_and_the_gains_are_shown() -> None:
    nights = Nights({"q5": 0.9})
    done = roll(rollout(("q0", "q1"), ("q5",)), nights, opened, silent)
    assert nights.measured == ["q0", "q1", "q5"]
    assert done.next is None
    text = table(done)
    assert "2 of 2 stages have it" in text
    (line,) = (line for line in text.splitlines() if "q5 " in line)
    assert re.search(r"\+10\.0 % \(\+9\.\d to \+1[01]\.\d\) +FASTER", line)
    assert f"q5: {CARRIED}" in text
    assert Rollout.read("slow") == done


def test_it_stops_at_the_first_red_stage_and_the_way_back_is_proven() -> None:
    nights = Nights({"q5": 1.5})
    done = roll(rollout(("q0",), ("q5",), ("q17",)), nights, opened, silent)
    assert nights.measured == ["q0", "q5"]
    assert [stage.state for stage in done.stages] == ["green", "red", "waiting"]
    text = table(done)
    assert "stopped: stage 2 is red: q5 REGRESSION: slower: ratio 1.5" in text
    assert "rolled back: right: the old arm went on from checkpoints of the new one: q5" in text
    assert "nexmark rollout --resume slow --accept 'WHY'" in text
    page = write_page(done).read_text()
    for line in text.splitlines()[-4:]:
        assert str(escape(with_short_paths(line))) in page
    assert re.search(r"q5 +red +-50\.\d % \(-5\d\.\d to -4\d\.\d\) +REGRESSION +same", text)


def test_an_undecided_stage_stops_and_says_what_would_decide_it() -> None:
    """The interval goes from a gain to a slowdown that matters: nobody would go on from there."""
    nights = Nights({"q5": 1.02}, apart=0.2)
    done = roll(rollout(("q5",), ("q17",)), nights, opened, silent)
    assert nights.measured == ["q5"]
    assert [stage.state for stage in done.stages] == ["undecided", "waiting"]
    text = table(done)
    assert re.search(
        r"stopped: stage 1 is undecided: q5 UNDECIDED: between [\d.]+ % faster and [\d.]+ % slower "
        r"in 9 pairs; \d+ more pairs would decide 10 %",
        text,
    )
    assert re.search(r"1 +q5 +undecided .*UNDECIDED", text)


def test_who_asked_to_go_on_undecided_goes_on_and_that_is_recorded() -> None:
    nights = Nights({"q5": 1.02}, apart=0.2)
    asked = rollout(("q5",), ("q17",), go_on_undecided=True)
    done = roll(asked, nights, opened, silent)
    assert nights.measured == ["q5", "q17"]
    assert done.stages[0].state == "accepted"
    assert "stage 1, accepted undecided, and asked to go on: q5 UNDECIDED" in table(done)


def test_who_asked_to_go_on_undecided_does_not_go_on_red() -> None:
    asked = rollout(("q5",), ("q17",), go_on_undecided=True)
    done = roll(asked, Nights({"q5": 1.5}), opened, silent)
    assert [stage.state for stage in done.stages] == ["red", "waiting"]


def test_a_way_back_that_is_not_right_is_named() -> None:
    done = roll(rollout(("q5",)), Nights({"q5": 1.5}, "wrong"), opened, silent)
    assert "rolled back: NOT right: q5 (wrong)" in table(done)


def stopped(**changes: Any) -> Rollout:
    return roll(rollout(("q5",), ("q17",), **changes), Nights({"q5": 1.5}), opened, silent)


def test_it_goes_on_only_after_somebody_has_accepted_the_red_stage() -> None:
    found = stopped()
    with opened() as store:
        with pytest.raises(NexmarkError, match=r"stage 1 is red: q5 .* --accept 'WHY'"):
            resumed(found, store, "ada", None)
        again = resumed(Rollout.read("slow"), store, "ada", "it has to be")
    assert again.stages[0].state == "accepted"
    nights = Nights({}, run_id="after")
    done = roll(again, nights, opened, silent)
    assert nights.measured == ["q17"]
    assert done.next is None
    text = table(done)
    assert "by ada: it has to be" in text
    assert re.search("1 +q5 +accepted .*REGRESSION", text)
    assert f"q5, q17: {CARRIED}" in text


def test_an_acceptance_of_the_night_counts_as_well() -> None:
    found = stopped(conf={}, build="pypi:4.3.1")
    run = found.stages[0].night
    assert run is not None
    assert f"nexmark accept --run '{run}' --queries q5 --reason 'WHY', then" in table(found)
    with opened() as store:
        store.accept(run, "ada", "a fix that costs this", ["q5"])
        assert resumed(found, store, "bob", None).stages[0].accepted == (
            "q5 by ada: a fix that costs this"
        )


def test_what_was_interrupted_goes_on_where_it_was() -> None:
    made = rollout(("q0",), ("q5",))

    def interrupted(queries: Sequence[str]) -> str:
        if queries == ("q5",):
            raise KeyboardInterrupt
        return Nights({})(queries)

    with pytest.raises(KeyboardInterrupt):
        roll(made, interrupted, opened, silent)
    again = Rollout.read("slow")
    assert [stage.state for stage in again.stages] == ["green", "waiting"]
    with opened() as store:
        assert resumed(again, store, "ada", None) == again
        with pytest.raises(NexmarkError, match="accept: rollout slow is not stopped"):
            resumed(again, store, "ada", "why")


def test_only_its_owner_can_read_the_file() -> None:
    rollout(("q0",)).write()
    assert file_of("slow").stat().st_mode & 0o077 == 0


BEGIN = ("--conf", "spark.sql.shuffle.partitions=16", "--stages", "q0")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing to roll out: give confs or a build"),
        (BEGIN[:2], "stages: none are given; write them like 'q0,q1; q2-q8; all'"),
        ((*BEGIN[:3], "q55"), "stages: no query 'q55' in the workload; did you mean 'q5'?"),
        ((*BEGIN, "--conf", "a"), "'a' is not KEY=VALUE"),
        ((*BEGIN, "--name", "../x"), "write a name with letters, digits, ., _ and -"),
        ((*BEGIN, "--build", "4.3.0"), "build '4.3.0': not known; write pypi:4.3.0"),
        (("--build", "pypi:4.3.0", "--stages", "q0"), "is the old arm as well; give another"),
        ((*BEGIN, "--repetitions", "2"), "2 are too few for a verdict in mode paired"),
        ((*BEGIN, "--accept", "x"), "accept: needs resume, the name of a rollout"),
        (("--resume", "none"), "resume: no rollout 'none'; there is none yet"),
        (("--resume", "none", *BEGIN), "a rollout keeps its first params; give no other"),
        (("--conf", "spark.x.password=1", "--stages", "q0"), "spark.x.password is a secret"),
    ],
)
def test_bad_arguments(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["rollout", *arguments]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert (said.err.count("\n"), said.out) == (1, "")
    assert not (tmp_path / "rollouts").exists()


def test_a_red_stage_that_nobody_accepted_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stopped()
    capsys.readouterr()
    assert main(["rollout", "--resume", "slow"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("rollout slow: stage 1 is red: q5 REGRESSION")
    assert (said.err.count("\n"), said.out) == (1, "")


def test_the_night_of_a_stage_is_what_the_cli_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its params name both arms and ask for the check; an interrupted night interrupts it."""
    asked: list[dict[str, Any]] = []
    nights = Nights({}, dag_id="nexmark_build")

    def run_night(config: Any, dag_id: str, engine: str, params: dict[str, Any]) -> int:
        asked.append(params)
        if params["queries"] == "q5":
            return 130
        nights(params["queries"].split(","))
        return 0

    monkeypatch.setattr("nexmark.cli.night_runner.run_night", run_night)
    stages = (*BEGIN[:3], "q0,q1;q5")
    assert main(["rollout", *stages, "--name", "n", "--workload", "nightly"]) == 130
    assert [x["queries"] for x in asked] == ["q0,q1", "q5"]
    assert asked[0]["candidate_conf"] == CONF
    assert (asked[0]["build"], asked[0]["against"]) == ("pypi:4.3.0", "pypi:4.3.0")
    assert asked[0]["compatibility"] is True
    assert [stage.state for stage in Rollout.read("n").stages] == ["green", "waiting"]


def test_the_example_in_the_documents_is_what_the_command_prints() -> None:
    """The figures are of a real rollout (2026-11-28)."""
    carried = (
        "an expression differs; the second side asked for spark.sql.shuffle.partitions=16, the "
        "checkpoint has 2; going back, the first side asked for spark.sql.shuffle.partitions=2, "
        "the checkpoint has 16"
    )
    said = "REGRESSION: slower: ratio 2.281 (1.931 to 2.695) in 7 pairs, 4 of them after the first"
    q0 = QueryStep(query="q0", verdict="OK", ratio=1.0158, lo=0.7372, hi=1.3996)
    q11 = QueryStep(
        query="q11",
        verdict="REGRESSION",
        ratio=2.2811,
        lo=1.9308,
        hi=2.6950,
        red=f"{said} round",
        outcome="plan changed, state compatible",
        forward="right",
        backward="right",
        carried=carried,
    )
    night = "nexmark_build/manual__2026-11-28T01_15_39.159288_00_00"
    page = f".nexmark/runs/{night}/report/evidence.html"
    red = {"state": "red", "evidence": page, "why": f"q11 {q11.red}", "night": "x"}
    example = rollout(("q0",), ("q11",), ("q1", "q2", "q17"))
    stages = example.stages
    first = stages[0].model_copy(update={"state": "green", "steps": (q0,)})
    second = stages[1].model_copy(update={**red, "steps": (q11,)})
    example = example.model_copy(update={"stages": (first, second, stages[2])})
    docs = (Path(__file__).parents[3] / "docs" / "roll-out.md").read_text()
    assert f"```\n{table(example)}\n```" in docs
