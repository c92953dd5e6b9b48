"""One adapter a file; a new one needs nothing else."""
