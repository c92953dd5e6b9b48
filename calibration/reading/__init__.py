"""Benchmark files as records, tables and text: what all importers share, and where hostile input ends."""

from calibration.reading.content import Content, Table, read_content
from calibration.reading.format import Format, record_format, table_format, text_format
from calibration.reading.record import Record, plain_number
from calibration.reading.rows import header_of, rows_of

__all__ = [
    "Content",
    "Format",
    "Record",
    "Table",
    "header_of",
    "plain_number",
    "read_content",
    "record_format",
    "rows_of",
    "table_format",
    "text_format",
]
