"""A smaller model of the same vocabulary drafts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from sim.profiles.draft import Draft
from sim.profiles.model import Model
from sim.profiles.quantization import Quantization
from sim.speculation.base import Speculation

__all__ = ["DraftModel"]


class DraftModel(Speculation):
    """*model* computes prompts too, and then one token after the other, on the same accelerators.

    It is served in the types of its own checkpoint. Source: vLLM `v1/spec_decode/draft_model.py`; llama.cpp
    `--model-draft`.
    """

    kind: Literal["draft_model"] = "draft_model"
    model: str = Field(description="Model profile, or path to a Hugging Face config.json or its folder.")

    def draft(self, target: Model, quantization: Quantization, load: Callable[[str], Model]) -> Draft | None:
        """Return the whole of the smaller model."""
        model = load(self.model)
        return Draft(model, Quantization(kv_cache=quantization.kv_cache), 0, model.params)
