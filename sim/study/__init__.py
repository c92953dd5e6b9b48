"""Many runs of one experiment: the points of its sweep, on as many processes as there are, and what they came to."""
