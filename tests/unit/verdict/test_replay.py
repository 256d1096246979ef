"""`python -m nexmark.verdict`: the replay contract, as others call it."""

from __future__ import annotations

import csv
import io
import math
import os
import random
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nexmark.verdict.__main__ import main
from tests.unit.verdict.gate_builder import CPU, rules

HEAD = "night,query,stage,pair,arm,order,metric,value"
OUT = "night,query,metric,verdict,ratio,lo,hi,mde,gate_version"
NIGHTS = 14
QUERIES = ("q0", "q2", "q10")


def rows(
    night: int, slower: float = 1.0, fresh: float | None = 1.0, query: str = "q2", seed: int = 0
) -> list[str]:
    """A night; one query has this ratio, and this one in its fresh pairs."""
    rng = np.random.default_rng(1000 * seed + night)
    made = []
    for name in QUERIES:
        ratios = (slower, fresh) if name == query else (1.0, 1.0)
        for stage, ratio, count in ((1, ratios[0], 5), (2, ratios[1], 10)):
            if ratio is None:
                continue
            for pair in range(1, count + 1):
                half = math.exp(rng.normal(0, 0.01))
                arms = (("candidate", 10 * ratio * half), ("baseline", 10 / half))
                made += [
                    f"2026-01-{night:02d},{name},{stage},{pair},{arm},{order},{CPU},{value:.6f}"
                    for order, (arm, value) in enumerate(arms, 1)
                ]
    return made


def quiet(count: int = NIGHTS) -> list[str]:
    return [row for night in range(1, count + 1) for row in rows(night)]


class Replay:
    """Runs the command in this process."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = directory / "nights.csv"
        self._capsys = capsys

    def text(self, lines: Iterable[str], *options: str) -> str:
        self.path.write_text("\n".join((HEAD, *lines)) + "\n")
        assert main(["--nights", str(self.path), *options]) == 0
        return self._capsys.readouterr().out

    def table(self, lines: Iterable[str], *options: str) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.text(lines, *options))))

    def last(self, lines: Iterable[str], query: str = "q2") -> dict[str, str]:
        return [row for row in self.table(lines) if row["query"] == query][-1]

    def error(self, content: str) -> str:
        self.path.write_text(content)
        assert main(["--nights", str(self.path)]) == 2
        captured = self._capsys.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        return captured.err.rstrip().removeprefix(str(self.path))


@pytest.fixture
def replay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Replay:
    return Replay(tmp_path, capsys)


def test_the_columns_and_their_order_are_those_of_the_contract(replay: Replay) -> None:
    text = replay.text([*quiet(), *rows(NIGHTS + 1, 1.2, 1.2)])
    lines = text.splitlines()
    assert lines[0] == OUT
    night, query, metric, verdict, ratio, lo, hi, mde, version = lines[-2].split(",")
    assert (night, query, metric, verdict) == ("2026-01-15", "q2", CPU, "REGRESSION")
    assert 1 < float(lo) < float(ratio) < float(hi)
    assert float(ratio) == pytest.approx(1.2, rel=0.03)
    assert 0 < float(mde) < 0.2
    assert version == str(rules().version)


def test_nights_are_in_order_and_queries_by_number(replay: Replay) -> None:
    table = replay.table(quiet())
    assert [row["night"] for row in table[:: len(QUERIES)]] == [
        f"2026-01-{night:02d}" for night in range(1, NIGHTS + 1)
    ]
    assert [row["query"] for row in table[:3]] == ["q0", "q2", "q10"]


def test_the_order_of_the_rows_of_a_night_does_not_matter(replay: Replay) -> None:
    nights = [rows(night) for night in range(1, NIGHTS + 1)] + [rows(NIGHTS + 1, 1.2, 1.2)]
    lines = list(chain(*nights))
    by_query = sorted(lines, key=lambda row: row.split(",")[1])
    mixed = list(chain(*(random.Random(3).sample(night, len(night)) for night in nights)))
    assert replay.text(mixed) == replay.text(by_query) == replay.text(lines)


def from_october(form: str) -> list[str]:
    """20 nights from 20 October 2026 on; in the last four q2 is 20 % slower."""
    days = [datetime(2026, 10, 20) + timedelta(days=number) for number in range(20)]
    return [
        row.replace(f"2026-01-{number:02d}", f"{day:{form}}")
        for number, day in enumerate(days, 1)
        for row in (rows(number, 1.2, 1.2) if number > 16 else rows(number))
    ]


FORMS = ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%-d/%-m/%Y", "%y-%m-%d", "%-d.%-m.%y", "%Y%m%d"]
FORMS += ["scheduled__%Y-%m-%dT03:00:00+00:00", "spark-4.3.0 %d-%m-%Y", "%A %-d %B"]


@pytest.mark.parametrize("form", FORMS)
def test_nights_are_in_the_order_of_the_file_however_dates_are_written(
    replay: Replay, form: str
) -> None:
    table = replay.table(from_october(form))
    verdicts = [row["verdict"] for row in table if row["query"] == "q2"]
    assert verdicts[-4:] == ["REGRESSION"] * 4
    assert "REGRESSION" not in verdicts[:-4]


@pytest.mark.parametrize("form", FORMS[:-1])
def test_dates_that_tell_another_order_than_the_file_are_told(
    replay: Replay, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(lines: list[str]) -> str:
        replay.path.write_text("\n".join((HEAD, *lines)))
        assert main(["--nights", str(replay.path)]) == 0
        return capsys.readouterr().err

    lines = from_october(form)
    assert said(lines) == ""
    first = [row for row in lines if row.startswith(lines[0].split(",")[0])]
    turned = said([*(row for row in lines if row not in first), *first])
    assert turned.startswith(f"{replay.path}: the nights are judged in the order of the file")
    assert repr(lines[0].split(",")[0]) in turned
    assert turned.count("\n") == 1


def test_run_numbers_are_in_the_order_of_the_file_too(
    replay: Replay, capsys: pytest.CaptureFixture[str]
) -> None:
    def renamed(names: Sequence[str]) -> list[str]:
        return [row.replace("2026-01-01", name) for name in names for row in rows(1)]

    for names, told in ((["run-10", "run-9"], True), (["run-9", "run-10"], False)):
        replay.path.write_text("\n".join((HEAD, *renamed(names))))
        assert main(["--nights", str(replay.path)]) == 0
        out, err = capsys.readouterr()
        assert [row["night"] for row in csv.DictReader(io.StringIO(out))][::3] == names
        assert ("'run-10' is before 'run-9'" in err) == told
    assert [row["night"] for row in replay.table(renamed(["monday", "friday"]))[::3]] == [
        "monday",
        "friday",
    ]


def test_a_night_is_judged_by_earlier_ones_only(replay: Replay) -> None:
    """What comes later, however wild, changes no verdict."""
    before = [*quiet(), *rows(NIGHTS + 1, 1.05, 1.02)]
    later = [*rows(NIGHTS + 2, 3.0, 3.0), *rows(NIGHTS + 3, 0.2, 0.2)]
    later += [row.replace(",q2,", ",q77,") for row in rows(NIGHTS + 3) if ",q2," in row]
    short = replay.text(before)
    assert replay.text([*before, *later]).startswith(short)


def test_a_first_night_without_history_is_judged_too(replay: Replay) -> None:
    (quiet_one,) = (row["verdict"] for row in replay.table(rows(1)) if row["query"] == "q2")
    (slower,) = (x["verdict"] for x in replay.table(rows(1, 1.3, 1.3)) if x["query"] == "q2")
    assert (quiet_one, slower) == ("OK", "REGRESSION")


def test_pairs_of_a_round_that_would_not_have_been_measured_are_not_read(replay: Replay) -> None:
    wild = [*quiet(), *rows(NIGHTS + 1, 1.0, 9.0)]
    plain = [row for row in wild if not row.startswith("2026-01-15,q2,2,")]
    assert len(plain) == len(wild) - 20
    assert replay.text(wild) == replay.text(plain)


TWELVE = (
    f"version: 7\nmetric: {CPU}\nmax_ratio: 1.1\nmatters: 0.0001\n"
    f"rounds: {[5, *[1] * 11]}\npursue_z: {[-3.0] * 11}\n"
)
"""A gate by which a query without a change is measured on to its twelfth round."""


def test_a_night_has_up_to_twelve_rounds_and_the_last_one_counts(
    replay: Replay, tmp_path: Path
) -> None:
    (tmp_path / "gate.yaml").write_text(TWELVE)

    def numbers(last_ratio: float | None) -> tuple[float, float]:
        lines = rows(1, fresh=None)
        for stage in range(2, 13 if last_ratio else 12):
            candidate = 10 * (last_ratio or 1.0) if stage == 12 else 10 * (1 + 0.001 * stage)
            for order, (arm, value) in enumerate((("candidate", candidate), ("baseline", 10.0))):
                lines.append(f"2026-01-01,q2,{stage},1,{arm},{order},{CPU},{value}")
        table = replay.table(lines, "--gate", str(tmp_path / "gate.yaml"))
        (found,) = (row for row in table if row["query"] == "q2")
        assert found["verdict"] == "UNDECIDED"
        return float(found["ratio"]), float(found["hi"])

    assert numbers(1.02) > numbers(0.98)
    assert numbers(1.02) > numbers(None)


def test_what_looks_changed_and_was_not_measured_on_is_suspect(replay: Replay) -> None:
    assert replay.last([*quiet(), *rows(NIGHTS + 1, 1.2, None)])["verdict"] == "SUSPECT"
    not_shown = replay.last([*quiet(), *rows(NIGHTS + 1, 1.2, 1.0)])["verdict"]
    assert not_shown in ("OK", "UNDECIDED")
    assert replay.last([*quiet(), *rows(NIGHTS + 1, 0.8, 0.8)])["verdict"] == "FASTER"


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (lambda row: row.rsplit(",", 1)[0] + ",nan", "INVALID"),
        (lambda row: row.rsplit(",", 1)[0] + ",0", "INVALID"),
        (lambda row: row.rsplit(",", 1)[0] + ",-4.5", "INVALID"),
        (lambda row: row.rsplit(",", 1)[0] + ",inf", "INVALID"),
        (lambda row: row.rsplit(",", 1)[0] + ",", "INVALID"),
        (lambda row: None, "OK"),  # four of five pairs are whole
    ],
)
def test_what_is_wrong_with_a_number_is_a_fact_of_its_night(
    replay: Replay, change: object, verdict: str
) -> None:
    last = rows(NIGHTS + 1)
    place = next(i for i, row in enumerate(last) if ",q2,1,3,candidate," in row)
    changed = change(last[place])  # type: ignore[operator]
    broken = [*last[:place], *([changed] if changed else []), *last[place + 1 :]]
    table = replay.table([*quiet(), *broken])
    assert [row["verdict"] for row in table[-3:]] == ["OK", verdict, "OK"]
    # And the next night has not learned from it.
    after = replay.last([*quiet(), *broken, *rows(NIGHTS + 2)])
    assert after["verdict"] == "OK"


def test_too_few_pairs_are_missing(replay: Replay) -> None:
    few = [row for row in rows(NIGHTS + 1) if int(row.split(",")[3]) <= 2]
    assert replay.last([*quiet(), *few])["verdict"] == "MISSING"


def test_a_query_of_earlier_nights_that_is_not_there_is_missing(replay: Replay) -> None:
    without = [row for row in rows(NIGHTS + 1) if ",q2," not in row]
    found = replay.last([*quiet(), *without])
    assert (found["night"], found["verdict"], found["ratio"]) == ("2026-01-15", "MISSING", "")


def test_one_arm_alone_has_nothing_to_be_compared_with(replay: Replay) -> None:
    candidates = [row for row in rows(NIGHTS + 1) if ",baseline," not in row]
    assert replay.last([*quiet(), *candidates])["verdict"] == "NO BASELINE"


class TestCanary:
    @staticmethod
    def readings(*values: float, night: int = NIGHTS + 1) -> list[str]:
        return [
            f"2026-01-{night},canary,1,1,,{order},canary_s,{value}"
            for order, value in enumerate(values)
        ]

    def test_a_steady_host_leaves_the_verdicts_and_has_no_row(self, replay: Replay) -> None:
        lines = [*quiet(), *rows(NIGHTS + 1)]
        assert replay.text([*lines, *self.readings(1.0, 1.02)]) == replay.text(lines)

    def test_before_and_after_apart_make_the_night_invalid(self, replay: Replay) -> None:
        lines = [*quiet(), *rows(NIGHTS + 1, 1.3, 1.3), *self.readings(1.0, 1.7)]
        table = replay.table(lines)
        assert {row["verdict"] for row in table if row["night"] == "2026-01-15"} == {"INVALID"}

    def test_arms_may_say_before_and_after(self, replay: Replay) -> None:
        head = "2026-01-15,canary,,,"
        canary = [f"{head}after,,canary_s,1.7", f"{head}before,,canary_s,1.0"]
        assert replay.last([*quiet(), *rows(NIGHTS + 1), *canary])["verdict"] == "INVALID"

    def test_pairs_that_each_get_slower_count_although_the_night_ends_as_it_began(
        self, replay: Replay
    ) -> None:
        canary = [
            f"2026-01-15,canary,1,{pair},,{order},canary_s,{value}"
            for pair in (1, 2, 3, 4)
            for order, value in enumerate((1.0, 1.7))
        ]
        assert replay.last([*quiet(), *rows(NIGHTS + 1), *canary])["verdict"] == "INVALID"

    def test_a_level_of_the_host_may_be_zero(self, replay: Replay) -> None:
        canary = ["2026-01-15,canary,,,,,steal_percent,0"]
        assert replay.last([*quiet(), *rows(NIGHTS + 1), *canary])["verdict"] == "OK"


GOOD = "n1,q0,1,1,candidate,1,cpu_s_per_mevent,1.5"


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        ("", 1, "the file is empty"),
        (f"{HEAD}\n", 1, "there are no rows"),
        (f"{HEAD.replace('pair,', '')}\n", 1, "column 'pair' is missing"),
        (f"{HEAD},pair\n{GOOD},1\n", 1, "column 'pair' is there twice"),
        (f"{HEAD}\n{GOOD.replace('n1', '')}\n", 2, "night is empty"),
        (f"{HEAD}\n{GOOD.replace('q0', '')}\n", 2, "query is empty"),
        (f"{HEAD}\n{GOOD}\n{GOOD.replace('q0,1', 'q0,13')}\n", 3, "stage '13' is not known"),
        (f"{HEAD}\n{GOOD.replace('candidate', 'kandidat')}\n", 2, "arm 'kandidat' is not known"),
        (f"{HEAD}\n{GOOD.replace('candidate', 'before')}\n", 2, "arm 'before' is not known"),
        (f"{HEAD}\n{GOOD.replace('1.5', 'fast')}\n", 2, "value 'fast' is not a number"),
        (f"{HEAD}\n{GOOD.replace('1,1,', '1,x,')}\n", 2, "pair 'x' is not a whole number"),
        (f"{HEAD}\n{GOOD}\n\n{GOOD}\n", 4, "is there twice in night 'n1' (first on line 2)"),
        (f"{HEAD}\nn1,q0\n", 2, "2 cells"),
        (f"{HEAD}\n{GOOD.replace('q0', 'suite')}\n", 2, "the name is the gate's own"),
        (f'{HEAD}\n"{GOOD}\n', 2, "not CSV"),
    ],
)
def test_what_is_no_table_of_nights_is_one_line_with_its_place(
    replay: Replay, content: str, line: int, says: str
) -> None:
    error = replay.error(content)
    assert error.startswith(f":{line}: ")
    assert says in error


LONG = "9" * 5000


@pytest.mark.parametrize("name", ["q5²", "q٣", f"q{LONG}"])
def test_a_name_with_digits_of_any_kind_is_a_name(replay: Replay, name: str) -> None:
    table = replay.table([row.replace(",q2,", f",{name},") for row in quiet()])
    assert [row["verdict"] for row in table if row["query"] == name][-1] == "OK"
    assert {row["query"] for row in table} == {"q0", name, "q10"}


def test_a_night_whose_name_is_a_long_number_is_a_night(replay: Replay) -> None:
    lines = [row.replace("2026-01-", LONG) for row in quiet()]
    assert {len(row["night"]) for row in replay.table(lines)} == {5002}


def test_a_long_name_leaves_a_message_short(replay: Replay) -> None:
    row = GOOD.replace("n1", LONG)
    assert len(replay.error(f"{HEAD}\n{row}\n{row}\n")) < 300
    assert len(replay.error(f"{HEAD}\n{GOOD.replace('1.5', 'x' * 5000)}\n")) < 300


@pytest.mark.parametrize("largest", ["1e308", "1.7976931348623157e308"])
@pytest.mark.parametrize("smallest", ["1e-308", "5e-324"])
def test_figures_that_are_as_far_apart_as_they_can_be_are_judged(
    replay: Replay, largest: str, smallest: str
) -> None:
    ends = [
        f"{row.rpartition(',')[0]},{largest if ',candidate,' in row else smallest}"
        if ",q2," in row
        else row
        for row in rows(NIGHTS + 1)
    ]
    for lines in ([*quiet(), *ends], ends):
        found = replay.last(lines)
        assert (found["ratio"], found["hi"]) == ("inf", "inf")
        assert found["verdict"] == "REGRESSION"


@pytest.mark.parametrize("ends", [("1e308", "1e-308"), ("5e-324", "1e308")])
def test_a_canary_that_is_as_far_apart_as_it_can_be_makes_the_night_invalid(
    replay: Replay, ends: tuple[str, str]
) -> None:
    canary = TestCanary.readings(*map(float, ends))
    assert replay.last([*quiet(), *rows(NIGHTS + 1), *canary])["verdict"] == "INVALID"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_name_that_the_terminal_cannot_show_is_no_error(
    replay: Replay, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay.path.write_text("\n".join((HEAD, GOOD.replace("q0", "q€"))), encoding="utf-8")
    terminal = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(terminal, encoding=encoding))
    assert main(["--nights", str(replay.path)]) == 0
    assert "q\\u20ac" in terminal.getvalue().decode(encoding)


def test_a_reader_that_has_seen_enough_is_no_error(
    replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay.path.write_text("\n".join((HEAD, *quiet(1))))
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert main(["--nights", str(replay.path)]) == 0
    # Python closes its output once more at its end: nothing may be left that cannot be written


CELLS = ["n1", "q5", "q5²", "1", "2", "3", "", "1e308", "1e-308", "5e-324", "nan", "inf", "-1"]
CELLS += ["candidate", "baseline", "before", "after", CPU, "wall_s", "canary", "suite", LONG]
CELLS += ['"', '"a\nb"', "a\rb", "\0", "\u2028", "9", "1_0", "1e400", "0x10", "²"]
CELL = st.sampled_from(CELLS) | st.text(max_size=3)
ROW = st.lists(CELL, min_size=8, max_size=15).map(",".join)
PLAUSIBLE = st.builds(
    "n{},q{},{},{},{},{},{},{}".format,
    *(st.integers(1, 9), st.sampled_from(["0", "5²", LONG]), st.integers(1, 2), st.integers(1, 6)),
    *(st.sampled_from(["candidate", "baseline"]), st.integers(0, 9), st.sampled_from([CPU, "x"])),
    st.floats(0, allow_infinity=False) | CELL,
)
FILES = st.lists(ROW, max_size=9).map("\n".join) | st.lists(ROW | PLAUSIBLE, max_size=30).map(
    lambda lines: "\n".join((f"{HEAD},asked,queries,baseline,basis,teaches,host,group", *lines))
)
FILES |= st.lists(PLAUSIBLE, unique_by=lambda x: x.rsplit(",", 1)[0], max_size=99).map(
    lambda lines: "\n".join((HEAD, *lines))
)


@pytest.mark.filterwarnings("error")
@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(FILES.map(lambda text: text.encode("utf-8", "replace")) | st.binary(max_size=40))
def test_every_file_gives_verdicts_or_one_line(replay: Replay, content: bytes) -> None:
    replay.path.write_bytes(content)
    code = main(["--nights", str(replay.path)])
    out, err = replay._capsys.readouterr()
    assert code in (0, 2)
    assert len(err.splitlines()) == 1 if code else len(err.splitlines()) <= 1
    assert len(err) < 500
    assert out.startswith(OUT) if code == 0 else out == ""


def test_further_columns_spaces_and_a_byte_order_mark_are_left_alone(replay: Replay) -> None:
    plain = replay.text(quiet(1))
    lines = [f" {row.replace(',', ' , ')},nexmark02" for row in quiet(1)]
    replay.path.write_text("\n".join(("\ufeff" + HEAD + ",host", *lines)))
    assert main(["--nights", str(replay.path)]) == 0
    assert replay._capsys.readouterr().out == plain


def test_a_file_that_is_not_there_or_not_text_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    binary = tmp_path / "nights.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    reasons = {
        tmp_path / "none.csv": "No such file or directory",
        tmp_path: "Is a directory",
        binary: "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
    }
    for path, reason in reasons.items():
        assert main(["--nights", str(path)]) == 2
        error = capsys.readouterr().err
        assert error == f"{path}: cannot be read: {reason}\n"


def test_the_gate_is_the_one_given(replay: Replay, tmp_path: Path) -> None:
    gate = tmp_path / "gate.yaml"
    gate.write_text(
        "version: 77\nmetric: cpu_s_per_mevent\nmax_ratio: 1.1\n"
        "rounds: [5, 10]\npursue_z: [1.4]\nmatters: 0.2\n"
    )
    table = replay.table(quiet(5), "--gate", str(gate))
    assert {row["gate_version"] for row in table} == {"77"}
    assert {row["verdict"] for row in table} == {"OK"}


def test_pairs_are_judged_as_pairs_although_the_nights_go_by_bounds(
    replay: Replay, tmp_path: Path
) -> None:
    def judged(mode: str) -> str:
        gate = tmp_path / "gate.yaml"
        gate.write_text(f"version: 7\nmetric: {CPU}\nmax_ratio: 1.1\nmode: {mode}\n")
        return replay.text([*quiet(), *rows(NIGHTS + 1, 1.2, 1.2)], "--gate", str(gate))

    assert judged("bounds") == judged("paired")
    assert "REGRESSION" in judged("bounds")


@pytest.mark.parametrize("metric", ["latency_ms_p50", "restore_s"])
def test_nights_of_another_kind_are_judged_by_the_metric_of_that_kind(
    replay: Replay, metric: str
) -> None:
    lines = [x.replace(CPU, metric) for x in [*quiet(), *rows(NIGHTS + 1, 1.5, 1.5)]]
    assert replay.last(lines)["verdict"] == "REGRESSION"


def test_a_gate_that_is_wrong_is_one_line(
    replay: Replay, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = tmp_path / "gate.yaml"
    gate.write_text("version: 2\nmetric: cpu_s_per_mevent\nmax_ratio: 1.1\nconfirm_zz: 3\n")
    replay.text(quiet(1))
    assert main(["--nights", str(replay.path), "--gate", str(gate)]) == 2
    assert "gate.yaml:4: confirm_zz: unknown key" in capsys.readouterr().err


def test_it_runs_as_a_program(replay: Replay) -> None:
    lines = quiet(1)
    text = replay.text(lines)
    done = subprocess.run(
        [sys.executable, "-m", "nexmark.verdict", "--nights", str(replay.path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == text


@pytest.mark.parametrize("arguments", [[], ["--nights", ""]])
def test_without_a_file_it_says_what_it_needs(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert "--nights" in capsys.readouterr().err


def test_help_says_what_it_does_and_what_each_option_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    usage, does, options = capsys.readouterr().out.split("\n\n")
    assert usage.startswith("usage: nexmark.verdict ")
    assert does.startswith("Judge stored nights again: ")
    assert does.endswith("[--gate gate.yaml]``.")
    assert "CSV of measurements" in options
    assert "default: gate.yaml of include/conf" in options
