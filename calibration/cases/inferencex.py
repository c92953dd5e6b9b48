"""InferenceX (formerly InferenceMAX): the public recipes behind many rows, and others' runs of its scripts."""

from __future__ import annotations

from calibration.cases.serving import ServingCase

__all__ = ["is_inferencex"]


def is_inferencex(case: ServingCase) -> bool:
    """Tell whether *case* ran one of its recipes: the three engines' runs did, others say so."""
    said = f"{case.text('source')} {case.text('notes')}".casefold()
    return case.name.startswith("sil") or "inferencex" in said
