"""There was no answer: whether the request was carried out is not known."""

from __future__ import annotations

from natsstream.errors.base import NatsStreamError


class TransportError(NatsStreamError):
    """There was no answer: whether the request was carried out is not known."""


class ConnectError(TransportError):
    """None of the given servers could be reached."""


class TlsError(ConnectError):
    """No TLS session could be agreed on, or a certificate is not trusted."""


class AuthenticationError(TransportError):
    """The server refused the credentials."""


class ConnectionLostError(TransportError):
    """The connection broke and did not come back within the deadline."""


class ConnectionClosedError(TransportError):
    """The connection was closed by this side; open a new one."""


class RequestTimeoutError(TransportError):
    """Nobody answered within the deadline."""


class BatchOutcomeUnknownError(TransportError):
    """Whether an atomic batch was stored can not be told (any more)."""


class NoRespondersError(TransportError):
    """Nobody listens on the subject of the request."""


class ProtocolError(TransportError):
    """The answer is not what NATS or JetStream would say."""


class LeaseLostError(TransportError):
    """The server heard nothing of a message for `ack_wait`, and may have given it to another."""


class DeliveryForgottenError(TransportError):
    """The server does not know that it delivered a message: no verdict counts, it comes again."""


class LockLostError(TransportError):
    """A lock is not held any more: another may hold it, and what was begun under it is in doubt.

    Attributes:
        name: The lock's key.
        token: The token that it was held with; 0 where it never was.
    """

    def __init__(
        self, message: str, *, name: str, token: int, detail: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.name = name
        self.token = token
