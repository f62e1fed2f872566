from collections.abc import Iterator, Mapping
from typing import IO, Any, Literal

from docker.models.containers import Container
from docker.models.images import Image
from docker.models.networks import Network

class APIClient:
    def pull(
        self, repository: str, tag: str, *, stream: Literal[True], decode: Literal[True]
    ) -> Iterator[dict[str, object]]: ...

class ImageCollection:
    def get(self, name: str) -> Image: ...
    def remove(self, image: str) -> None: ...
    def build(
        self, *, fileobj: IO[bytes], custom_context: bool, tag: str, rm: bool, forcerm: bool
    ) -> tuple[Image, Iterator[Any]]: ...

class ContainerCollection:
    def get(self, container_id: str) -> Container: ...
    def list(
        self, *, all: bool = ..., filters: Mapping[str, str] = ..., ignore_removed: bool = ...
    ) -> list[Container]: ...

class NetworkCollection:
    def list(
        self, *, names: list[str] = ..., filters: Mapping[str, str] = ...
    ) -> list[Network]: ...

class DockerClient:
    api: APIClient
    containers: ContainerCollection
    images: ImageCollection
    networks: NetworkCollection
    def version(self) -> dict[str, Any]: ...
    def close(self) -> None: ...
