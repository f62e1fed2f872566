"""`spark-submit spark/jobs/kv_table.py --servers ... --bucket ... --out ... --checkpoint ...`"""

from __future__ import annotations

import sys

from pyspark_natsstream.jobs.kv_table import main

if __name__ == "__main__":
    sys.exit(main())
