"""Files of Spark confs: read as Spark reads them, a mistake is one line with file, line and key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nexmark.config import ConfigError, load
from nexmark.config.load import read_profile


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (b"spark.a 1\nspark.b\n", 2, "spark.b: spark.b has no value; write one, or remove it"),
        (b"spark.b =\n", 1, "spark.b has no value"),
        (b"# c\n\nspark.master=local\n", 3, "spark.master is set by the benchmark itself; remove"),
        (b"spark.app.name: x\n", 1, "spark.app.name is set by the benchmark itself"),
        (b"spark.submit.deployMode cluster\n", 1, "set by the benchmark itself"),
        (b"spark.eventLog.dir /tmp\n", 1, "set by the benchmark itself"),
        (b"spark.authenticate.secret x\n", 1, "set by the benchmark itself"),
        (b"spark.a 1\nspark.b 2\n spark.a=3\n", 3, "is there twice (first on line 1); remove one"),
        (b"spark.a x\\ny\n", 1, "has a line break or another control character"),
        (b"spark.a x\\u0000y\n", 1, "has a line break or another control character"),
        (b"sql.shuffle.partitions 1\n", 1, "'sql.shuffle.partitions' is not a Spark conf"),
        (b"spark.sql.shuffle.partitions -1\n", 1, "is '-1', not a number from 1 to"),
        (b"spark.a 1\nspark.b \xff\n", 2, "cannot be read: it is no text in UTF-8"),
        (b"\x1f\x8b\x08\x00\n", 1, "cannot be read: it is no text in UTF-8"),
    ],
)
def test_a_mistake_in_a_profile_is_one_line_with_file_line_key_and_remedy(
    conf: Path, content: bytes, line: int, says: str
) -> None:
    """Whether a workload or an engine has it or not."""
    (conf / "spark" / "mine.conf").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(conf)
    text = str(caught.value)
    assert "\n" not in text
    assert re.match(rf".*mine\.conf:{line}: ", text), text
    assert says in text


def test_a_profile_is_read_as_spark_reads_it(conf: Path) -> None:
    profile = conf / "spark" / "mine.conf"
    profile.write_text(
        "# a comment\n! another\n\n  spark.a 1\nspark.b=2\nspark.c : x = y\nspark.d\t-Xa \\\n"
        "    -Xb\nspark.sql.shuffle.partitions 4 \nspark.e C:\\\\x\n"
    )
    assert read_profile(profile) == {
        "spark.a": "1",
        "spark.b": "2",
        "spark.c": "x = y",
        "spark.d": "-Xa -Xb",
        "spark.sql.shuffle.partitions": "4 ",
        "spark.e": "C:\\x",
    }
    load(conf)
