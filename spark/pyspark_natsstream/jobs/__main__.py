"""`python -m pyspark_natsstream.jobs`: lists the jobs, or runs the one that it is given."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from natsstream import __version__
from pyspark_natsstream.jobs.backfill import main as backfill
from pyspark_natsstream.jobs.command import EXIT_USAGE, say
from pyspark_natsstream.jobs.ingest import main as ingest
from pyspark_natsstream.jobs.kv_table import main as kv_table
from pyspark_natsstream.jobs.replay import main as replay
from pyspark_natsstream.jobs.verify import main as verify
from pyspark_natsstream.options import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

# Of what a job is, before how it works.
_END = re.compile(r"[.:](?: |$)")
JOBS = (ingest, verify, kv_table, backfill, replay)


def listing() -> str:
    """Return the jobs, one a line, and how to run them."""
    lines = [f"  {job.name:<10}{_END.split(job.description)[0]}." for job in JOBS]
    how = "Run a job with python -m pyspark_natsstream.jobs.NAME, see its --help."
    return "\n".join([how, "", *lines])


def main(arguments: Sequence[str]) -> int:
    """Run the job that is named first, with the other arguments; without a job, list them.

    Returns:
        The exit code of the job; 2 for one that does not exist.
    """
    given = arguments[0] if arguments else "--help"
    if given in ("-h", "--help", "--version"):
        shown = f"natsstream {__version__}" if given == "--version" else listing()
        sys.stdout.write(shown + "\n")
        return 0
    jobs = {job.name: job for job in JOBS}
    # The options have dashes, so a job is often written with one.
    name = given.replace("-", "_")
    if name in jobs:
        return jobs[name](arguments[1:])
    near = nearest(name, jobs)
    hint = f"did you mean {near}?" if near else f"choose from {', '.join(jobs)}"
    say(f"error: there is no job {given}; {hint}")
    return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
