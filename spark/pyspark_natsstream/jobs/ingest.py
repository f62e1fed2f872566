"""`python -m pyspark_natsstream.jobs.ingest --servers ... --stream ... --out ...`."""

from __future__ import annotations

import sys

from pyspark_natsstream.ingest import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
