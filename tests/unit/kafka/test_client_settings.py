"""A file of client settings is read, and its mistakes are said without its secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from nexmark.kafka import KafkaError
from nexmark.kafka.client_settings import read_settings

SECRET = "pass-word"


def test_settings_are_texts_by_librdkafkas_names(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(f'{{"sasl.password": "{SECRET}", "socket.timeout.ms": 10, "check.crcs": true}}')
    assert read_settings(path) == {
        "sasl.password": SECRET,
        "socket.timeout.ms": "10",
        "check.crcs": "True",
    }


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (f'{{"sasl.password": "{SECRET}"'.encode(), "line 1, column"),
        (f'["{SECRET}"]'.encode(), "no JSON object"),
        (f'{{"sasl.password": ["{SECRET}"]}}'.encode(), "sasl.password is no text"),
        (f"sasl.password={SECRET}".encode(), "line 1, column 1: no JSON"),
        (b"\xff\xfe", "the file is no text"),
        (None, "No such file or directory"),
    ],
)
def test_a_mistake_is_named_without_a_secret(
    content: bytes | None, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "settings.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(KafkaError) as refused:
        read_settings(path)
    assert str(refused.value).startswith(f"client settings {path}")
    assert problem in str(refused.value)
    assert SECRET not in str(refused.value)
