"""Spark's daemon of Python workers, with the imports of a task done before it forks a worker.

Set `spark.python.daemon.module=pyspark_natsstream.daemon`; `local_session` does. A worker then
starts with what the reader and the writer need, instead of importing it.

Law: a worker is forked off a process with one thread. Where an import has started another, or where
threads cannot be counted, Spark's own daemon takes the place of this one.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from pathlib import Path

_IMPORTS = (
    "pyspark.worker",
    "pyspark_natsstream.executor",
    "pyspark_natsstream.batch",
    "pyspark_natsstream.sink",
    "pyspark_natsstream.streaming",
    "natsstream._wire.nats_py",
    "natsstream.jetstream",
)
_THREADS = Path("/proc/self/task")


def main() -> None:
    """Import, and fork workers off until Spark ends this process."""
    if _THREADS.is_dir():
        _import()
        if len([*_THREADS.iterdir()]) == 1:
            importlib.import_module("pyspark.daemon").manager()
            return
    os.execv(sys.executable, [sys.executable, "-m", "pyspark.daemon", *sys.argv[1:]])  # noqa: S606


def _import() -> None:
    # Keep Arrow's allocator from starting a thread.
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
    for name in _IMPORTS:
        importlib.import_module(name)
    # Spark's workers collect garbage after each task. A look through all imports takes longer
    # than a small task, and copies the memory that workers share.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    main()
