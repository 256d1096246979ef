"""What the gate says of each query: pure functions, numbers in and verdicts out."""

from nexmark.verdict.comparison import (
    FAILING,
    Arm,
    Gate,
    Repetition,
    Value,
    Verdict,
    judge,
    night_failed,
)

__all__ = ["FAILING", "Arm", "Gate", "Repetition", "Value", "Verdict", "judge", "night_failed"]
