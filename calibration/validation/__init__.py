"""Predicted against measured: how far off, and how sure that is."""
