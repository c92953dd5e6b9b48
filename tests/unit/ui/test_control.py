"""Every field of an experiment becomes something that a form can ask."""

from sim.errors import ConfigError
from sim.experiment import Experiment
from sim.ui.control import Control, Section, Variants, at, form_of, proposed
from sim.yamlfile import Document, validate


def _all(nodes):
    for node in nodes:
        yield node
        if isinstance(node, Section):
            yield from _all(node.nodes())
        elif isinstance(node, Variants):
            for kind in node.models:
                yield from _all(node.nodes(kind))


NODES = {node.path: node for node in _all(form_of(Experiment))}


def test_a_control_has_the_bounds_choices_unit_and_help_of_its_field():
    assert NODES["deployment.parallelism.tp"] == Control(
        "deployment.parallelism.tp",
        "TP",
        "`tensor_parallel`: ranks that share every matrix.",
        "whole",
        low=1,
        high=4096,
        default=1,
    )
    assert NODES["workload.arrivals.rate"].label == "Rate [requests/s]"
    assert NODES["prices.gpu_hour_usd"].label == "GPU hour USD [$/h]"
    assert NODES["deployment.quantization.kv_cache"].choices == ("fp32", "bf16", "fp16", "fp8", "int8")
    assert NODES["engine.prefix_caching"].form == "flag"
    assert NODES["workload.arrivals.path"].form == "file"


def test_every_control_says_what_it_is():
    silent = [node.path for node in NODES.values() if isinstance(node, Control) and not node.help]
    assert silent == []


def test_policies_are_variants_and_sections_are_asked_field_by_field():
    assert isinstance(NODES["workload.arrivals"], Variants)
    assert {"poisson", "trace", "closed_loop"} <= NODES["workload.arrivals"].models.keys()
    assert isinstance(NODES["engine"], Section)
    assert NODES["engine.scheduler"].optional
    assert NODES["moe.rebalance"].optional
    assert [node.path for node in at(form_of(Experiment), ["deployment.gpu", "seed"])] == ["deployment.gpu", "seed"]


def test_what_is_proposed_for_a_policy_is_valid_unless_only_a_person_can_know_a_field():
    one_of_several = {"diurnal", "affine"}
    valid = 0
    for node in NODES.values():
        if isinstance(node, Variants) and node.path != "sweep":
            for kind, model in node.models.items():
                proposal = proposed(model, {})
                if None not in proposal.values() and kind not in one_of_several:
                    validate(model, Document(proposal, "proposal", ConfigError, {}))
                    valid += 1
    assert valid > 30


def test_a_proposal_keeps_what_the_policies_have_in_common():
    arrivals = NODES["workload.arrivals"].models
    assert proposed(arrivals["gamma"], {"kind": "poisson", "rate": 7.0}) == {"kind": "gamma", "rate": 7.0, "cv": 2.0}
