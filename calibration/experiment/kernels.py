"""Whose kernels a run took, where these are not the ones that its engine takes by itself today."""

from __future__ import annotations

from typing import Any

from calibration.cases.inferencex import is_inferencex
from calibration.cases.names import gpu_of, version_of
from calibration.experiment.draft import Draft
from sim.profiles.calibrated_engine import holds

__all__ = ["cost_model"]

_HOPPER = ("H100", "H200", "H800", "H20", "GH200")
_TRITON_SINCE = "0.11.1"
"""Releases from here on bring Triton's kernels for MXFP4 along, and take them on Hopper (vLLM pull request 27523)."""
_ASKED_SINCE = "0.13"
"""InferenceX sets VLLM_MXFP4_USE_MARLIN on H100 and H200 from this release on (its pull request 327)."""


def cost_model(draft: Draft) -> dict[str, Any]:
    """Return `cost_model` of the experiment where vLLM multiplied MXFP4 experts with Marlin's kernels; else nothing."""
    case, own = draft.case, draft.model.checkpoint
    kind, version, _ = version_of(case, [])
    if kind != "vllm" or "mxfp4" not in (own.weights, own.experts) or not gpu_of(case).startswith(_HOPPER):
        return {}
    if not holds("0", _TRITON_SINCE, version) and not (is_inferencex(case) and holds(_ASKED_SINCE, None, version)):
        return {}
    draft.assumed.append("Marlin's kernels for MXFP4 experts")
    return {"cost_model": {"kind": "roofline", "kernels": "marlin"}}
