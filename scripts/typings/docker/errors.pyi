class DockerException(Exception): ...  # noqa: N818 - The package's own name.

class APIError(DockerException):
    explanation: str | None

class NotFound(APIError): ...  # noqa: N818 - The package's own name.
class ImageNotFound(NotFound): ...
