"""Which batches an engine replays as captured kernels: the experiment's own limit, else that of the engine."""

from __future__ import annotations

from sim.cost.host import Launches
from sim.cost.padding import GraphPadding
from sim.experiment import Experiment
from sim.profiles.engine import EngineVersion
from sim.profiles.engine_graphs import MOST_SEQUENCES
from sim.profiles.hardware import Hardware
from sim.profiles.model import Model
from sim.simulate.flags import Flags

__all__ = ["captured_sizes", "largest_graph", "launches_of", "own_graphs", "padding_of"]


def largest_graph(experiment: Experiment, hardware: Hardware, version: EngineVersion, flags: Flags) -> int | None:
    """Return the largest captured batch, as the engine counts it; None: no limit.

    Raises
    ------
    ConfigError
        A limit is asked of an engine that is not known to capture anything, or two that differ.
    """
    options = experiment.engine
    asked, sizes = options.max_captured_batch, options.captured_batches
    field = "engine.max_captured_batch" if sizes is None else "engine.captured_batches"
    if sizes is not None and asked not in (None, max(sizes)):
        raise experiment.error(field, f"the largest is {max(sizes)}, and max_captured_batch {asked}: write one of them")
    asked = asked if sizes is None else max(sizes)
    if version.graphs is None:
        if asked is not None:
            raise experiment.error(field, f"{options.kind} {version.since} captures no graphs")
        return None
    if asked is not None:
        return asked
    speculative = options.speculative
    each = 1 if speculative is None else 1 + speculative.num_speculative_tokens
    decode_tokens = getattr(flags.scheduler, "max_num_seqs", MOST_SEQUENCES) * each
    return version.graphs.largest_on(hardware, experiment.deployment.parallelism.tp, decode_tokens)


def own_graphs(experiment: Experiment) -> bool:
    """Tell whether other batches are captured than the engine captures by itself where nothing drafts."""
    options = experiment.engine
    asked = options.max_captured_batch is not None or options.captured_batches is not None
    return asked or options.speculative is not None


def captured_sizes(
    experiment: Experiment, hardware: Hardware, version: EngineVersion, flags: Flags
) -> tuple[int, ...] | None:
    """Return the batches that are captured, ascending; None: not known. Raises as `largest_graph`."""
    largest, listed = largest_graph(experiment, hardware, version, flags), experiment.engine.captured_batches
    if listed is not None or version.graphs is None:
        return None if listed is None else tuple(sorted(listed))
    return version.graphs.sizes_up_to(largest, drafts=experiment.engine.speculative is not None)


def launches_of(
    experiment: Experiment, model: Model, hardware: Hardware, version: EngineVersion, flags: Flags
) -> Launches | None:
    """Return the launches of decodes beyond the largest captured one; None: there is none.

    Sizes that count tokens hold fewer sequences with drafts, of which one more than was drafted is computed each.
    """
    largest, graphs = largest_graph(experiment, hardware, version, flags), version.graphs
    if largest is None or graphs is None:
        return None
    speculative = experiment.engine.speculative
    each = 1 if speculative is None or _of_sequences(version) else 1 + speculative.mean_draft_tokens
    return Launches(int(largest // each), graphs.launch_s * model.num_layers, eager=not largest)


def padding_of(
    experiment: Experiment, hardware: Hardware, version: EngineVersion, flags: Flags
) -> GraphPadding | None:
    """Return what fills batches up to the captured sizes; None: nothing.

    Raises
    ------
    ConfigError
        It is asked of an engine whose captured sizes are not known.
    """
    asked, graphs, options = experiment.engine.graph_padding, version.graphs, experiment.engine
    if graphs is None or graphs.sizes is None:
        if asked:
            raise experiment.error("engine.graph_padding", f"{options.kind} {version.since} fills no batch up")
        return None
    sizes = captured_sizes(experiment, hardware, version, flags)
    if not (graphs.padded if asked is None else asked) or not sizes:
        return None
    spread = experiment.deployment.parallelism.ep > 1
    return GraphPadding(
        sizes,
        _of_sequences(version),
        graphs.sizes.prompts,
        graphs.sizes.experts_with_ep if spread else graphs.sizes.experts,
        graphs.sizes.head,
    )


def _of_sequences(version: EngineVersion) -> bool:
    """Tell whether a captured size counts sequences, whatever they compute."""
    return version.graphs is not None and version.graphs.counts == "sequences" and not version.batch_expansion
