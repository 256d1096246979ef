"""The builds among which a search looks: builds that a person lists, or builds of commits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from nexmark.commits.source_changes import source_change
from nexmark.config import load_repository, paths
from nexmark.engines import BuildError, parse_source, usable
from nexmark.terminal import show_line


class BuildSequence(Protocol):
    """Builds in their order, a good one first and a bad one last."""

    @property
    def noun(self) -> str:
        """What an element is called: build or commit."""

    @property
    def fixed(self) -> bool:
        """Whether each directory of these has the same build for ever."""

    @property
    def builds(self) -> Sequence[str]:
        """The builds as params of a night."""

    @property
    def names(self) -> Mapping[str, str]:
        """The names for people, where they differ from the params."""

    def prepare(self, build: str) -> None:
        """Let a build be there before it is fetched; BuildError says why it cannot be."""

    def details(self, before: str, last: str) -> list[str]:
        """Return what is known of the change from one build to a later one, line by line."""


@dataclass(frozen=True)
class GivenBuilds:
    """The builds that a person has listed for a search on the nights of an engine."""

    builds: Sequence[str]
    engine: str

    noun = "build"
    fixed = False

    @property
    def names(self) -> Mapping[str, str]:
        """No names: people read the params."""
        return {}

    def prepare(self, build: str) -> None:
        """Do nothing: each build is there, or is fetched."""

    def details(self, before: str, last: str) -> list[str]:
        """Return what changed in the source between two builds, line by line."""
        try:
            old, new = (
                usable(parse_source(build), paths.builds_dir(), say=show_line).revision
                for build in (before, last)
            )
        except BuildError:
            return []
        change = source_change(load_repository(self.engine), old, new)
        return change.lines if change else []
