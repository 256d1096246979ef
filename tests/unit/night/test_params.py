"""The params of a night mean what they say, or are refused in one line."""

from __future__ import annotations

from typing import Any

import pytest

from nexmark.errors import NexmarkError
from nexmark.night.make_night import spark_confs
from nexmark.night.params import NightParams


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("repetitions", x) for x in ("1_0", "010", "5", "1e1", 5.0, True, "٣")),
        *(("verify_scale", x) for x in ("1_0", ".5", "5", True, float("nan"), float("inf"))),
        *(("compatibility", x) for x in ("yes", "on", "off", 1, 0)),
        *(("workload", x) for x in (10, True)),
    ],
)
def test_a_value_of_another_kind_is_refused(name: str, value: object) -> None:
    with pytest.raises(NexmarkError, match=f"^{name}: .*; correct it$"):
        NightParams.of({name: value})


def test_values_of_their_kind_are_taken() -> None:
    asked = NightParams.of({"repetitions": 5, "verify_scale": 5, "compatibility": False})
    assert (asked.repetitions, asked.verify_scale, asked.compatibility) == (5, 5.0, False)


@pytest.mark.parametrize(
    ("value", "text"), [(400, "400"), (1e3, "1000"), (0.6, "0.6"), (True, "true"), ("010", "010")]
)
def test_a_conf_of_json_is_the_text_that_a_person_would_write(value: Any, text: str) -> None:
    assert spark_confs({"spark.a": value}) == {"spark.a": text}


def test_a_conf_that_is_no_number_is_refused() -> None:
    with pytest.raises(NexmarkError, match=r"spark\.a: nan is no number"):
        spark_confs({"spark.a": float("nan")})


def test_every_field_of_the_form_has_a_title_and_says_what_it_does() -> None:
    fields = NightParams.model_json_schema()["properties"]
    assert [name for name, field in fields.items() if not field.get("title")] == []
    assert [name for name, field in fields.items() if not field.get("description")] == []
