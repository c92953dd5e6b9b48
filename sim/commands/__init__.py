"""The commands of ``python -m sim``: one file each, with `add_arguments(parser)` and `run(options) -> exit status`.

A file is imported only when its command is called, so help is instant.
"""

COMMANDS = {
    "run": "simulate one experiment",
    "sweep": "simulate every point of an experiment's sweep",
    "compare": "experiments or results side by side, with the differences explained",
    "cost": "what a deployment costs a month, by the token, and against APIs",
    "search": "the highest load within an SLO, or the cheapest deployment for a load",
    "plan": "the five steps of a capacity plan, with the figures of each",
    "report": "the page that goes to the buyer: one HTML file, or Markdown",
    "spares": "how many replicas more than are needed keep enough of them ready",
    "size": "does a model fit, and how many tokens of KV cache",
    "profiles": "list, show, add and check hardware, models, engines and workloads",
    "moe": "place the experts of a mixture on ranks",
    "workload": "presets, and a questionnaire that becomes an experiment",
    "trace": "inspect and convert traces",
    "schema": "print the JSON schema of an experiment",
}
"""Every command by name, with its line of help."""
