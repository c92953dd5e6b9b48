"""Metrics, computed from the rows of a run and from nothing else."""
