"""The commands of ``python -m calibration``: one file each, with `add_arguments(parser)` and `run(options)`."""

COMMANDS = {
    "import": "read the output of benchmark tools, and flag what does not add up",
    "fit": "fit the constants of an engine to serving runs, or of an accelerator to kernel times",
    "microbench": "time the kernels of this machine's accelerators, for `fit` (needs PyTorch)",
    "validate": "predict what was measured, and say how far off that is",
}
"""Every command by name, with its line of help."""
