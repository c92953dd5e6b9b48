"""How large a YAML file may be: experiments and profiles are a few kB, and a hostile one must fail fast."""

MAX_BYTES = 2**20
MAX_VALUES = 100_000
"""Most values after aliases are expanded: stops the "billion laughs"."""
MAX_DEPTH = 50
MOST_BITS = 1023
"""Of a whole number that is also a float."""
