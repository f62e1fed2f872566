"""A quiet local Spark session that finds this package.

Law: Java is checked before Spark starts. Without Java, Spark prints forty lines that do not say
what to install.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.sql import SparkSession

from natsstream.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Mapping

JAVA_MAJOR_MIN = 17
"""Spark 4 needs this Java or a newer one."""

JAVA_TIMEOUT_S = 30.0
"""`java -version` takes 0.1 s; a machine that starts for the first time may need longer."""

_INSTALL_JAVA = "apt-get install openjdk-17-jre-headless, or: brew install openjdk@17"
_LOGGING = Path(__file__).with_name("log4j2.properties")
_WORKER_PYTHON = Path(__file__).with_name("worker_python")


def local_session(
    *,
    master: str = "local[*]",
    app_name: str = "natsstream",
    config: Mapping[str, str] | None = None,
    has_own_group: bool = False,
) -> SparkSession:
    """Return a session that runs in this process and its children.

    It has no web UI and logs only errors. Its workers run this interpreter, with this package and
    natsstream on their path. An existing session of the process is returned as it is.

    Args:
        master: Spark's master, such as `local[2]`; `local[2,4]` tries a failed task four times.
        app_name: Name of the application.
        config: Further Spark settings; they override the defaults of this function.
        has_own_group: Start Spark's Java in a process group of its own. A signal to the group of
            this process, as of Ctrl-C and `timeout`, then leaves it to this process to stop Spark.

    Raises:
        MissingExtraError: There is no Java, or it is too old.
    """
    java_major = check_java()
    _share_interpreter(master)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.session.timeZone": "UTC",
        # Python workers start with what a task imports, and do not look through it for garbage.
        "spark.python.daemon.module": f"{__package__}.daemon",
        # On one machine Spark's default of 200 shuffle partitions is no faster.
        "spark.sql.shuffle.partitions": "4",
        # Without these, Spark looks up an outgoing address, which fails without a network.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    java_options: list[str] = []
    if _LOGGING.is_file():  # A zip has no such file.
        java_options.append(f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}")
    archive = class_archive(java_major)
    if archive.is_file():
        # Java leaves an archive of another version alone, and would print why.
        java_options += [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off"]
    if java_options:
        settings["spark.driver.extraJavaOptions"] = " ".join(java_options)
    settings |= config or {}
    if has_own_group and os.name == "posix":
        _start_java_in_own_group(settings)
    builder = SparkSession.builder.master(master).appName(app_name)
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def class_archive(java_major: int) -> Path:
    """Return where `python -m pyspark_natsstream.class_archive` keeps Spark's classes for Java.

    It is a folder of the environment, as the archive serves only the jars of this PySpark.
    """
    name = f"spark-{pyspark.__version__}-java-{java_major}.jsa"
    return Path(sys.prefix, "share", "natsstream", name)


def check_java() -> int:
    """Return the major version of the Java that Spark would start.

    Raises:
        MissingExtraError: There is no Java, it does not run, or it is older than 17.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    program = shutil.which(java)
    if program is None:
        where = f"JAVA_HOME={home} has no bin/java" if home else "no java on the PATH"
        raise MissingExtraError(f"Spark needs Java: {where}", hint=_INSTALL_JAVA)
    try:
        said = subprocess.run(  # noqa: S603 - No shell; the program that Spark would start.
            [program, "-version"],
            capture_output=True,
            text=True,
            timeout=JAVA_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        # macOS has a placeholder java that only reports that none is installed.
        raise MissingExtraError(
            f"Spark needs Java: {program} does not run", detail=str(error), hint=_INSTALL_JAVA
        ) from error
    major = java_major(said.stderr + said.stdout)
    if major < JAVA_MAJOR_MIN:
        raise MissingExtraError(
            f"Spark needs Java {JAVA_MAJOR_MIN} or newer: {program} is Java {major}",
            hint=f"{_INSTALL_JAVA}; then set JAVA_HOME to it",
        )
    return major


def java_major(version_text: str) -> int:
    """Return the major version from `java -version`: 8 for "1.8.0_292", 0 for none."""
    found = re.search(r'version "(?:1\.)?(\d+)', version_text)
    return int(found[1]) if found else 0


def _start_java_in_own_group(settings: Mapping[str, str]) -> None:
    """Start the JVM of this process, if it has none; it ends when its standard input does."""
    # PySpark has no public way, and no types for this one.
    context: Any = SparkContext
    java: Any = java_gateway
    if context._gateway is None:  # noqa: SLF001
        conf = SparkConf(loadDefaults=False).setAll([*settings.items()])
        gateway = java.launch_gateway(conf, popen_kwargs={"process_group": 0})
        context._ensure_initialized(gateway=gateway)  # noqa: SLF001


def _share_interpreter(master: str) -> None:
    """Let Spark's Python workers run this interpreter and see this package.

    Workers take both from the JVM's environment, which is this process's at its start.
    """
    python = _worker_python(master)
    os.environ["PYSPARK_NATSSTREAM_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = python
    import natsstream  # noqa: PLC0415 - Only for its path.

    packages = (Path(__file__).parent, Path(natsstream.__file__).parent)
    roots = dict.fromkeys(str(package.parent) for package in packages)
    known = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    # Workers have their site folder already; in front it would hide the standard library.
    missing = [root for root in roots if root not in known and "site-packages" not in root]
    os.environ["PYTHONPATH"] = os.pathsep.join([*known, *missing])


def _worker_python(master: str) -> str:
    """Return the Python for Spark's workers, one that starts fast where that is possible."""
    # Executors of a cluster lack the variable that names the interpreter. With a Spark of its own,
    # which may be another version, its archives are the right PySpark.
    is_here = master.partition("[")[0] == "local" and "SPARK_HOME" not in os.environ
    if is_here and os.name == "posix" and os.access(_WORKER_PYTHON, os.X_OK):
        return str(_WORKER_PYTHON)
    return sys.executable
