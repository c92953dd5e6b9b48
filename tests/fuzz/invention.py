"""Documents that a JSON schema allows, with values that it does not say enough about."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from fuzz.mutation import HOSTILE

__all__ = ["Inventor"]

_NUMBERS = (0, 1, 2, 3, 4, 8, 16, 0.5, 0.1, 100, 1000, 1e-9, 1e9, 1e15, 1e30, -1, 2**31, 10**18)
_TEXTS = ("x", "", "H100-SXM-80GB", "Qwen/Qwen3-8B", "vllm", "fp8", "auto", "chat", "1 s", "10 GB", "5%", "a.csv")


class Inventor:
    """Draws documents of one schema.

    Parameters
    ----------
    schema
        As pydantic writes it; ``$defs`` hold the sections.
    names
        Texts that some field may mean: names of profiles and files.
    """

    def __init__(self, schema: dict[str, Any], names: tuple[str, ...] = ()) -> None:
        self._schema, self._sections = schema, schema.get("$defs", {})
        self._texts = _TEXTS + names

    def document(self, random: Random) -> bytes:
        """Return a document as JSON, which is YAML as well."""
        # Most fields are left out, so that the rest is not always contradicted by one of them.
        return json.dumps(self._value(random, self._schema, 0), ensure_ascii=False).encode("utf-8", "surrogatepass")

    def _value(self, random: Random, schema: Any, depth: int) -> Any:
        if random.random() < 0.004 or not isinstance(schema, dict):
            return random.choice(HOSTILE[:-1])
        if "default" in schema and depth > 1 and random.random() < 0.2:
            return schema["default"]
        if "$ref" in schema:
            return self._value(random, self._sections[schema["$ref"].rpartition("/")[2]], depth)
        for choice in ("oneOf", "anyOf", "allOf"):
            if choice in schema:
                return self._value(random, random.choice(schema[choice]), depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return random.choice(schema["enum"])
        return self._of_type(random, schema, depth)

    def _of_type(self, random: Random, schema: dict[str, Any], depth: int) -> Any:
        match schema.get("type"):
            case "object":
                return self._object(random, schema, depth)
            case "array":
                return self._array(random, schema, depth)
            case "integer" | "number" as kind:
                return self._number(random, schema, whole=kind == "integer")
            case "boolean":
                return random.random() < 0.5
            case "null":
                return None
        return random.choice(self._texts)

    def _object(self, random: Random, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        required, kept = schema.get("required", ()), random.choice((0.1, 0.3, 0.6)) / (1 + depth / 4)
        fields = schema.get("properties", {})
        chosen = {
            name: self._value(random, inner, depth + 1)
            for name, inner in fields.items()
            if name in required or "const" in inner or random.random() < kept
        }
        inner = schema.get("additionalProperties")
        if isinstance(inner, dict):
            names = random.sample(self._texts, random.choice((0, 1, 2)))
            chosen |= {name: self._value(random, inner, depth + 1) for name in names}
        return chosen

    def _array(self, random: Random, schema: dict[str, Any], depth: int) -> list[Any]:
        if "prefixItems" in schema:
            return [self._value(random, item, depth + 1) for item in schema["prefixItems"]]
        least = schema.get("minItems", 0)
        count = random.choice((least, least, least + 1, least + 2))
        return [self._value(random, schema.get("items", {}), depth + 1) for _ in range(count)]

    def _number(self, random: Random, schema: dict[str, Any], *, whole: bool) -> float:
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        among = [number for number in _NUMBERS if number >= low and (high is None or number <= high)]
        value = random.choice((*among, low, high if high is not None else 1))
        return int(value) if whole else value
