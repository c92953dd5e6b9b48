"""``sim moe place LOADS``."""

from __future__ import annotations

import argparse
from pathlib import Path

from sim.errors import UserError
from sim.moe.expert_map import Layout
from sim.moe.placement import Placement
from sim.moe.recordings import read_loads
from sim.policy import kinds_of
from sim.report.json import to_json
from sim.report.moe import as_json, as_table

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    place = actions.add_parser("place", help="put experts into the slots of ranks, for a measured load")
    place.add_argument("loads", metavar="LOADS", type=Path, help="loads, layers x experts: .json, .csv, .npy")
    place.add_argument("--policy", choices=_policies(), default="eplb", help="how (default: %(default)s)")
    place.add_argument("--ranks", type=int, required=True, help="ranks over which the experts are spread")
    place.add_argument("--slots", type=int, help="slots of all ranks, redundant ones included (default: the experts)")
    place.add_argument("--groups", type=int, default=1, help="groups of experts that the router limits a token to")
    place.add_argument("--nodes", type=int, default=1, help="nodes that the ranks are on")
    place.add_argument("--map", type=Path, metavar="FILE", help="the map of --policy fixed")
    place.add_argument("--seed", type=int, default=0, help="seed of --policy random")
    place.add_argument("--format", choices=("table", "json"), default="table", help="how the placement is printed")


def run(options: argparse.Namespace) -> int:
    """Place and print."""
    policy, loads = _policy(options), read_loads(options.loads)
    experts = loads.shape[1]
    slots = experts if options.slots is None else options.slots
    placed = policy.place(loads, Layout(experts, options.ranks, slots, options.groups, options.nodes))
    if options.format == "json":
        print(to_json(as_json(placed, loads)))
        return 0
    from rich.console import Console

    Console(highlight=False).print(as_table(placed, loads))
    return 0


def _policies() -> dict[str, type[Placement]]:
    return kinds_of("sim.moe.placement", Placement)


def _policy(options: argparse.Namespace) -> Placement:
    if options.policy == "fixed" and options.map is None:
        raise UserError("--policy fixed needs its file: --map FILE")
    if options.seed < 0:
        raise UserError(f"--seed must be at least 0, got {options.seed}")
    chosen = _policies()[options.policy]
    fields = {"path": options.map, "seed": options.seed}
    return chosen(**{name: value for name, value in fields.items() if name in chosen.model_fields})
