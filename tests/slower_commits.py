"""A repository of three commits that are built, and whose last two have slower executors."""

from __future__ import annotations

import shlex
from pathlib import Path

from nexmark.engines import Build
from tests.git_repository import GitRepository

_SUBMIT = "org.apache.spark.deploy.SparkSubmit"
#: An option of the JVM that makes executors slower: what is hot is compiled late.
_SLOW = "-XX:CompileThresholdScaling=20"
#: Repacks a build as the one of a commit: with a conf that makes it slow, where the commit says so.
_REPACK = """
set -e
cp -rl GOOD/. "$NEXMARK_BUILD" || cp -r GOOD/. "$NEXMARK_BUILD"
echo "$NEXMARK_COMMIT" > "$NEXMARK_BUILD/NAME"
test -f slow || exit 0
conf="--conf spark.executor.extraJavaOptions=OPTION"
sed "s/SUBMIT/& $conf/" GOOD/bin/spark-submit > spark-submit
grep -q -- "$conf" spark-submit
chmod +x spark-submit
mv -f spark-submit "$NEXMARK_BUILD/bin/spark-submit"
"""
#: What follows --build-command.
BUILD_COMMAND = "sh build.sh"


def slower_commits(directory: Path, good: Build) -> list[str]:
    """Make the repository in a new directory; return its commits, the good one first."""
    repository = GitRepository.make(directory)
    home = shlex.quote(str(good.spark_home))
    script = _REPACK.replace("GOOD", home).replace("SUBMIT", _SUBMIT).replace("OPTION", _SLOW)
    return [
        repository.commit("Begin", {"build.sh": script}),
        repository.commit("Compile late", {"slow": "yes"}),
        repository.commit("Write docs", {"README.md": "docs"}),
    ]


def assert_found(output: str, commits: list[str], query: str) -> None:
    """Assert that a bisection has named the first slower commit of a query."""
    print(output)
    last = output.splitlines()[-1]
    assert last.startswith(f"first bad commit: {commits[1][:12]} Compile late, with 9")
    assert f"{query} is " in last
    assert "slower" in last
