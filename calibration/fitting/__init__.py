"""Fits of the constants of an engine to runs."""
