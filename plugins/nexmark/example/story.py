"""What happens in the example nights: which build changes what, and what people do about it.

Nights and builds have numbers from 0. Each engine has a new build every second night.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from nexmark.store import BuildRecord

NIGHTS = 30
"""The number of nights of each engine."""
NIGHTS_OF_BUILD = 2
FIRST_DAY = datetime(2026, 10, 21, tzinfo=UTC)
FIGURES: Mapping[str, float] = {
    **{"q0": 0.28, "q1": 0.61, "q3": 1.12, "q5": 5.97},
    **{"q7": 3.45, "q8": 2.20, "q17": 4.70, "q20": 12.7},
}
"""The CPU-seconds per million events of each query, as the first build needs them."""
CV = 0.012
"""The spread of single runs."""


@dataclass(frozen=True)
class Level:
    """From a build on, and until another one, a query costs ``ratio`` times what it did."""

    query: str
    ratio: float
    build: int
    until: int = NIGHTS


@dataclass(frozen=True)
class Acceptance:
    """A person accepts queries of a night, ``hours`` after it began.

    The acceptance ends ``days`` later (None: never), or is withdrawn for the reason ``withdrawn``.
    """

    night: int
    who: str
    reason: str
    queries: tuple[str, ...] = ()
    hours: int = 10
    days: int | None = None
    link: str | None = None
    withdrawn: str = ""


@dataclass(frozen=True)
class ExampleEngine:
    """An engine, and what happens in its nights.

    ``cut_short`` has by night a query whose later rounds were not measured, ``broken`` the query
    during which a host became slower, ``wrong`` the query with a wrong result. ``interrupted`` are
    nights without a verdict. ``traced`` is the query whose plan changed with its last level.
    """

    name: str
    version: str
    hour: int
    levels: tuple[Level, ...] = ()
    acceptances: tuple[Acceptance, ...] = ()
    cut_short: Mapping[int, str] = field(default_factory=dict)
    broken: Mapping[int, str] = field(default_factory=dict)
    wrong: Mapping[int, str] = field(default_factory=dict)
    interrupted: frozenset[int] = frozenset()
    traced: str = ""

    def started(self, night: int) -> datetime:
        """Return when a night began."""
        return FIRST_DAY + timedelta(days=night, hours=self.hour)

    def build_of(self, night: int) -> int:
        """Return the number of the build that a night tests."""
        return night // NIGHTS_OF_BUILD

    def build(self, number: int) -> BuildRecord:
        """Return a build."""
        day = FIRST_DAY + timedelta(days=NIGHTS_OF_BUILD * number)
        source = f"tarball:https://builds.example/spark-{self.version}-{day:%Y%m%d}.tgz"
        identity = hashlib.sha256(source.encode()).hexdigest()[:16]
        return BuildRecord(identity, f"{self.version}-SNAPSHOT", source)

    def number(self, build: str) -> int:
        """Return the number of the build with an id."""
        return next(each for each in range(NIGHTS) if self.build(each).id == build)

    def ratio(self, query: str, build: int, night: int) -> float:
        """Return what a query costs with a build, over what it costs with the first build.

        A query whose later rounds were not measured in a night looks slower in it by chance.
        """
        ratio = 1.18 if self.cut_short.get(night) == query and self.build_of(night) == build else 1
        for level in self.levels:
            if level.query == query and level.build <= build < level.until:
                ratio *= level.ratio
        return ratio


ENGINES = (
    ExampleEngine(
        "spark-4.3.0",
        "4.3.1",
        hour=22,
        levels=(
            Level("q17", 1.16, build=5, until=10),
            Level("q5", 1.19, build=14),
        ),
        acceptances=(
            Acceptance(
                night=11,
                who="ada",
                reason="a known cost of the new state format; it will be cheaper in two weeks",
                queries=("q17",),
                days=4,
                link="https://issues.example/4711",
            ),
        ),
        cut_short={6: "q8"},
        broken={24: "q7"},
        traced="q5",
    ),
    ExampleEngine(
        "spark-3.5.9",
        "3.5.10",
        hour=8,
        levels=(
            *(Level("q7", 1.018, build=build) for build in (2, 4, 6, 8, 10, 12)),
            Level("q20", 1 / 1.2, build=9),
        ),
        acceptances=(
            *(
                Acceptance(night, "grace", "the reference of this week")
                for night in (5, 9, 13, 17, 21, 25)
            ),
            Acceptance(
                night=27,
                who="linus",
                reason="accepted with the wrong build in mind",
                queries=("q1",),
                withdrawn="it was meant for another engine",
            ),
        ),
        wrong={15: "q3"},
        interrupted=frozenset({19}),
    ),
)
"""The engines of the example; each tells a part of the story."""
SIGNED_OFF, SIGNOFF_BUILD = ENGINES[0], 13
"""The engine whose build of this number is signed off, in a night of its own."""
