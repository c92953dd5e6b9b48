"""JSON for programs: one object, keys in a fixed order, no `NaN`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["to_json"]


def to_json(values: Mapping[str, Any]) -> str:
    """Return *values* as one JSON object in their order; what is not a finite number becomes ``null``.

    Floats keep all their digits, so equal results are equal texts.
    """
    return json.dumps(_finite(values), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
