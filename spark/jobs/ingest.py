"""`spark-submit spark/jobs/ingest.py --servers ... --stream ... --out ... --checkpoint ...`"""

from __future__ import annotations

import sys

from pyspark_natsstream.jobs.ingest import main

if __name__ == "__main__":
    sys.exit(main())
