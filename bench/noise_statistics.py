"""Where the variance of a figure comes from: the statistics of `nexmark bench noise`.

Everything is a deviation of logarithms, so 0.05 is 5 %. A deviation from n values is itself known
to a part 1 / sqrt(2 (n - 1)): 16 % of it with 20 values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]


def deviation(logs: Iterable[float]) -> float | None:
    """Return the standard deviation; None for fewer than three values."""
    values = np.fromiter(logs, np.float64)
    return float(values.std(ddof=1)) if len(values) > 2 else None


@dataclass(frozen=True)
class Components:
    """The deviation between applications, and within one between its batches.

    A figure of a batches of n applications has the variance application^2 / n + batch^2 / (n a).
    """

    application: float
    batch: float

    def of_mean(self, applications: float, batches: int) -> float:
        """Return the deviation of the mean of some applications with a number of batches each."""
        variance = self.application**2 + self.batch**2 / batches
        return math.sqrt(variance / applications)

    def by_batch(self, size: int) -> Components:
        """Return the same for batches, where `batch` is of the sums of blocks of `size` batches."""
        return Components(self.application, self.batch * math.sqrt(size))


def components(batches: Sequence[Sequence[float]]) -> Components | None:
    """Return both parts of the variance of the batches of equal applications.

    The batches are logs of positive figures, a row for each application. They are matched: batch i
    of each application reads the same events, so its mean over the applications is taken off
    first, and only what is left is noise. Then it is the analysis of variance of two ways without
    repetition: the mean square of what is left over is batch^2, the mean square between
    applications is batch^2 + a * application^2 with a batches. Batches in a row are treated as if
    independent of each other. Drift within an application therefore counts as application. None
    for fewer than three applications or two batches.
    """
    common = min(map(len, batches), default=0)
    if len(batches) < 3 or common < 2:
        return None
    table = np.array([row[:common] for row in batches])
    means = table.mean(axis=1)
    rest = table - means[:, None] - table.mean(axis=0) + table.mean()
    within = float((rest**2).sum()) / ((len(table) - 1) * (common - 1))
    between = common * float(means.var(ddof=1))
    return Components(math.sqrt(max(between - within, 0) / common), math.sqrt(within))


def between_groups(logs: Sequence[float], groups: Sequence[int]) -> float | None:
    """Return the deviation of the means of groups beyond what their members explain.

    It is the random part of an analysis of variance of one way with groups of any size (pieces of
    the study, as nights). None for fewer than two groups, or where none has two members.
    """
    members: dict[int, list[float]] = {}
    for group, value in zip(groups, logs, strict=True):
        members.setdefault(group, []).append(value)
    count, total = len(members), len(logs)
    if count < 2 or total == count:
        return None
    sizes = [len(values) for values in members.values()]
    mean = float(np.mean(logs))
    means = [float(np.mean(values)) for values in members.values()]
    square = sum(n * (each - mean) ** 2 for n, each in zip(sizes, means, strict=True)) / (count - 1)
    within = sum(
        sum((value - middle) ** 2 for value in values)
        for values, middle in zip(members.values(), means, strict=True)
    ) / (total - count)
    usual_size = (total - sum(n * n for n in sizes) / total) / (count - 1)
    return math.sqrt(max(square - within, 0) / usual_size)


def after_covariates(
    logs: Sequence[float], covariates: Sequence[Sequence[float]], *, through_origin: bool = False
) -> float | None:
    """Return the deviation that is left when covariates explain what they can.

    It is a linear regression of least squares. Each value is predicted by a fit without it, so that
    a covariate that says nothing makes the figure larger, not smaller.

    Args:
        logs: The figures.
        covariates: A row for each figure.
        through_origin: No constant: for log ratios of equals, whose mean is 0.

    Returns:
        The root of the mean square of the errors of prediction; None where there are fewer than
        three values more than coefficients.
    """
    values = np.array(logs)
    if not len(values):
        return None
    design = np.array(covariates, dtype=np.float64)
    if not through_origin:
        design = np.column_stack([np.ones(len(values)), design - design.mean(axis=0)])
    if len(values) < design.shape[1] + 3:
        return None
    inverse = np.linalg.pinv(design)
    leverage = np.einsum("ij,ji->i", design, inverse)
    errors = (values - design @ (inverse @ values)) / np.maximum(1 - leverage, 1e-9)
    return float(np.sqrt((errors**2).mean()))


def matched_medians(batches: Sequence[Sequence[float]]) -> list[float]:
    """Return for each application the median of its batches against the same batches of all.

    The batches are logs, a row for each application. A batch that was hit in one application moves
    the sum of that application, and not this figure.
    """
    common = min(map(len, batches), default=0)
    if not common:
        return []
    table = np.array([row[:common] for row in batches])
    return [float(value) for value in np.median(table - np.median(table, axis=0), axis=1)]


@dataclass(frozen=True)
class Design:
    """What fits a budget: a number of applications, their steady batches, and the deviation then.

    `deviation` is of the ratio of two arms that have one budget each.
    """

    applications: int
    batches: int
    deviation: float


def design(
    parts: Components, start_s: float, batch_s: float, budget_s: float, batches: int
) -> Design | None:
    """Return what one budget buys with a number of batches; None if not one application.

    Args:
        parts: The parts of the variance.
        start_s: What an application costs beside its steady batches.
        batch_s: What a steady batch costs.
        budget_s: What there is to spend.
        batches: How many steady batches an application has.
    """
    count = int(budget_s // (start_s + batches * batch_s))
    if count < 1:
        return None
    return Design(count, batches, math.sqrt(2) * parts.of_mean(count, batches))


def best_design(
    parts: Components, start_s: float, batch_s: float, budget_s: float, most: int = 500
) -> Design | None:
    """Return the design with the least deviation; None where the budget buys none.

    Args:
        parts: The components of the variance.
        start_s: What an application costs before its first steady batch, in CPU-seconds.
        batch_s: What a steady batch costs, in CPU-seconds.
        budget_s: The budget of each arm, in CPU-seconds.
        most: The largest number of steady batches.
    """
    designs = (design(parts, start_s, batch_s, budget_s, n) for n in range(1, most + 1))
    return min((each for each in designs if each), key=lambda each: each.deviation, default=None)
