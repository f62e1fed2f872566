"""`spark-submit spark/jobs/replay.py --servers ... --stream ... --table ...`"""

from __future__ import annotations

import sys

from pyspark_natsstream.jobs.replay import main

if __name__ == "__main__":
    sys.exit(main())
