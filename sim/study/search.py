"""``answer_of(experiment, laboratory)``: the answer to the ``search:`` of an experiment, whatever it asks.

Every answer is a frozen dataclass with `as_dict()`, the plain data that ``sim search --format json`` prints, and
`rows()`, a flat table of what was considered. A `Laboratory` makes the runs: its `on_run` is called before each one,
and what it raises ends the search, which is how to cancel one.
"""

from __future__ import annotations

from sim.experiment import Experiment
from sim.search.cheapest import Cheapest
from sim.search.pareto import Pareto
from sim.search.sensitivity import Sensitivity
from sim.study.answer import CheapestAnswer
from sim.study.capacity import CapacityAnswer, find_capacity
from sim.study.cheapest import find_cheapest
from sim.study.laboratory import Laboratory
from sim.study.pareto import ParetoAnswer, find_fronts
from sim.study.sensitivity import SensitivityAnswer, find_sensitivity
from sim.study.spread import Spread

__all__ = ["Answer", "answer_of"]

Answer = CapacityAnswer | CheapestAnswer | ParetoAnswer | SensitivityAnswer


def answer_of(experiment: Experiment, laboratory: Laboratory, spread: Spread = map) -> Answer:
    """Answer the search of *experiment*; without one, find the highest load that keeps its SLO.

    Raises
    ------
    UserError
        The experiment cannot be searched as written.
    InfeasibleError
        Nothing keeps the SLO.
    """
    if isinstance(experiment.search, Cheapest):
        return find_cheapest(experiment, laboratory, spread)
    if isinstance(experiment.search, Pareto):
        return find_fronts(experiment, laboratory, spread)
    if isinstance(experiment.search, Sensitivity):
        return find_sensitivity(experiment, laboratory)
    return find_capacity(experiment, laboratory)
