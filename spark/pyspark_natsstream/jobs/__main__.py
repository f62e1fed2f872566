"""`python -m pyspark_natsstream.jobs`: lists the jobs."""

from __future__ import annotations

import re
import sys

from pyspark_natsstream.jobs.backfill import main as backfill
from pyspark_natsstream.jobs.ingest import main as ingest
from pyspark_natsstream.jobs.kv_table import main as kv_table
from pyspark_natsstream.jobs.replay import main as replay
from pyspark_natsstream.jobs.verify import main as verify

# Of what a job is, before how it works.
_END = re.compile(r"[.:](?: |$)")
JOBS = (ingest, verify, kv_table, backfill, replay)


def listing() -> str:
    """Return the jobs, one a line, and how to run them."""
    lines = [f"  {job.name:<10}{_END.split(job.description)[0]}." for job in JOBS]
    how = "Run a job with python -m pyspark_natsstream.jobs.NAME, see its --help."
    return "\n".join([how, "", *lines])


if __name__ == "__main__":
    sys.stdout.write(listing() + "\n")
