"""Multi-token prediction: a layer that the model was trained with drafts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from sim.errors import ConfigError
from sim.profiles.draft import Draft
from sim.profiles.model import Model
from sim.profiles.quantization import Quantization
from sim.speculation.base import Speculation

__all__ = ["Mtp"]


class Mtp(Speculation):
    """One more layer of the last layer's kind, with the model's own head; it runs once a position.

    Source: DeepSeek-V3 report (arXiv:2412.19437, section 2.2); vLLM `model_executor/models/deepseek_mtp.py`, where the
    one layer of the checkpoint drafts every position.
    """

    kind: Literal["mtp"] = "mtp"

    def draft(self, target: Model, quantization: Quantization, load: Callable[[str], Model]) -> Draft | None:
        """Return the last layer of *target* once more, with the head."""
        if not target.mtp_params:
            others = "eagle, draft_model and ngram need none"
            raise ConfigError(f"{target.name} has no layer that predicts more tokens; {others}")
        last = target.stack[-1]
        fields = {name: getattr(target, name) for name in Model.model_fields}
        layers = (last.model_copy(update={"count": 1}),)
        model = Model(**fields | {"layers": layers, "order": "", "checkpoint_bytes": None})
        joined = 2 * target.hidden_size
        ends = model.params_of("embeddings") + model.params_of("head")
        return Draft(model, quantization, joined, model.params - ends + joined * target.hidden_size)
