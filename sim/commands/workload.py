"""``sim workload list|show NAME|questions|answer FILE``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sim.errors import ConfigError
from sim.profiles.folders import names
from sim.profiles.library import load_workload, profile_text
from sim.report import workload as report
from sim.workload.questionnaire import Answers, workload_of
from sim.yamlfile import read_yaml, validate

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to *parser*."""
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    actions.add_parser("list", help="presets of lengths, with their typical tokens").set_defaults(action=_list)
    shower = actions.add_parser("show", help="one preset")
    shower.add_argument("name", metavar="NAME", help="such as chat")
    shower.set_defaults(action=_show)
    actions.add_parser("questions", help="print a questionnaire to fill in").set_defaults(action=_questions)
    answerer = actions.add_parser("answer", help="make an experiment of a filled-in questionnaire, on stdout")
    answerer.add_argument("answers", metavar="FILE.yaml", help="the questionnaire")
    answerer.set_defaults(action=_answer)


def run(options: argparse.Namespace) -> int:
    """Do what was asked for."""
    status: int = options.action(options)
    return status


def _list(_options: argparse.Namespace) -> int:
    for line in report.presets([load_workload(name) for name in names("workloads")]):
        print(line)
    return 0


def _show(options: argparse.Namespace) -> int:
    print(profile_text("workloads", options.name).rstrip())
    return 0


def _questions(_options: argparse.Namespace) -> int:
    print(report.questions(Answers), end="")
    return 0


def _answer(options: argparse.Namespace) -> int:
    document = read_yaml(options.answers)
    answers = validate(Answers, document)
    try:
        experiment, derivation = workload_of(answers, Path(options.answers).resolve().parent)
    except ConfigError as problem:
        if problem.path is None or problem.file is not None:
            raise
        raise document.error((problem.path,), problem.message) from None
    print(report.experiment_yaml(experiment, derivation), end="")
    if answers.data_residency:
        print("note: self-hosting is given; `sim cost` shows API prices, but they decide nothing", file=sys.stderr)
    return 0
