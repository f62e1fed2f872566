"""Signing in and TLS: from `ConnectOptions` to what nats-py's `connect()` takes.

Law: a server that offers no TLS gets no credentials when TLS was asked for, and no key file makes
OpenSSL ask a terminal for a password.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import ssl
from collections import UserString
from collections.abc import Coroutine
from typing import Any, cast

from natsstream.credentials import read_file
from natsstream.errors import ConfigError, MissingExtraError, TlsError
from natsstream.options import ConnectOptions, Secret, public_url, url_sign_in

_CREDS = """\
-----BEGIN NATS USER JWT-----
{jwt}
------END NATS USER JWT------
-----BEGIN USER NKEY SEED-----
{seed}
------END USER NKEY SEED------
"""

# OpenSSL's X509_V_ERR codes.
_EXPIRED = 10
_NOT_YET_VALID = 9
_UNTRUSTED = (2, 18, 19, 20, 21)
_OTHER_NAME = (62, 64)
_NOT_OFFERED = "the server offers no TLS"


class LiveCreds(UserString):
    """Credentials that are looked up whenever nats-py signs in, and are hidden until then.

    nats-py takes a `UserString` as the text of a `.creds` file. Its own reader of such files is
    not used: it never ends where a file has no JWT.
    """

    def __init__(self, options: ConnectOptions) -> None:
        # Without UserString's own, which would keep a copy.
        self._options = options

    @property
    def data(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - Looked up.
        """The text of a `.creds` file as it is now.

        Raises:
            ConfigError: There is none, or it is damaged.
        """
        options = self._options
        if options.user_jwt is None:
            jwt, seed = options.creds_pair()
        else:
            jwt = _text(options.user_jwt, "user_jwt")
            seed = (options.user_seed or "").strip()
        return _CREDS.format(jwt=jwt, seed=seed)

    def __repr__(self) -> str:
        return "LiveCreds(...)"

    __str__ = __repr__


def auth_arguments(options: ConnectOptions) -> dict[str, Any]:
    """Return the keyword arguments that sign in and secure the connection.

    Raises:
        ConfigError: A file is not what it should be.
        MissingExtraError: A seed is to sign, and nkeys is not installed.
    """
    user, password, token = options.user, options.password, options.token
    signed_in = [found for found in map(url_sign_in, options.servers) if found is not None]
    # So they also apply to discovered servers, and `%40` is decoded.
    if signed_in and signed_in.count(signed_in[0]) == len(options.servers):
        user, password = signed_in[0]
        if password is None:
            user, token = None, user
    arguments: dict[str, Any] = {"user": user, "password": password, "token": token}
    if token is not None and not isinstance(token, str):
        arguments["token"] = functools.partial(_text, token, "token")
    if options.creds is not None or (options.user_jwt is not None and options.user_seed):
        _need_nkeys()
        arguments["user_credentials"] = LiveCreds(options)
    elif options.user_jwt is not None:
        bearer = options.user_jwt
        arguments["user_jwt_cb"] = lambda: _text(bearer, "user_jwt").encode()
        arguments["signature_cb"] = _no_signature
    elif options.nkey is not None:
        _need_nkeys()
        arguments["nkeys_seed_str"] = options.nkey_seed()
    if options.wants_tls:
        arguments["tls"] = tls_context(options)
        arguments["tls_handshake_first"] = options.tls_first
    return arguments


def _need_nkeys() -> None:
    """Refuse seeds without nkeys: nats-py imports it during the handshake, which fails."""
    if importlib.util.find_spec("nkeys") is None:
        raise MissingExtraError(
            "credentials with a seed need nkeys", hint="pip install 'nats-py[nkeys]'"
        )


def tls_context(options: ConnectOptions) -> ssl.SSLContext:
    """Return a context that checks the server's certificate and name.

    Raises:
        ConfigError: A file holds no certificate or no key, or they do not belong together.
    """
    try:
        context = ssl.create_default_context(cafile=options.ca)
    except OSError as error:  # ssl.SSLError is one.
        raise ConfigError(
            f"ca: {options.ca} holds no certificates", detail=_reason(error), hint="give a PEM file"
        ) from None
    # Some builds of Python leave it to the system's OpenSSL, which may allow older ones.
    context.minimum_version = max(context.minimum_version, ssl.TLSVersion.TLSv1_2)
    if options.cert is None:
        return context
    try:
        # A function, so that OpenSSL does not ask the terminal.
        context.load_cert_chain(
            options.cert, options.key, password=lambda: options.key_password or ""
        )
    except OSError as error:
        reason = _reason(error)
        hint = "give PEM files: the certificate, and the private key that it was made for"
        if _is_encrypted(options):
            hint = "the key has a password: give the right one as key_password"
        message = f"cert {options.cert} and key {options.key} cannot be used"
        raise ConfigError(message, detail=reason, hint=hint) from None
    return context


def demand_tls(info: dict[str, Any]) -> None:
    """Make nats-py upgrade to TLS where the server merely offers it.

    Args:
        info: The server's INFO, before nats-py acts on it.

    Raises:
        ssl.SSLError: The server offers none; nothing was sent.
    """
    if info.get("tls_required"):
        return
    if not info.get("tls_available"):
        raise ssl.SSLError(ssl.SSL_ERROR_SSL, _NOT_OFFERED)
    info["tls_required"] = True


def tls_failure(
    url: str, error: BaseException, options: ConnectOptions, info: object
) -> TlsError | None:
    """Return the error of a failed TLS handshake, None for another failure.

    Args:
        url: The server.
        error: The failure.
        options: The options of the connection.
        info: The server's INFO, or anything that a stranger sent.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsError(
            f"the certificate of {public_url(url)} was refused",
            detail=error.verify_message,
            hint=_certificate_hint(error.verify_code),
        )
    reason = _reason(error) if isinstance(error, OSError) else str(error)
    # With TLS 1.3 a client learns of it after the handshake, often by nothing but a reset.
    wants_client = isinstance(info, dict) and cast("dict[str, object]", info).get("tls_verify")
    # With tls_first there is no INFO yet, and the alert says it.
    wants_client = wants_client or "certificate required" in reason
    if wants_client and isinstance(error, OSError):
        hint = "the server requires a client certificate: give cert and key"
        if options.cert is not None:
            hint = "cert must be valid and signed by a CA that the server knows"
        return TlsError(f"{public_url(url)} refused this client", detail=reason, hint=hint)
    if not isinstance(error, ssl.SSLError):
        return None
    hint = "check the server's log"
    if reason == _NOT_OFFERED:
        hint = "enable TLS in the server; or connect by nats:// without ca, cert and tls_first"
    elif "wrong version" in reason or "record layer" in reason:
        hint = "is another program listening there?"
        if options.tls_first:
            hint = (
                "the server sends INFO before TLS: leave tls_first out, or set its handshake_first"
            )
    return TlsError(f"no TLS with {public_url(url)}", detail=reason, hint=hint)


UNREACHABLE_HINT = (
    "is the host right, and is it up? A firewall may drop the packets; a slow network needs a "
    "longer connect_timeout"
)
"""The hint for a host that neither accepts nor refuses a connection."""


def silence_hint(options: ConnectOptions) -> str:
    """Return the hint for a server that sent no INFO, such as the port for monitoring."""
    if options.tls_first:
        return "if the server sends INFO before TLS, leave tls_first out"
    return (
        "is it a NATS server's port for clients, and not the one for monitoring? If it has "
        "handshake_first, give tls_first=True; a slow network needs a longer connect_timeout"
    )


def _certificate_hint(code: int) -> str:
    if code in _OTHER_NAME:
        return "connect by a name or address of the server's certificate"
    if code == _EXPIRED:
        return "the server's certificate, or one of its CAs, has expired: renew it"
    if code == _NOT_YET_VALID:
        return "the certificate is not valid yet: check the clock of this machine"
    if code in _UNTRUSTED:
        return "give the certificate of its CA as ca="
    return "check the certificate with: openssl x509 -text"


def _reason(error: OSError) -> str:
    """Return OpenSSL's words without its file and line."""
    # An SSLError that OpenSSL did not raise has no reason.
    reason: str | None = getattr(error, "reason", None)
    if reason:
        return reason.replace("_", " ").lower()
    return re.sub(r" \(_ssl\.c:\d+\)", "", error.strerror or str(error)) or type(error).__name__


def _is_encrypted(options: ConnectOptions) -> bool:
    try:
        return "ENCRYPTED" in read_file(options.key or "", option="key")
    except ConfigError:
        return False


def _text(value: Secret, option: str) -> str:
    """Return a secret, also from a function of the caller.

    Raises:
        ConfigError: The function raised, or returned no text.
    """
    if isinstance(value, str):
        return value.strip()
    try:
        found = cast("object", value())  # The caller's function may not keep its promise.
    except Exception as error:
        message = f"the function that was given as {option} failed"
        raise ConfigError(message, detail=repr(error)) from error
    if isinstance(found, str) and found.strip():
        return found.strip()
    if isinstance(found, Coroutine):
        cast("Coroutine[Any, Any, Any]", found).close()
        raise ConfigError(
            f"the function that was given as {option} is async",
            hint="give a plain function that returns the text",
        )
    raise ConfigError(f"the function that was given as {option} returned no text")


def _no_signature(nonce: str) -> bytes:
    del nonce  # A bearer's JWT is its own proof.
    return b""
