"""Search the first bad build: measure the build that says most about it, until one is likely.

The caller passes the function that measures, so that the search knows no nights and no Airflow.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nexmark.engines import parse_source
from nexmark.errors import NexmarkError
from nexmark.model import Say, origin_of
from nexmark.verdict.bisection import Bisection, Pairs, bisection_of, shift_of

#: If the bad build differs from the good one by less than NOTHING standard deviations, the search
#: ends; from DIFFERENT on it is certain. Between the two, the difference may be chance: it ends the
#: search only when the bad build has been measured in ENOUGH nights.
NOTHING, DIFFERENT, ENOUGH = 1.0, 2.0, 3


class Unmeasurable(NexmarkError):
    """A build that cannot be measured; the search goes on without it."""


@dataclass
class Search:
    """A search among `builds` (good first, bad last), as far as it has come.

    `nights` has the pairs of each night, in the order of measurement; `skipped` has the builds that
    could not be measured. `floor` is the least noise that the search assumes for a night, as a
    standard deviation of the log ratio. `names` are names of builds for people, where they differ
    from the params, and `noun` is what a build is called: a build or a commit.
    """

    builds: Sequence[str]
    nights: list[Pairs]
    floor: float
    skipped: list[str] = field(default_factory=list)
    names: Mapping[str, str] = field(default_factory=dict)
    noun: str = "build"

    def name(self, build: str) -> str:
        """Return the name of a build for people."""
        return self.names.get(build, build)

    def state(self) -> Bisection:
        """Return the present probability of each build; the bad build must have been measured."""
        return bisection_of(self.builds, self.nights, self.skipped, self.floor)

    @property
    def pairs(self) -> int:
        """How many pairs were measured."""
        return sum(len(night.ratios) for night in self.nights)

    def run(
        self,
        measure: Callable[[str], Pairs],
        most: int,
        show: "Callable[[Search, Bisection], None]",
        say: Say,
    ) -> Bisection:
        """Measure until a build has 95 %, no build is left to measure, or there are `most` nights.

        A build between good and bad that cannot be measured is left out.

        Args:
            measure: Measures a build; Unmeasurable if the build is at fault.
            most: The largest number of nights, known ones included.
            show: Called with the search and its probabilities after each night.
            say: Called with each line of progress.

        Raises:
            NexmarkError: The bad build does not differ from the good one.
            Unmeasurable: The bad build cannot be measured.
        """
        bad = self.builds[-1]
        if all(night.build != bad for night in self.nights):
            say(f"measuring the bad {self.noun}, {self.name(bad)}")
            self.nights.append(measure(bad))
        while True:
            state = self.state()
            self._check_difference(state)
            show(self, state)
            build = state.next()
            if build is None or len(self.nights) >= most:
                return state
            say(f"measuring {self.name(build)}")
            try:
                self.nights.append(measure(build))
            except Unmeasurable as error:
                if build == bad:
                    raise
                say(f"left out: {error}")
                self.skipped.append(build)

    def _check_difference(self, state: Bisection) -> None:
        """Raise NexmarkError if the bad build does not differ from the good one."""
        size, deviation = state.size
        nights = sum(night.build == self.builds[-1] for night in self.nights)
        if abs(size) < (DIFFERENT if nights >= ENOUGH else NOTHING) * deviation:
            raise NexmarkError(
                f"the bad {self.noun} does not differ from the good one: "
                f"{percent(size, deviation)} in {self.pairs} pairs; check GOOD and BAD, or give "
                "more REPETITIONS"
            )


_INTERVAL = 1.96
"""Half the width of a 95 % interval, in standard deviations."""


def percent(size: float, deviation: float) -> str:
    """Return a log ratio as a percentage with its 95 % interval, by its standard deviation."""
    sign, way = (1, "slower") if size >= 0 else (-1, "faster")
    bounds = (size - _INTERVAL * deviation, size + _INTERVAL * deviation)
    ends = sorted(sign * 100 * math.expm1(bound) for bound in bounds)
    return f"{abs(100 * math.expm1(size)):.1f} % {way} ({ends[0]:.1f} to {ends[1]:.1f} %)"


LISTED = 25
"""The number of builds up to which a table has a line for each."""
NOTABLE = 0.01
"""In a longer sequence, a build that was not measured has a line from this probability on."""


def table(search: Search, state: Bisection) -> str:
    """Return a table of the builds: nights, ratio, probability that it is the first bad build.

    Of a long sequence it has the ends, what was measured or left out, and what is likely.
    """
    listed = _listed_builds(search, state)
    names = [search.names.get(build) or origin_of(build) for build in listed]
    width = max(len(search.noun), *map(len, names))
    lines = [f"{search.noun:<{width}}  nights   ratio  first bad"]
    for build, name in zip(listed, names, strict=True):
        of_build = [night.ratios for night in search.nights if night.build == build]
        every = [ratio for ratios in of_build for ratio in ratios]
        ratio = f"{math.exp(shift_of(every)):.3f}" if every else "-"
        chance = f"{100 * state.posterior[build]:.1f} %"
        if build == search.builds[0]:
            ratio, chance = "1", "good"
        if build in search.skipped:
            ratio = "none"
        lines.append(f"{name:<{width}}  {len(of_build):>6}  {ratio:>6}  {chance:>9}")
    if others := len(search.builds) - len(listed):
        lines.append(f"and {others} more, none of them measured")
    return "\n".join(lines)


def _listed_builds(search: Search, state: Bisection) -> Sequence[str]:
    """Return the builds that a table has a line for, in their order."""
    if len(search.builds) <= LISTED:
        return search.builds
    known = {search.builds[0], search.builds[-1], *search.skipped}
    known |= {night.build for night in search.nights}
    chances = state.posterior
    likely = sorted((b for b in search.builds if chances[b] >= NOTABLE), key=lambda b: -chances[b])
    known |= set(likely[:LISTED])
    return [build for build in search.builds if build in known]


def answer(query: str, search: Search, state: Bisection) -> str:
    """Return in one line the first bad build, or the builds among which it is."""
    size = f"{query} is {percent(*state.size)} from it on"
    spent = f"{len(search.nights)} nights, {search.pairs} pairs"
    builds = state.found or state.credible
    chance = min(100 * sum(state.posterior[build] for build in builds), 99.9)
    first = f"first bad {search.noun}"
    which = f"{_enumerated([search.name(build) for build in builds])}, with {chance:.1f} %"
    if len(state.found) == 1:
        return f"{first}: {which}; {size}; {spent}"
    if state.found:
        return (
            f"{first}: one of {which}: those before the last could not be measured; {size}; {spent}"
        )
    return (
        f"{first}: not found; one of {which}; {size}; {spent}; "
        "run it again with more --measurements"
    )


def _enumerated(names: Sequence[str]) -> str:
    """Return names in a line: all of a few, the ends of many."""
    if len(names) <= LISTED:
        return ", ".join(names)
    return f"{names[0]} to {names[-1]} ({len(names)})"


def read_builds(good: str, bad: str, between: str) -> list[str]:
    """Return the builds of a search in order: good, those between, bad.

    `between` is the path of a file (one build in each line, a line that begins with # is a comment)
    or names separated by commas. NexmarkError for a build that is wrong, missing or given twice.
    """
    for name, value in (("--good", good), ("--bad", bad), ("--builds", between)):
        if not value.strip():
            raise NexmarkError(f"bisect: {name} is not given; give {name} ...")
    good, bad = _named("--good", good), _named("--bad", bad)
    listed = [_named("--builds", text) for text in _listed(between)]
    listed = [build for build in listed if build not in (good, bad)]
    builds = [good, *listed, bad]
    twice = [build for build in builds if builds.count(build) > 1]
    if twice:
        raise NexmarkError(f"bisect: build {origin_of(twice[0])} is listed twice; list it once")
    if not listed:
        raise NexmarkError("--builds: no build is between --good and --bad; give those in between")
    return builds


def _listed(between: str) -> list[str]:
    """Return the texts of the builds that `--builds` names, itself or in a file."""
    path = Path(between).expanduser()
    if re.match(r"(pypi|tarball|directory):", between.strip()):
        texts = between.split(",")
        if not all(text.strip() for text in texts):
            raise NexmarkError(f"--builds: an empty name in {between!r}; write them like a,b,c")
    elif path.is_file():
        lines = path.read_text(encoding="utf-8").splitlines()
        texts = [line for line in lines if not line.lstrip().startswith("#")]
    else:
        raise NexmarkError(
            f"--builds: {between!r} is neither a file nor builds; give a file with a build a line, "
            "or pypi:4.1.3,pypi:4.1.4"
        )
    return [text.strip() for text in texts if text.strip()]


def _named(where: str, text: str) -> str:
    """Return a build in its usual form; NexmarkError, with the option `where`, for a wrong one."""
    try:
        return str(parse_source(text))
    except NexmarkError as error:
        raise NexmarkError(f"{where}: {error}") from None
