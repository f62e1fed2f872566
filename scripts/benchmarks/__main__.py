"""`scripts/bench`: compares subjects in interleaved rounds, each bench on a fresh server."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from natsstream.testing import NatsServer
from scripts.benchmarks.benches import BENCHES
from scripts.benchmarks.goals import Row


def main() -> int:
    """Run the chosen benches; print a table on stdout, progress on stderr."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("--only", choices=BENCHES, help="run one bench")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default 5)")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    args = parser.parse_args()
    lines: list[Row] = []
    for name in [args.only] if args.only else BENCHES:
        with NatsServer() as server:
            lines += BENCHES[name](server.url, args.rounds, _tell)
    print(f"{os.cpu_count()} cores shared with the server, {args.rounds} rounds")  # noqa: T201
    print(f"{'figure':<52} {'median':>7} {'min':>7} {'max':>7}  goal")  # noqa: T201
    for line in lines:
        numbers = f"{line.median:>7.2f} {line.low:>7.2f} {line.high:>7.2f}"
        reached = "" if line.reached else "  not reached"
        print(f"{line.figure:<52} {numbers}  {line.goal}{reached}")  # noqa: T201
    if args.json:
        args.json.write_text(json.dumps([asdict(line) for line in lines], indent=2) + "\n")
    return 0 if all(line.reached for line in lines) else 1


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
