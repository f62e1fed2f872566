"""Certificates for tests, made by the openssl program."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

LOOPBACK = "DNS:localhost,IP:127.0.0.1"
_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Certificate:
    """Paths of a certificate and its private key."""

    cert: Path
    key: Path


class Authority:
    """A certificate authority with its files in a folder."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self.folder = folder
        self.own = Certificate(folder / f"{name}.pem", folder / f"{name}-key.pem")
        _openssl(
            "req", "-x509", *_new_key(self.own.key), "-out", self.own.cert, "-days", "2",
            "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE",
            # Python 3.13 refuses authorities that do not say what their key is for.
            "-addext", "keyUsage=critical,keyCertSign,cRLSign",
        )  # fmt: skip

    @property
    def ca(self) -> Path:
        return self.own.cert

    def sign(
        self, name: str, *, names: str = LOOPBACK, days: int = 2, password: str = ""
    ) -> Certificate:
        """Make a certificate.

        Args:
            name: Common name and file name.
            names: Subject alternative names as openssl writes them.
            days: How long it is valid; below 0 it has expired.
            password: Encrypts the private key.
        """
        made = Certificate(self.folder / f"{name}.pem", self.folder / f"{name}-key.pem")
        request, extensions = self.folder / f"{name}.csr", self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={names}\nauthorityKeyIdentifier=keyid\n")
        _openssl("req", *_new_key(made.key, password), "-out", request, "-subj", f"/CN={name}")
        _openssl(
            "x509", "-req", "-in", request, "-CA", self.own.cert, "-CAkey", self.own.key,
            "-CAcreateserial", "-out", made.cert, "-days", str(days), "-extfile", extensions,
        )  # fmt: skip
        return made


def _new_key(path: Path, password: str = "") -> list[str | Path]:
    locked = ["-passout", f"pass:{password}"] if password else ["-nodes"]
    # Elliptic curves: an RSA key takes a tenth of a second and more.
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", *locked, "-keyout", path]


def _openssl(*arguments: str | Path) -> None:
    done = subprocess.run(
        ["openssl", *arguments],  # noqa: S607 - Found on PATH, as in any shell.
        capture_output=True, text=True, timeout=_TIMEOUT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
