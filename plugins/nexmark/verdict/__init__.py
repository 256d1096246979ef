"""The gate: pure functions, numbers in and verdicts out."""

from nexmark.verdict.bounds import BoundsArm, BoundsRepetition, Verdict, judge

__all__ = ["BoundsArm", "BoundsRepetition", "Verdict", "judge"]
