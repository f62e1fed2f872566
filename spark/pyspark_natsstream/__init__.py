"""JetStream streams as Spark tables: `format("nats")` for `spark.read` and `spark.readStream`.

Spark imports every top-level module whose name begins with `pyspark_` and takes its
`DefaultSource`, so an installed package needs no `register()` call. One such module that fails to
import turns off all of them, hence the law here: nothing but pyspark and light modules are
imported, not nats and not pyarrow (a test blocks them).

```python
df = spark.read.format("nats").options(servers=url, stream="ORDERS").load()
```
"""

from __future__ import annotations

from pyspark_natsstream.source import DefaultSource, register

__all__ = ["DefaultSource", "register"]
