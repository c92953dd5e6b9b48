"""Reports: a run as tables, text, JSON, files and a trace."""
