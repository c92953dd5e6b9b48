"""YAML at the edge: documents that know their lines, validation that uses them, and plain data written down."""

from sim.yamlfile.document import Document, parse_yaml, read_yaml
from sim.yamlfile.validation import validate
from sim.yamlfile.writing import to_yaml

__all__ = ["Document", "parse_yaml", "read_yaml", "to_yaml", "validate"]
