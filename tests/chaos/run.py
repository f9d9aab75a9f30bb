"""`make chaos`: rounds of faults, one line each, and a tally; exit code 1 where a promise was broken."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

from heliograph.wire.batches.forward import warm_up
from tests.chaos.rounds import Arena, Outcome, arena


def main() -> int:
    """Play the rounds."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=random.randrange(100_000), help="of the first round")
    parser.add_argument("--seconds", type=float, default=45, help="how long faults come in a round")
    parser.add_argument("--mode", choices=["both", "exactly-once", "at-least-once"], default="both")
    options = parser.parse_args()
    warm_up()  # compiling the kernels would take the processors from the first round
    folder = Path(tempfile.mkdtemp(prefix="heliograph-chaos-"))
    outcomes: list[Outcome] = []
    with arena(folder) as made:
        for number in range(options.rounds):
            exactly_once = options.mode == "exactly-once" or (options.mode == "both" and number % 2 == 0)
            outcomes.append(_play(made, options.seed + number, exactly_once, options.seconds))
    bad = [outcome for outcome in outcomes if not outcome.is_good]
    print(
        f"{len(outcomes)} rounds, {sum(o.faults.total() for o in outcomes)} faults, {sum(o.records for o in outcomes)}"
        f" records: lost {sum(o.lost for o in outcomes)}, out of order {sum(o.out_of_order for o in outcomes)},"
        f" duplicates {sum(o.duplicates for o in outcomes if o.exactly_once)} with exactly-once"
        f" and {sum(o.duplicates for o in outcomes if not o.exactly_once)} without"
    )
    if bad:
        print(f"BAD seeds: {', '.join(str(outcome.seed) for outcome in bad)}; logs are in {folder}")
    return 1 if bad else 0


def _play(made: Arena, seed: int, exactly_once: bool, seconds: float) -> Outcome:
    outcome = made.play(seed, exactly_once=exactly_once, seconds=seconds)
    print(outcome, flush=True)
    print("    " + ", ".join(f"{what} x{times}" for what, times in sorted(outcome.faults.items())), flush=True)
    for words in (*outcome.problems, *outcome.notes):
        print(f"    {words}", flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
