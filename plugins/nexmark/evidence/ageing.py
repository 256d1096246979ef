"""What the JVMs of soak repetitions held over the batch number, as pages draw it."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from nexmark.model import ARMS, grouped
from nexmark.store.table_rows import RepetitionRow


@dataclass(frozen=True)
class AgedLine:
    """A figure of an arm over the batch number, the median of its repetitions.

    ``growths`` has the growth of each repetition in 1,000 batches after the warm-up, with its 95 %
    interval, in ``growth_unit``; an arm has them in the order of the pairs. ``parts`` are what grew
    most in the last repetition: name, growth in ``unit``, share of all growth. ``limited``:
    ``soak_growth`` has a limit for it.
    """

    name: str
    unit: str
    growth_unit: str
    limited: bool
    arm: str
    points: tuple[tuple[int, float], ...]
    growths: tuple[tuple[float, float, float], ...]
    parts: tuple[tuple[str, float, float], ...] = ()


def aged_lines(rows: Iterable[RepetitionRow]) -> list[AgedLine]:
    """Return the lines of both arms, over the repetitions that count; [] without samples."""
    counting = [row for row in rows if row.counts and row.ageing and row.arm in ARMS]
    if not counting:
        return []
    from nexmark.verdict.growth import Line, growth_of, lines_of, parts_that_grew

    lines: dict[tuple[str, str], list[tuple[Line, RepetitionRow]]] = {}
    for row in counting:
        for line in lines_of(row.ageing or ()):
            lines.setdefault((line.name, row.arm), []).append((line, row))
    names = list(dict.fromkeys(name for name, _ in lines))
    aged = []
    for name in names:
        for arm in ARMS:
            of_arm = lines.get((name, arm), [])
            if not of_arm:
                continue
            points = [
                point for line, _ in of_arm for point in zip(line.batches, line.values, strict=True)
            ]
            growths = [growth_of(line, row.warmup_batches or 0) for line, row in of_arm]
            first, (last, row) = of_arm[0][0], of_arm[-1]
            parts = parts_that_grew(row.ageing or (), last, row.warmup_batches or 0)
            aged.append(
                AgedLine(
                    name=name,
                    unit=first.held.unit,
                    growth_unit=first.held.growth_unit,
                    limited=bool(first.held.limit),
                    arm=arm,
                    points=tuple(
                        (batch, median(value for _, value in same))
                        for batch, same in sorted(grouped(points, lambda each: each[0]).items())
                    ),
                    growths=tuple((each.slope, each.lo, each.hi) for each in growths if each),
                    parts=tuple((part.name, part.grown, part.share) for part in parts),
                )
            )
    return aged
