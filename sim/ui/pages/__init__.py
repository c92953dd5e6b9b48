"""One file a page, each with `draw`."""
