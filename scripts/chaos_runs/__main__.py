"""`scripts/chaos`: runs seeds one after the other, and prints what each did and found."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import re
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from scripts.chaos_runs.cores.run import run as run_cores
from scripts.chaos_runs.plan import Plan
from scripts.chaos_runs.producers.run import run as run_producers
from scripts.chaos_runs.result import Result
from scripts.chaos_runs.run import run
from scripts.chaos_runs.schedule import make_round
from scripts.chaos_runs.spark.run import run as run_spark
from scripts.chaos_runs.spark.schedule import describe_round
from scripts.chaos_runs.views.run import run as run_views

_CREWS = {
    "streams": run,
    "views": run_views,
    "producers": run_producers,
    "cores": run_cores,
    "spark": run_spark,
}
_STEPS_SHOWN = 20
_SEEDS_MAX = 10_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 1 when a promise was broken."""
    asked = _parser().parse_args(arguments)
    seeds = cast("Sequence[int]", asked.seeds or [asked.seed])
    plans = [
        Plan(
            seed=seed,
            replicas=asked.replicas,
            rounds=asked.rounds or 1_000,
            seconds=asked.minutes * 60,
            waits_for_orphans=not asked.no_orphans,
            traces_memory=asked.trace_memory,
            version=asked.server_version,
        )
        for seed in seeds
    ]
    if asked.steps:
        for plan in plans:
            _print_steps(plan, asked.rounds or _STEPS_SHOWN, asked.crew)
        return 0
    # asyncio unwinds what is open on SIGINT alone, and a shell's background job ignores that one.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _interrupt)
    # Workers log what a fault does to them, thousands of lines; the result counts it.
    logging.getLogger("natsstream").setLevel(logging.CRITICAL)
    results: list[Result] = []
    try:
        for plan in plans:
            results.append(_run(plan, asked.crew))
            # After each: a long run that is ended early has told what it found.
            if asked.json:
                _write(cast("Path", asked.json), results)
    except KeyboardInterrupt:
        _tell("stopped; the servers were ended")
        return 130
    return 0 if all(each.is_good for each in results) else 1


def _run(plan: Plan, crew: str) -> Result:
    _tell(f"seed {plan.seed}, {plan.replicas} replicas, {crew}")
    result = asyncio.run(_CREWS[crew](plan, _tell))
    print(result, flush=True)  # noqa: T201 - What the command is for.
    if not result.is_good:
        command = f"scripts/chaos --crew {crew} --seed {plan.seed} --replicas {plan.replicas}"
        if plan.version:
            command += f" --server-version {plan.version}"
        _tell(f"again: {command} --rounds {result.rounds}")
    return result


def _interrupt(*_: object) -> None:
    signal.raise_signal(signal.SIGINT)


def _write(path: Path, results: Sequence[Result]) -> None:
    path.write_text(json.dumps([each.to_json() for each in results], indent=2) + "\n")


def _print_steps(plan: Plan, rounds: int, crew: str) -> None:
    print(f"seed {plan.seed}, {plan.replicas} replicas")  # noqa: T201 - As above.
    for number in range(1, rounds + 1):
        describe = describe_round if crew == "spark" else make_round
        print(describe(plan.seed, number, plan.replicas))  # noqa: T201 - As above.


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="what the faults are drawn from")
    parser.add_argument("--seeds", type=_seeds, help="several, such as 1..20; one after the other")
    parser.add_argument("--minutes", type=float, default=5.0, help="of each seed (default 5)")
    parser.add_argument("--rounds", type=int, help="end after so many rounds of faults")
    parser.add_argument("--replicas", type=int, default=3, choices=(1, 3, 5), help="default 3")
    parser.add_argument(
        "--crew", choices=_CREWS, default="streams", help="who works: on streams, or on views"
    )
    parser.add_argument(
        "--server-version", default="", help="a release or line of nats-server, such as 2.12"
    )
    parser.add_argument("--steps", action="store_true", help="only print the faults of the seed")
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    parser.add_argument(
        "--trace-memory", action="store_true", help="tell where memory was made; slow"
    )
    parser.add_argument(
        "--no-orphans",
        action="store_true",
        help="do not wait a minute for consumers whose deletion was lost",
    )
    return parser


def _seeds(text: str) -> list[int]:
    found = re.fullmatch(r"(\d+)\.\.(\d+)", text)
    if found is None:
        raise argparse.ArgumentTypeError("write 1..20")
    first, last = int(found[1]), int(found[2])
    if not first <= last < first + _SEEDS_MAX:
        raise argparse.ArgumentTypeError("the first seed comes first, and not too many")
    return list(range(first, last + 1))


def _tell(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)  # noqa: T201 - As above.


if __name__ == "__main__":
    sys.exit(main())
