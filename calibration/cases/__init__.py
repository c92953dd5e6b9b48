"""Measurements as cases: what ran, and what was measured, by the columns of a file."""
