"""A folder on any file system that Spark can write to."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

from natsstream.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession


class Folder:
    """A folder, through the Hadoop client of the JVM."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        # Spark has no public API for file systems. The JVM's objects have no types.
        context: Any = spark.sparkContext
        self._jvm: Any = context._jvm  # noqa: SLF001
        hadoop: Any = context._jsc.hadoopConfiguration()  # noqa: SLF001
        self._folder: Any = self._jvm.org.apache.hadoop.fs.Path(folder)
        self._files: Any = self._folder.getFileSystem(hadoop)

    @property
    def url(self) -> str:
        """The folder as an absolute URL, the same for each way to write it."""
        return str(self._files.makeQualified(self._folder).toString())

    def read(self, name: str) -> str | None:
        """Return the text of a file, or None."""
        path = self._path(name)
        if not self._files.exists(path):
            return None
        stream = self._files.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, text: str) -> None:
        """Write a file as a whole: a reader finds the old file, the new one, or none."""
        path, draft = self._path(name), self._path(f"{name}.tmp")
        stream = self._files.create(draft, True)  # noqa: FBT003 - Java has no names: overwrite.
        try:
            stream.write(bytearray(text, "utf-8"))
        finally:
            stream.close()
        self._files.delete(path, False)  # noqa: FBT003 - Not recursive.
        if not self._files.rename(draft, path):
            raise OSError(f"{draft.toString()} cannot be renamed to {path.toString()}")

    def has_entries(self, name: str) -> bool:
        """Return True if a folder exists and is not empty."""
        return bool(self.names(name))

    def names(self, inner: str = "") -> list[str]:
        """Return the names in the folder, or in one inside of it; none if it does not exist."""
        path = self._path(inner) if inner else self._folder
        if not self._files.exists(path):
            return []
        return [each.getPath().getName() for each in self._files.listStatus(path)]

    def delete(self, name: str) -> None:
        """Delete a file or a folder with all that it holds, if it exists."""
        self._files.delete(self._path(name), True)  # noqa: FBT003 - Recursive.

    def _path(self, name: str) -> Any:  # A Java object.
        return self._jvm.org.apache.hadoop.fs.Path(self._folder, name)


def check_apart(spark: SparkSession, folders: Mapping[str, str]) -> None:
    """Refuse folders of a job that are the same, or of which one is inside of another.

    One that begins with `_` or `.` may be inside, such as `trips/_checkpoint`.

    Args:
        spark: A session with a driver in this process.
        folders: The folders, by the names of the job's arguments.

    Raises:
        ConfigError: Two are not apart; nothing was written.
    """
    urls = {name: Folder(spark, folder).url.rstrip("/") for name, folder in folders.items()}
    for (inner, its), (outer, url) in permutations(urls.items(), 2):
        # Readers of a table leave out names that begin so.
        is_hidden = its.removeprefix(f"{url}/").startswith(("_", "."))
        if f"{its}/".startswith(f"{url}/") and not is_hidden:
            how = "the same folder as" if its == url else "inside of"
            raise ConfigError(
                f"{inner} {folders[inner]} is {how} {outer} {folders[outer]}",
                hint=f"give {inner} and {outer} folders of their own, side by side",
            )
