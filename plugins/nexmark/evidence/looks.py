"""How a verdict looks: its word, its shape, its tone, and how much attention it needs."""

from __future__ import annotations

from dataclasses import dataclass

from nexmark.model import Value

NOT_JUDGED = "NOT JUDGED"


@dataclass(frozen=True)
class Look:
    """A verdict for the eye; no colour says what the word and the shape do not say."""

    word: str
    shape: str
    tone: str
    rank: int
    meaning: str


_LOOKS = {
    Value.INVALID: ("cross", "bad", 0, "The result is wrong, or the figures cannot be trusted."),
    Value.MISSING: ("hole", "bad", 1, "It did not deliver all its repetitions."),
    Value.REGRESSION: ("up", "bad", 2, "Slower; measured twice in the same night."),
    Value.SUSPECT: ("question", "bad", 3, "Looks changed, and could not be measured again."),
    Value.WATCH: ("eye", "warn", 4, "A slow drift, or a metric that does not decide has changed."),
    Value.SOURCE_BOUND: (
        *("bars", "warn", 5),
        "The source is hardly faster than the query: the figures may be the source's.",
    ),
    Value.UNCONFIRMED: (
        *("wave", "calm", 6),
        "Looked changed, and was not when it was measured again the same night.",
    ),
    Value.FASTER: ("down", "good", 7, "Better, by the same test the other way round."),
    Value.CALIBRATING: ("dots", "calm", 8, "Nothing to compare with yet, or the noise is unknown."),
    Value.OK: ("check", "good", 9, "No change that this night could have told from noise."),
}
_UNJUDGED = Look(NOT_JUDGED, "hole", "calm", 4, "No verdict is recorded (yet).")
_KNOWN = 20
"""Accepted reds come after open ones."""


def look(value: str | None, *, known: bool = False) -> Look:
    """Return how a verdict looks; ``known``: somebody has accepted it."""
    if value is None:
        return _UNJUDGED
    try:
        shape, tone, rank, meaning = _LOOKS[Value(value)]
    except ValueError:
        return Look(value, "question", "calm", _UNJUDGED.rank, "A value of another gate version.")
    if known:
        return Look(f"{value} (accepted)", shape, "calm", rank + _KNOWN, meaning)
    return Look(value, shape, tone, rank, meaning)


def legend() -> list[Look]:
    """Return how all values look, the worst first."""
    return [look(value) for value in _LOOKS]
