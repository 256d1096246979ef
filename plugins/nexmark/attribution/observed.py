"""What is known of one repetition that a change may be explained by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nexmark.measure.operator_times import Part


@dataclass(frozen=True)
class Plan:
    """The plan of a query as the job saw it: normalised text, operators, hash of the operators."""

    text: str
    skeleton: str
    skeleton_hash: str


@dataclass(frozen=True)
class Observed:
    """One repetition that counts.

    ``basis`` says what ``cpu_s_per_mevent`` (CPU-seconds per million events) and the ``parts`` are
    of: the steady state or the whole application; ``events`` is how many that has. ``wall_s`` is of
    the whole run. ``parts`` is empty where the event log could not be read; ``problem`` says why.
    """

    number: int
    stage: int
    basis: str
    events: int
    cpu_s_per_mevent: float
    wall_s: float
    plan: Plan | None = None
    formulation: str = ""
    confs: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    problem: str | None = None


__all__ = ["Observed", "Plan"]
