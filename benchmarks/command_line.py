"""Processor time until a command has told of itself, beside that of a bare Python, taking turns in
one run.

    python benchmarks/command_line.py
    python benchmarks/command_line.py --commands view heads --rounds 20

Prints for each command the ratio of `headscope COMMAND --help` to `python -c pass`, by the least
and by the median processor time of all rounds (user and system, of the child alone), and the times
in seconds.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
from collections.abc import Sequence

ASKED = "import sys; from headscope.cli import main; main(sys.argv[1:])"
COMMANDS = [
    *(
        "view",
        "capture",
        "generate",
        "support",
        "check",
        "export",
        "figure",
        "serve",
        "heads",
        "mechanism",
    ),
    *(
        "faithfulness",
        "compare",
        "effect",
        "norms",
        "ablate",
        "probe",
        "relations",
        "align",
        "coref",
    ),
]


def processor_time(arguments: Sequence[str]) -> float:
    """Seconds of processor time that a child took, in user and in system mode."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measured(commands: Sequence[str], rounds: int) -> dict[str, list[float]]:
    """The times of each command, and under "" those of a bare Python, taking turns."""
    asked = {"": ["-c", "pass"]} | {name: ["-c", ASKED, name, "--help"] for name in commands}
    times: dict[str, list[float]] = {name: [] for name in asked}
    for _ in range(rounds):
        for name, arguments in asked.items():
            times[name].append(processor_time(arguments))
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--commands", nargs="+", choices=COMMANDS, default=["view"], help="which commands"
    )
    parser.add_argument("--rounds", type=int, default=10, help="runs of each, taking turns")
    given = parser.parse_args()
    timings = measured(given.commands, given.rounds)
    bare = timings.pop("")
    print("| command | least: ratio | seconds | median: ratio | seconds |")
    print("| --- | ---: | ---: | ---: | ---: |")
    print(f"| python -c pass | 1 | {min(bare):.3f} | 1 | {statistics.median(bare):.3f} |")
    for name, times in timings.items():
        least, middle = min(times), statistics.median(times)
        ratios = (
            f"{least / min(bare):.1f} | {least:.3f} | {middle / statistics.median(bare):.1f} | "
            f"{middle:.3f}"
        )
        print(f"| headscope {name} --help | {ratios} |")


if __name__ == "__main__":
    main()
