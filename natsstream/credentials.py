"""The formats of credentials: nkey seeds, JWTs, and `.creds` files, which hold both.

Law: no message shows a possible secret, also if it is given as the wrong option.
"""

from __future__ import annotations

import base64
import binascii
import re
from pathlib import Path

from natsstream.errors import ConfigError

# A seed is 2 prefix bytes, 32 bytes of key and 2 of checksum in base32.
_SEED_BYTES = 36
_SEED_LENGTH = 58
_SEED_KIND = 18 << 3
_USER_KIND = 20 << 3
_BLOCK = re.compile(
    r"^-{3,}\s*BEGIN (?P<kind>[A-Z ]+?)\s*-{3,}\s*(?P<body>\S+)\s*-{3,}\s*END [A-Z ]+?\s*-{3,}",
    re.MULTILINE,
)
_SECRET_IN = re.compile(r"[sx][a-z2-7]{20,}|ey[\w-]{8,}|[\"'`;=\s]", re.IGNORECASE)
_NAME_LENGTH_MAX = 32
_SEED_LIKE = re.compile(r"S[A-Z2-7]{20,}")
# Characters that users put around a secret.
_WRAPPING = " \t\r\n\"'`"
_FILE_NAMES = (".creds", ".nk", ".pem", ".crt", ".cer", ".key", ".seed", ".jwt", ".txt")
_RELATIVE = "relative paths start at the working directory: give an absolute one"
_JWT_LIKE = re.compile(r"[\w-]{10,}\.[\w-]{10,}\.[\w-]+")


def parse_creds(text: str, *, source: str) -> tuple[str, str]:
    """Return the JWT and the seed of a `.creds` file.

    Args:
        text: Content of the file.
        source: Name of the file or option, for messages.

    Raises:
        ConfigError: A part is missing or damaged.
    """
    blocks = {found["kind"]: found["body"] for found in _BLOCK.finditer(text)}
    jwt, seed = blocks.get("NATS USER JWT", ""), blocks.get("USER NKEY SEED", "")
    if not _JWT_LIKE.fullmatch(jwt):
        raise ConfigError(f"{source} holds no user JWT", hint="create it with: nsc generate creds")
    check_user_seed(seed, source=source)
    return jwt, seed


def find_user_seed(text: str, *, source: str) -> str:
    """Return the user seed in a file, alone or between lines of dashes.

    Raises:
        ConfigError: The file has no valid user seed.
    """
    for line in text.splitlines():
        if _SEED_LIKE.fullmatch(line.strip()):
            check_user_seed(line.strip(), source=source)
            return line.strip()
    hint = "the file needs a line like SU..., without quotes"
    raise ConfigError(f"{source} holds no nkey seed", hint=hint)


def check_user_seed(seed: str, *, source: str) -> None:
    """Refuse anything but the seed of a user.

    Raises:
        ConfigError: The seed is damaged, or of an account or operator.
    """
    try:
        raw = base64.b32decode(seed + "=" * (-len(seed) % 8))
    except (binascii.Error, ValueError):
        raw = b""
    # The checksum is CRC-16/XMODEM, which the standard library has for an old Macintosh format.
    intact = len(raw) == _SEED_BYTES and len(seed) == _SEED_LENGTH
    # The last letter has two bits to spare, which no program sets: four letters mean the same.
    intact = intact and base64.b32encode(raw).decode().rstrip("=") == seed
    if not intact or binascii.crc_hqx(raw[:-2], 0) != int.from_bytes(raw[-2:], "little"):
        raise ConfigError(f"the seed in {source} is damaged", hint="copy it whole: 58 letters")
    kind = (raw[0] & 0b111) << 5 | raw[1] >> 3
    if raw[0] & 0b11111000 != _SEED_KIND or kind != _USER_KIND:
        raise ConfigError(
            f"the seed in {source} is not a user's", hint="a user seed begins with SU"
        )


def is_creds_text(value: str) -> bool:
    """Return True if a value is the text of a `.creds` file, not its path."""
    return "-----" in value


def is_seed_text(value: str) -> bool:
    """Return True if a value is a seed, whole or damaged, not the path of one."""
    return _SEED_LIKE.fullmatch(value.strip(_WRAPPING)) is not None or is_creds_text(value)


def is_jwt_text(value: str) -> bool:
    """Return True if a value is a JWT, not the path of one."""
    return _JWT_LIKE.fullmatch(value.strip(_WRAPPING)) is not None


def read_file(value: str | Path, *, option: str) -> str:
    """Return the text of a file with credentials.

    Raises:
        ConfigError: The file does not exist or cannot be read.
    """
    path = existing_file(value, option=option)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise ConfigError(
            f"{option}: {path} cannot be read: {reason}",
            hint="give a text file that this user may read",
        ) from None


def existing_file(value: str | Path, *, option: str) -> Path:
    """Return the path of a file that exists, with `~` expanded.

    Raises:
        ConfigError: There is no such file, or it is a folder.
    """
    text = str(value)
    if not text.strip() or "\n" in text or is_seed_text(text) or is_jwt_text(text):
        raise ConfigError(f"{option} is not the path of a file", hint=f"give the path as {option}=")
    try:
        path = Path(value).expanduser()
        found = path.is_file()
    except (OSError, RuntimeError, ValueError):  # Too long, no home directory, a null character.
        raise ConfigError(
            f"{option} is not a valid path", hint="check the path: this system cannot look it up"
        ) from None
    if not found:
        if path.is_dir():  # A folder that exists is no secret.
            raise ConfigError(f"{option}: {path} is a folder", hint="give a file in it")
        if _is_file_name(path):
            raise ConfigError(
                f"{option}: the file {path.absolute()} does not exist",
                hint="check the path and its spelling" if path.is_absolute() else _RELATIVE,
            )
        raise ConfigError(
            f"{option}: there is no such file",
            hint=f"{_RELATIVE}. A possible secret is not shown; give a seed as it is, without "
            "quotes",
        )
    return path


def _is_file_name(path: Path) -> bool:
    """Return True if the path of a missing file can be shown: it may be a misplaced secret.

    It ends like a file of credentials, or its folder exists.
    """
    text = str(path)
    if _SECRET_IN.search(text) or len(path.name) > _NAME_LENGTH_MAX:
        return False
    folder = path.parent
    return path.suffix in _FILE_NAMES or (len(folder.parts) > 1 and folder.is_dir())
