"""The flame graphs of a night as files.

They are in the directory `flames` of the night:

    q5-baseline.svg, q5-candidate.svg, q5-difference.svg    the graphs
    q5-baseline.txt, q5-candidate.txt                       the collapsed stacks
    q5-summary.json                                         the largest changes, or the reason why
                                                            there are no graphs
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter

from nexmark.config.fields import JOB_NAME
from nexmark.flames.svg import arm_style, difference_style, flame_graph
from nexmark.flames.tree import MethodChange, Profile, compare, largest_changes, write_stacks
from nexmark.home import write_text

SCHEMA_VERSION = 1
_GRAPHS = ("baseline", "candidate", "difference")
_BASES = {"steady": "in the steady state", "application": "over the whole life of the executors"}


@dataclass(frozen=True)
class Flames:
    """The flame graphs of a query; `problem` says why there are none.

    `files` has the paths of baseline, candidate and difference (SVG), and of baseline_stacks and
    candidate_stacks (text). `cpu_s_per_mevent` (CPU-seconds of the executors per million events,
    without Python workers) and `samples` (their number) are by arm, from the repetitions that were
    recorded. `basis` is steady or application. `changes` are the methods whose own CPU time changed
    most.
    """

    query: str
    problem: str | None = None
    basis: str | None = None
    cpu_s_per_mevent: Mapping[str, float] = field(default_factory=dict)
    samples: Mapping[str, int] = field(default_factory=dict)
    changes: tuple[MethodChange, ...] = ()
    files: Mapping[str, Path] = field(default_factory=dict)


def flames_of(directory: Path, query: str) -> Flames | None:
    """Return the flame graphs of a query in a directory; None if it was not recorded."""
    if not JOB_NAME.fullmatch(query):
        return None
    try:
        content = json.loads(_summary(directory, query).read_text("utf-8"))
        if content["schema_version"] != SCHEMA_VERSION:
            return None
        flames = TypeAdapter(Flames).validate_python(content)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return flames if flames.problem is not None else replace(flames, files=_files(directory, query))


def write_flames(
    directory: Path, query: str, baseline: Profile, candidate: Profile, basis: str
) -> Flames:
    """Draw both arms of a query and their difference into a directory, and return the graphs.

    Args:
        directory: The directory of the files; it is created if there is none.
        query: The query, whose name the files have.
        baseline: The stacks of the baseline.
        candidate: The stacks of the candidate.
        basis: The part of the run that both cover: steady or application.
    """
    directory.mkdir(parents=True, exist_ok=True)
    compared = compare(baseline, candidate)
    files = _files(directory, query)
    heading = f"{query}: candidate against baseline"
    styles = {"difference": difference_style(compared, heading, _notes(baseline, candidate, basis))}
    for arm, profile in compared.profiles.items():
        write_stacks(files[f"{arm}_stacks"], profile.counts)
        cost = (
            f"{profile.cpu_s_per_mevent:.2f} CPU-seconds per million events of the {arm}'s "
            f"executors {_BASES[basis]}, by {profile.samples:,} samples"
        )
        styles[arm] = arm_style(compared, arm, f"{query}: {arm}", (cost,))
    for name, style in styles.items():
        write_text(files[name], flame_graph(compared.root, style))
    costs = {arm: profile.cpu_s_per_mevent for arm, profile in compared.profiles.items()}
    samples = {arm: profile.samples for arm, profile in compared.profiles.items()}
    changes = tuple(largest_changes(compared))
    flames = Flames(query, None, basis, costs, samples, changes, files)
    _write_summary(directory, flames)
    return flames


def write_problem(directory: Path, query: str, problem: str) -> None:
    """Write why a recorded query has no flame graphs, and delete the graphs of an earlier try."""
    directory.mkdir(parents=True, exist_ok=True)
    for path in _files(directory, query).values():
        path.unlink(missing_ok=True)
    _write_summary(directory, Flames(query, problem))


def _write_summary(directory: Path, flames: Flames) -> None:
    content = {"schema_version": SCHEMA_VERSION, **asdict(flames)}
    del content["files"]
    write_text(_summary(directory, flames.query), json.dumps(content, indent=1) + "\n")


def _notes(before: Profile, after: Profile, basis: str) -> tuple[str, ...]:
    change = after.cpu_s_per_mevent / before.cpu_s_per_mevent - 1
    return (
        f"CPU-seconds per million events of the executors {_BASES[basis]}: baseline "
        f"{before.cpu_s_per_mevent:.2f}, candidate {after.cpu_s_per_mevent:.2f} ({change:+.1%}); "
        f"{before.samples:,} and {after.samples:,} samples.",
        "Colours and figures: change as a part of the whole baseline. "
        "A box is as wide as in the arm that has more of it.",
    )


def _files(directory: Path, query: str) -> dict[str, Path]:
    """Return the paths of all files but the summary, by the names that `Flames.files` has."""
    graphs = {name: directory / f"{query}-{name}.svg" for name in _GRAPHS}
    arms = ("baseline", "candidate")
    return graphs | {f"{arm}_stacks": directory / f"{query}-{arm}.txt" for arm in arms}


def _summary(directory: Path, query: str) -> Path:
    return directory / f"{query}-summary.json"
