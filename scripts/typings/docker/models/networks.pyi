from typing import Any

class Network:
    id: str
    name: str
    attrs: dict[str, Any]
    def remove(self) -> None: ...
