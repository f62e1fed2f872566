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

from pyspark_natsstream.source import DefaultSource, register

__all__ = ["DefaultSource", "register"]
