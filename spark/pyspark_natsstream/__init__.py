"""JetStream streams as Spark tables: `format("nats")` for `spark.read` and `spark.readStream`.

Spark imports every top-level module whose name begins with `pyspark_` and takes its
`DefaultSource`, so an installed package needs no `register()` call. If one of them fails to import,
Spark finds none of them.

Law: this package imports only pyspark and light modules, not nats and not pyarrow (a test blocks
them).

```python
df = spark.read.format("nats").options(servers=url, stream="ORDERS").load()
```
"""

from __future__ import annotations

from natsstream.errors import MissingExtraError

try:
    from pyspark_natsstream.registration import register
    from pyspark_natsstream.source import DefaultSource
except ModuleNotFoundError as _error:
    if (_error.name or "").partition(".")[0] != "pyspark":
        raise
    raise MissingExtraError(
        'format("nats") needs pyspark', hint="pip install 'natsstream[spark]'"
    ) from _error

__all__ = ["DefaultSource", "register"]
