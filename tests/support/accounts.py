"""Operators, accounts and users for tests: nkeys and the JWTs that they sign, made by hand."""

from __future__ import annotations

import base64
import json
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import nkeys

if TYPE_CHECKING:
    from collections.abc import Mapping

_KINDS = {
    "operator": nkeys.PREFIX_BYTE_OPERATOR,
    "account": nkeys.PREFIX_BYTE_ACCOUNT,
    "user": nkeys.PREFIX_BYTE_USER,
}
_NO_LIMITS = {"subs": -1, "data": -1, "payload": -1}


@dataclass(frozen=True)
class KeyPair:
    """An nkey: the public name that servers know, and the secret seed."""

    kind: str
    seed: str

    @classmethod
    def new(cls, kind: str) -> KeyPair:
        return cls(kind, nkeys.encode_seed(os.urandom(32), _KINDS[kind]).decode())

    @property
    def public(self) -> str:
        return nkeys.from_seed(bytearray(self.seed.encode())).public_key.decode().rstrip("=")

    def sign_claims(self, subject: KeyPair, claims: Mapping[str, object], exp: float = 0) -> str:
        """Return a JWT about another key; `exp` is its end in Unix seconds, 0 for none."""
        body = {
            "jti": base64.b32encode(os.urandom(16)).decode().rstrip("="),
            "iat": int(time.time()),
            "iss": self.public,
            "sub": subject.public,
            "name": subject.kind,
            "nats": {"type": subject.kind, "version": 2, **claims},
        }
        if exp:
            body["exp"] = int(exp)
        signed = f"{_encode({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{_encode(body)}"
        signature = nkeys.from_seed(bytearray(self.seed.encode())).sign(signed.encode())
        return f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


class Operator:
    """An operator with one account that has JetStream, resolved from the server's memory.

    Args:
        tiers: Limits by replicas, such as `{"R1": {...}}`; None is one tier without limits.
    """

    def __init__(self, tiers: Mapping[str, Mapping[str, int]] | None = None) -> None:
        self._tiers = tiers
        self.key = KeyPair.new("operator")
        self.account = KeyPair.new("account")
        self.system = KeyPair.new("account")

    @property
    def server_config(self) -> str:
        """What makes a server trust this operator and know its accounts."""
        storage: dict[str, object] = {
            "mem_storage": -1,
            "disk_storage": -1,
            "streams": -1,
            "consumer": -1,
        }
        if self._tiers is not None:
            storage = {"tiered_limits": self._tiers}
        account = self._account_jwt(self.account, storage)
        system = self._account_jwt(self.system, {})
        operator = self.key.sign_claims(self.key, {"system_account": self.system.public})
        return (
            f"operator: {operator}\nresolver: MEMORY\nresolver_preload: {{\n"
            f"  {self.account.public}: {account}\n  {self.system.public}: {system}\n}}\n"
        )

    def _account_jwt(self, account: KeyPair, storage: Mapping[str, object]) -> str:
        limits = {"imports": -1, "exports": -1, "wildcards": True, "conn": -1, "leaf": -1}
        return self.key.sign_claims(account, {"limits": {**_NO_LIMITS, **limits, **storage}})

    def user_jwt(self, user: KeyPair, *, exp: float = 0, is_bearer: bool = False) -> str:
        """Return the JWT of a user of the account."""
        claims: dict[str, object] = {**_NO_LIMITS, "pub": {}, "sub": {}}
        if is_bearer:
            claims["bearer_token"] = True
        return self.account.sign_claims(user, claims, exp)


def creds_text(jwt: str, seed: str) -> str:
    """Return a `.creds` file as nsc writes it."""
    return (
        f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
        "************************* IMPORTANT *************************\n"
        "NKEY Seed printed below can be used to sign and prove identity.\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )


def _encode(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
