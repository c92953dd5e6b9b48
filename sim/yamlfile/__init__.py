"""YAML at the edge: documents that know their lines, and validation that uses them."""

from sim.yamlfile.document import Document, parse_yaml, read_yaml
from sim.yamlfile.validation import validate

__all__ = ["Document", "parse_yaml", "read_yaml", "validate"]
