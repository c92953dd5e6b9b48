"""Compares the simulator with measurements, and fits its constants to them.

In the order in which a file passes through:

* `reading`, `importers`: a benchmark tool's output becomes `runs`; `suspicion` says what in them does not add up.
* `cases`: measurements by the columns of a file, imported or our own; `experiment`: the experiment that repeats one.
* `validation`: predicted against measured; `fitting`: the constants of an engine from runs.
* `kernels`, `microbench`: the constants of an accelerator from kernel times, published or one's own.
* `commands`, `report`, `table`, `web`: what people call and see; `measurements`: figures that come along.

What comes along is made by modules that are run by themselves: `kernels`, `all_to_all`, `fit_shipped` and
`uncertainty_shipped`; `carry_over` and `recovery` judge it.
"""
