"""The archive of Spark's classes, made and used by processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TIMEOUT_S = 300
CLASSES_MIN = 5_000

START = """
import sys
from pyspark_natsstream.session import local_session
options = {"spark.driver.defaultJavaOptions": f"-Xlog:class+load:file={sys.argv[1]}"}
local_session(master="local[1]", config=options).range(5).count()
"""


def test_local_session_takes_spark_s_classes_from_the_archive(tmp_path: Path) -> None:
    # The run of all tests hands it to every Java.
    own = {name: text for name, text in os.environ.items() if name != "SPARK_SUBMIT_OPTS"}
    making = [sys.executable, "-m", "pyspark_natsstream.class_archive"]
    made = subprocess.run(
        making, capture_output=True, text=True, timeout=TIMEOUT_S, check=True, env=own
    )
    loaded = tmp_path / "loaded"

    starting = [sys.executable, "-c", START, str(loaded)]
    subprocess.run(starting, timeout=TIMEOUT_S, check=True, env=own)

    assert Path(made.stdout.strip()).stat().st_size > 50 << 20
    assert loaded.read_text().count("source: shared objects file (top)") > CLASSES_MIN
