"""Fits the kernel constants of `profiles/calibrated/hardware` to published kernel benchmarks."""
