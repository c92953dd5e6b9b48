"""The parts of the experiment that repeats the run of a case."""
