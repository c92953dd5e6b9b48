"""Whether a fit finds constants that are known: ``python -m calibration.recovery``.

As one certifies a regression: constants are drawn from their priors, a sweep of runs is simulated with them, its
latencies are given noise and one run in fourteen is slower than it was, and all is fitted as any runs are. Counted
is how often each constant lies in the 90 % interval that the fit states for it.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from calibration.cases.serving import ServingCase
from calibration.fitting.fit import fit_points
from calibration.fitting.points import Latencies, Measured, points_of
from calibration.fitting.priors import Prior, priors_for
from sim.commandline import guarded
from sim.profiles.calibrated import Constant, Fit
from sim.profiles.calibrated_engine import ConstantName, EngineConstants
from sim.simulate import Setup

__all__ = ["Held", "main", "recover", "shares", "sweep"]

OUTLIERS, SLOWER = 0.07, 1.6
"""Share of the runs that took longer than they should have, and how many times."""
_METRICS = ("ttft_mean_ms", "tpot_mean_ms")
_PROMPTS, _USERS, _ANSWER = (128, 768, 3000), (1, 2, 6, 16), 64

Held = Mapping[ConstantName, bool]
"""Of each constant, whether the interval of a fit held it."""


@dataclass(frozen=True, slots=True)
class _Run:
    """The run of a point as if it had been measured otherwise."""

    point: Measured
    measured: Latencies

    @property
    def case(self) -> ServingCase:
        return self.point.case

    @property
    def setup(self) -> Setup:
        return self.point.setup

    def noise(self, metric: str) -> float:
        return self.point.noise(metric)

    def predicted(self, constants: EngineConstants) -> Latencies:
        return self.point.predicted(constants)


def sweep() -> list[Measured]:
    """Return what somebody may have measured: an 8B on an H100 with prompts of three lengths and up to 16 users."""
    shared = {"engine": "vllm", "engine_version": "0.15.1", "gpu": "H100-SXM-80GB", "tp": "1", "mode": "agg"}
    shared |= {"model": "meta-llama/Llama-3.1-8B-Instruct", "weight_dtype": "bf16", "load_type": "concurrency"}
    loads = itertools.product(_PROMPTS, _USERS)
    rows = [
        {"case_id": f"{prompt} tokens, {users} users", "input_len": f"{prompt}", "output_len": f"{_ANSWER}"}
        | {"load_value": f"{users}", "num_requests": f"{2 * users}"}
        for prompt, users in loads
    ]
    return list(points_of(ServingCase(shared | row) for row in rows)[0])


def recover(points: Sequence[Measured], seed: int, noise: float = 1.0) -> Held:
    """Fit to what *points* would have measured under constants drawn with *seed*; tell which come back.

    Of errors as a fit expects them, *noise* is how many times larger those of these measurements are.
    """
    random = np.random.default_rng(seed)
    priors = priors_for(points[0].setup.version)
    true = {prior.name: _drawn(prior, random) for prior in priors}
    constants = EngineConstants(
        overlapped=bool(random.integers(2)),
        constants={name: Constant(value=value, bounds=(value, value)) for name, value in true.items()},
        fit=Fit(source=f"drawn with seed {seed}"),
    )
    fitted = fit_points("synthetic", [_measured(point, constants, noise, random) for point in points], "drawn").fitted
    return {name: low <= true[name] <= high for name, (low, high) in fitted.intervals.items()}


def _drawn(prior: Prior, random: np.random.Generator) -> float:
    """Return a value of the prior inside of its bounds."""
    while True:
        value = prior.at(random.normal())
        if prior.low < value < prior.high:
            return value


def _measured(point: Measured, constants: EngineConstants, noise: float, random: np.random.Generator) -> _Run:
    slower = SLOWER if random.random() < OUTLIERS else 1.0
    found = point.predicted(constants)
    errors = {metric: noise * point.noise(metric) * random.normal() for metric in _METRICS}
    return _Run(point, {metric: found[metric] * slower * float(np.exp(error)) for metric, error in errors.items()})


def shares(found: Sequence[Held]) -> dict[str, float]:
    """Return the share of the fits whose interval held a constant, by constant and of all together."""
    by_name: dict[str, float] = {name: sum(each[name] for each in found) / len(found) for name in found[0]}
    return by_name | {"all": sum(by_name.values()) / len(by_name)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit to many synthetic sweeps and print what share of the constants came back."""
    parser = argparse.ArgumentParser(prog="python -m calibration.recovery", description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=200, metavar="N", help="sweeps (200)")
    parser.add_argument("--noise", type=float, default=1.0, metavar="X", help="errors, in times those expected (1)")
    options = parser.parse_args(arguments)
    return guarded(lambda: _run(options.seeds, options.noise))


def _run(seeds: int, noise: float) -> int:
    from joblib import Parallel, delayed

    points = sweep()
    found = Parallel(n_jobs=-1)(delayed(recover)(points, seed, noise) for seed in range(seeds))
    for line in _lines(found):
        sys.stdout.write(line + "\n")
    return 0


def _lines(found: Sequence[Held]) -> Iterator[str]:
    yield f"{len(found)} fits; in per cent, how often the 90 % interval of a constant held it:"
    yield from (f"{name:26}{100 * share:6.1f}" for name, share in shares(found).items())


if __name__ == "__main__":
    sys.exit(main())
