"""The error table that comes along, made anew: ``python -m calibration.uncertainty_shipped CASES.csv -o FILE``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from calibration.cases.anomalies import anomaly_of
from calibration.cases.serving import read_serving_cases
from calibration.validation.serving import predict_all
from calibration.validation.uncertainty import Observed, as_yaml, coverage, error_table, half_of, observed_in
from sim.commandline import guarded
from sim.wholefile import write_whole

__all__ = ["coverage_lines", "main"]


def coverage_lines(runs: Sequence[Observed]) -> Iterator[str]:
    """Yield what share of the runs intervals hold that were made without them."""
    left_out = {
        "half of the runs": half_of,
        "the model": lambda run: run.model,
        "the accelerator": lambda run: run.gpu,
    }
    for what, group_of in left_out.items():
        found = coverage(runs, group_of)
        shares = ", ".join(f"{name} {share:.1f} % of {count}" for name, (share, count) in sorted(found.items()))
        yield f"intervals made without {what} hold: {shares}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate all cases whose labels can be right, write the table and print how often it holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    return guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    together = (case for case in read_serving_cases(options.cases) if case.text("mode") == "agg")
    cases = [case for case in together if anomaly_of(case) is None]
    runs = list(observed_in(cases, predict_all(cases)))
    write_whole(options.output, as_yaml(error_table(runs)).encode())
    for line in coverage_lines(runs):
        sys.stdout.write(line + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
