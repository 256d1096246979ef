"""Verdicts of history mode: one arm, relative to the canary, against its own past."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from nexmark.verdict.canary import level
from nexmark.verdict.comparison import Value
from nexmark.verdict.grounds import Grounds
from nexmark.verdict.nights import Measured, QueryVerdict
from nexmark.verdict.one_arm import OneArm, decide_one_arm
from nexmark.verdict.past import Past
from nexmark.verdict.stages import SEEN

WIDTH = 1.96
"""Half the width of a 95 % interval, in noise units."""


def judge(fit: Sequence[Measured], grounds: Grounds, past: Past) -> list[QueryVerdict]:
    """Judge the candidates of a night by their earlier levels.

    ``baseline`` names what levels have to have in common: the canaries, and the basis of figures.
    """
    rules = grounds.rules
    host = level(grounds.night.canary)
    if host is None:
        reason = (
            "history mode needs the timings of a canary: the host cannot be told from the build"
        )
        return [grounds.blank(one.query, one.metric, Value.INVALID, reason) for one in fit]
    canary, made_of = host
    levels = np.asarray([_level(one) - canary for one in fit])
    nights = rules.one_arm_nights
    common = [f"{one.basis} {made_of}".strip() for one in fit]
    earlier = [
        past.levels(one.query, shared, nights) for one, shared in zip(fit, common, strict=True)
    ]
    table = np.asarray([[math.nan] * (nights - len(row)) + row for row in earlier])
    found = decide_one_arm(levels, table, rules)
    return [
        _verdict(
            replace(
                grounds.blank(one.query, one.metric, Value.OK, ""),
                shift=float(levels[index]),
                pairs=len(one.pairs),
                baseline=common[index],
            ),
            found,
            index,
            grounds,
        )
        for index, one in enumerate(fit)
    ]


def _level(one: Measured) -> float:
    return math.log(median(x.candidate for x in one.pairs if x.candidate is not None))


def _verdict(verdict: QueryVerdict, found: OneArm, index: int, grounds: Grounds) -> QueryVerdict:
    rules, nights = grounds.rules, int(found.nights[index])
    if nights < rules.calibration_nights:
        reason = f"{nights} of {rules.calibration_nights} nights to compare with"
        return replace(verdict, value=Value.CALIBRATING, reason=reason)
    shift, noise = float(found.shift[index]), float(found.noise[index])
    around = WIDTH * noise
    needed = max(rules.one_arm_z * noise, math.log1p(rules.one_arm_change))
    verdict = replace(
        verdict,
        ratio=math.exp(shift),
        lo=math.exp(shift - around),
        hi=math.exp(shift + around),
        mde=math.expm1(needed + SEEN * noise),
        noise=noise,
    )
    size = f"{math.exp(shift):.3f} of the last {nights} nights, relative to the canary"
    side = float(found.side[index])
    if side > 0:
        value = Value.REGRESSION if verdict.decides else Value.WATCH
        return replace(verdict, value=value, reason=f"slower: {size}")
    if side < 0:
        return replace(verdict, value=Value.FASTER, reason=f"faster: {size}")
    return replace(verdict, reason=size)


__all__ = ["judge"]
