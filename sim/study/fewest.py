"""How many replicas of one deployment keep its SLO: the search for the cheapest, among these alone."""

from __future__ import annotations

from sim.experiment import Experiment, experiment_of
from sim.profiles.library import load_model

__all__ = ["search_for_fewest"]


def search_for_fewest(experiment: Experiment) -> Experiment:
    """Return *experiment* with the ``search:`` whose answer is the fewest replicas that keep its SLO.

    Accelerator, parallelism and precision are the experiment's own; raise a `UserError` for an unknown model.
    """
    deployment = experiment.deployment
    weights = deployment.quantization.weights
    if weights is None:
        weights = load_model(experiment.model, experiment.folder).dtype_of("mlp", deployment.quantization)
    degrees = {name: [degree] for name, degree in deployment.parallelism.model_dump().items()}
    search = {"kind": "cheapest", "gpus": [deployment.gpu], "precisions": [weights], **degrees}
    document = experiment.document.replace("search", search, experiment.document.file)
    return experiment_of(document)
