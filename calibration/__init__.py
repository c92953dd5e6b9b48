"""Compares the simulator with measurements, and fits its constants to them."""
