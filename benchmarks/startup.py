"""CPU seconds before anything is simulated, and of the README's experiment; see README.md."""

from __future__ import annotations

from measure import cost_of, heading

RUN = ["-m", "sim", "run", "experiments/70b_h100.yaml", "--quiet"]
COMMANDS = {
    "import sim": ["-c", "import sim"],
    "--help": ["-m", "sim", "--help"],
    "run --help": ["-m", "sim", "run", "--help"],
    "run, one request": [*RUN, "--set", "workload.num_requests=1"],
    "run experiments/70b_h100.yaml": RUN,
}


def main() -> None:
    """Print the table."""
    heading("Start-up")
    bare_s = cost_of(["-c", "pass"], 10).cpu_s
    print(f"{'command':<32} {'CPU s':>7}\n{'(the interpreter alone)':<32} {bare_s:>7.3f}")
    for name, arguments in COMMANDS.items():
        print(f"{name:<32} {cost_of(arguments, 10).cpu_s:>7.3f}")


if __name__ == "__main__":
    main()
