"""How the times of simulated runs spread: in the example, and in ``nexmark bench gate``.

The log time of a run is: a start-up effect of its JVM (0.3 CV) + a slow wander shared by the two
runs of a pair (0.71 CV) + independent noise (0.71 CV) + in 2 % of the runs a spike (exponential,
mean 30 %).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

JVM = 0.3
"""Spread of the start-up effect over the CV."""
DEGREES = 4
"""Degrees of freedom of Student's t where tails are heavy."""


@dataclass(frozen=True)
class RunNoise:
    """How runs spread.

    ``fresh_jvm``: every repetition has its own JVM, else one per arm and stage. ``spikes`` is the
    share of spiked runs, ``shared`` the share of the variance within a night that the runs of a
    pair have in common; ``heavy`` draws from Student's t with the same spread.
    """

    fresh_jvm: bool = True
    spikes: float = 0.02
    shared: float = 0.5
    heavy: bool = False

    def runs(
        self, scale: NDArray[np.float64], pairs: int, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return log times (..., pairs, 2 arms) for CVs of shape (...), without the host's part."""
        shape = (*scale.shape, pairs)
        wide = scale[..., None, None]
        jvm = rng.standard_normal((*shape, 2) if self.fresh_jvm else (*scale.shape, 1, 2))
        alone = math.sqrt(1 - self.shared) * self._noise((*shape, 2), rng)
        common = math.sqrt(self.shared) * self._noise((*shape, 1), rng)
        spiked = rng.random((*shape, 2)) < self.spikes
        spike = np.log1p(np.where(spiked, rng.exponential(0.3, (*shape, 2)), 0.0))
        result: NDArray[Any] = wide * (JVM * jvm + alone + common) + spike
        return result

    def _noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
        if not self.heavy:
            return rng.standard_normal(shape)
        result: NDArray[Any] = rng.standard_t(DEGREES, shape)
        return result * math.sqrt((DEGREES - 2) / DEGREES)


def random_numbers(*seed: int) -> np.random.Generator:
    """Return random numbers, the same for the same seed."""
    return np.random.default_rng(seed)


def log_times(cv: float, pairs: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the log times (pairs, 2 arms) of pairs whose runs have the spread ``cv``."""
    return RunNoise().runs(np.asarray(cv), pairs, rng)
