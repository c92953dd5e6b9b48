"""What ``sim workload`` prints: presets, a questionnaire, and the experiment that answers give."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from ruamel.yaml import YAML

from sim.profiles.workload import WorkloadPreset

__all__ = ["experiment_yaml", "presets", "questions"]

_EXAMPLES = {"users": 500, "prompt_words": 60, "answer_words": 200}


def presets(found: Sequence[WorkloadPreset]) -> Iterator[str]:
    """Yield a line a preset: name, typical and long tokens of prompts and answers, and what it is."""
    for preset in found:
        prompts, answers = (_typical(table) for table in (preset.input_tokens, preset.output_tokens))
        yield f"{preset.name:18} prompts {prompts:>16}  answers {answers:>14}  {preset.description}"


def _typical(table: Mapping[float, float]) -> str:
    return f"{table[0.5]:,.0f} (p90 {table[0.9]:,.0f})"


def questions(answers: type[BaseModel]) -> str:
    """Return a questionnaire to fill in: what must be answered with an example, the rest with its default."""
    lines = ["# Fill in and run: python -m sim workload answer FILE.yaml > EXP.yaml"]
    for name, field in answers.model_fields.items():
        value = _EXAMPLES.get(name, field.default)
        mark = "" if field.is_required() else "# "
        shown = str(value).lower() if isinstance(value, bool) else "" if value is None else value
        lines.append(f"{mark}{name}: {shown}".rstrip() + f"  # {field.description}")
    return "\n".join(lines) + "\n"


def experiment_yaml(experiment: Mapping[str, Any], derivation: Sequence[str]) -> str:
    """Return *experiment* as YAML, under how its numbers came about."""
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.width = 10_000
    text = io.StringIO()
    yaml.dump(dict(experiment), text)
    return "".join(f"# {line}\n" for line in derivation) + text.getvalue()
