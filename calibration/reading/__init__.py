"""Benchmark files as records, tables and text: what all importers share, and where hostile input ends."""

from calibration.reading.content import Content, Table, read_content
from calibration.reading.format import Format, record_format, table_format, text_format
from calibration.reading.record import Record

__all__ = ["Content", "Format", "Record", "Table", "read_content", "record_format", "table_format", "text_format"]
