"""Measure builds by nights of `nexmark_build`, and find the builds that were measured before."""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from nexmark.bisect.build_sequence import BuildSequence
from nexmark.bisect.search import Unmeasurable
from nexmark.config import BUILD_DAG_ID, Config, paths
from nexmark.engines import BuildError, parse_source, usable
from nexmark.errors import NexmarkError
from nexmark.model import MIN_PAIRS
from nexmark.night.make_night import make_night
from nexmark.night.night_plan import Night
from nexmark.store import Store, open_store
from nexmark.store.table_rows import NightRow
from nexmark.terminal import INTERRUPTED, show_line
from nexmark.verdict.bisection import Pairs
from nexmark.verdict.eligibility import Grounds


@dataclass(frozen=True)
class MeasuredBuilds:
    """Nights of `nexmark_build` that compare builds with a good one.

    `params` are the params of these nights without the build; `run` runs a night with its params,
    and returns the exit code. `sequence` has the builds.
    """

    config: Config
    engine: str
    params: dict[str, Any]
    run: Callable[[dict[str, Any]], int]
    sequence: BuildSequence

    def plan(self, build: str) -> Night:
        """Return the plan of the night that measures a build; NexmarkError if none is possible."""
        params = {**self.params, "build": build}
        return make_night(self.config, self.engine, BUILD_DAG_ID, "", params)

    def known(self) -> list[Pairs]:
        """Return the pairs of the nights of the builds that are recorded, the oldest first."""
        with open_store(paths.database_url()) as store:
            recorded = self._recorded(store, self.sequence.builds)
            nights = [self._pairs(store, build, row) for build, row in recorded]
        return [pairs for pairs in nights if not isinstance(pairs, str)]

    def measure(self, build: str) -> Pairs:
        """Run a night of a build, and return its pairs.

        Raises:
            Unmeasurable: The build is at fault.
            NexmarkError: The night ended before the build was measured.
            KeyboardInterrupt: The person interrupted the night.
        """
        self.fetch(build)
        with open_store(paths.database_url()) as store:
            before = {row.id for row in store.nights()}
        params = {**self.params, "build": build}
        if self.run(params) == INTERRUPTED:
            raise KeyboardInterrupt
        with open_store(paths.database_url()) as store:
            for _, row in self._recorded(store, [build]):
                if row.id not in before:
                    pairs = self._pairs(store, build, row)
                    if isinstance(pairs, str):
                        raise Unmeasurable(f"{self._name(build)}: {pairs}")
                    return pairs
        raise NexmarkError(
            f"the night of {self._name(build)} ended before it was measured, see above; repair it "
            "and start the search again: it goes on from here"
        )

    def fetch(self, build: str) -> str:
        """Make or fetch a build and return its id; Unmeasurable if that cannot be done."""
        try:
            self.sequence.prepare(build)
            return usable(parse_source(build), paths.builds_dir(), say=show_line).id
        except BuildError as error:
            raise Unmeasurable(str(error)) from None

    def _name(self, build: str) -> str:
        return self.sequence.names.get(build, build)

    def _recorded(self, store: Store, builds: Sequence[str]) -> list[tuple[str, NightRow]]:
        """Return the recorded nights that measure one of these builds as this search does."""
        wanted = _measured(self.plan(builds[0]))  # the build is no part of it
        nights = []
        for row in reversed(store.nights()):
            if row.dag_id != BUILD_DAG_ID:
                continue
            with suppress(NexmarkError, ValueError):  # its directory is gone, or of another version
                plan = Night.read(row.dag_id, row.run_id)
                build = str(plan.candidate)
                if build in builds and _measured(plan) == wanted:
                    nights.append((build, row))
        good = self.params["against"]
        return [
            (build, row)
            for build, row in nights
            if self._is_that_build(build, row.build_id)
            and all(self._is_that_build(good, each) for each in (row.baselines or {}).values())
        ]

    def _is_that_build(self, build: str, recorded: str) -> bool:
        """Return whether the id of a recorded build is the id that `build` has now.

        Only a directory that is not `fixed` can have another build than before.
        """
        if self.sequence.fixed or parse_source(build).directory is None:
            return True
        try:
            return self.fetch(build) == recorded
        except Unmeasurable:
            return False

    def _pairs(self, store: Store, build: str, row: NightRow) -> Pairs | str:
        """Return the pairs of a night, or the reason why there are none."""
        (query,) = row.queries
        night = store.paired_night(row.id)
        reason = night.invalid.get(query) or night.missing.get(query)
        if reason:
            return str(reason)
        metric = Grounds(night, self.config.gate).metric(query)
        for measured in night.measured:
            if measured.metric == metric:
                every = [pair.ratio for pair in measured.all_pairs]
                ratios = tuple(ratio for ratio in every if not math.isnan(ratio))
                if len(ratios) >= MIN_PAIRS:
                    return Pairs(build, ratios)
        return f"fewer than {MIN_PAIRS} pairs were measured"


def _measured(night: Night) -> tuple[Any, ...]:
    """Return what a night measures apart from its builds, to compare it with other nights."""
    confs = (night.engine.name, night.engine.conf, night.conf_profile)
    return night.workload, night.cluster, night.queries, night.mode, night.against, confs
