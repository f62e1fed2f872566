"""The nats CLI's contexts (ADR-21) and environment variables, and their precedence.

A context is a JSON file, `$XDG_CONFIG_HOME/nats/context/NAME.json` (`~/.config` without that
variable); `context.txt` beside the folder holds the name of the selected one.

Law: the environment and the selected context are read only if the caller gives neither servers nor
a context. A setting that cannot be used is an error; none is ignored.

Source: ADR-21; the packages natscontext of jsm.go and cli of natscli.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from natsstream.errors import ConfigError
from natsstream.options import (
    CREDENTIALS,
    ConnectOptions,
    option_sources,
    public_url,
    split_servers,
    url_sign_in,
)

# Options that belong together: one of a group replaces the whole group.
_GROUPS = (frozenset(CREDENTIALS), {"cert", "key", "key_password"}, {"domain", "api_prefix"})
# These complete a lower layer: a context has the user, the environment its password.
_COMPLETING = frozenset({"password", "user_seed", "key_password"})
_PATHS = ("creds", "nkey", "ca", "cert", "key")
_SECRETS = ("token", "password", "user_jwt", "user_seed")
_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s|us|µs|ns)")
_ASK_TOOL = {
    "op": "read the secret with 1Password's `op read` into an environment variable, and write "
    "env://NAME",
    "nsc": "write the credentials to a file with `nsc generate creds`, and give its path as creds",
}


@dataclass(frozen=True, slots=True)
class Context:
    """One context file.

    Attributes:
        name: The file's name without `.json`.
        path: Path of the file.
        values: All keys of the file with their values, also unknown ones.
    """

    name: str
    path: Path
    values: Mapping[str, object] = field(repr=False)

    @property
    def description(self) -> str:
        """The context's description; may be empty."""
        return str(self.values.get("description") or "")

    @property
    def servers(self) -> tuple[str, ...]:
        """The servers' URLs, without secrets.

        Raises:
            ConfigError: A comma may be part of a password.
        """
        return tuple(public_url(url) for url in _urls(self.values.get("url")))

    def options(self, *, without: Collection[str] = ()) -> dict[str, object]:
        """Return the fields of `ConnectOptions` in the file, with paths and references resolved.

        Args:
            without: Fields that are set elsewhere; their values in the file are ignored.

        Raises:
            ConfigError: A value cannot be read, or is not supported.
        """
        known = {source.context: name for name, source in option_sources().items()}
        found = {
            known[key]: value
            for key, value in self.values.items()
            if key in known and key and value not in ("", None, False) and known[key] not in without
        }
        try:
            if self.values.get("socks_proxy"):
                raise _no_proxy("socks_proxy")
            if self.values.get("nsc") and "creds" not in found and "creds" not in without:
                raise ConfigError("nsc is not supported", hint=_ASK_TOOL["nsc"])
            options = {name: _read_value(name, value) for name, value in found.items()}
        except ConfigError as error:
            raise ConfigError(f"context {self.name}: {error.message}", hint=error.hint) from None
        if "user" in options and "password" not in without:
            _ = options.setdefault("password", "")  # The CLI sends an empty one as well.
        return options


def context_names() -> list[str]:
    """Return the names of all contexts, sorted."""
    try:
        files = sorted(_folder().joinpath("context").iterdir())
    except OSError:
        return []
    return [file.stem for file in files if file.suffix == ".json" and _is_name(file.stem)]


def selected_context() -> str | None:
    """Return the name of the context that `nats context select` chose, None for none."""
    try:
        return (_folder() / "context.txt").read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def load_context(name: str | Path) -> Context:
    """Read a context.

    Args:
        name: Its name; or its file, as a Path, an absolute path, or a path that ends in `.json`.

    Raises:
        ConfigError: The context does not exist, or the file is no context.
    """
    text = str(name)
    is_file = isinstance(name, Path) or text.startswith(("/", "~/")) or text.endswith(".json")
    if not is_file and not _is_name(text):
        raise ConfigError(f"{text!r} is not a context name", hint="use no slashes and no `..`")
    what = f"context {text!r}"
    path = Path(_home(text, what)) if is_file else _folder() / "context" / f"{text}.json"
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise _unknown_context(path if is_file else text) from None
    except OSError as error:
        raise ConfigError(f"context file {path} cannot be read: {error.strerror}") from None
    except ValueError:  # A null character, or half of a surrogate pair.
        raise _no_path(what) from None
    try:
        values: object = json.loads(content)
    except (ValueError, RecursionError):
        # Without the cause, whose text may show a secret.
        raise ConfigError(f"context file {path} is not JSON") from None
    if not isinstance(values, dict):
        raise ConfigError(f"context file {path} holds no JSON object")
    # The keys of a JSON object are texts.
    return Context(path.stem, path, cast("dict[str, object]", values))


def resolve_options(
    given: Mapping[str, object], *, context: str | Path | None = None
) -> ConnectOptions:
    """Build the options of a connection from arguments, environment and contexts.

    Args:
        given: Fields of `ConnectOptions` from the caller.
        context: A context from the caller.

    Returns:
        `given`, over the given context. Without servers and context: `given`, over the
        environment, over the context in `NATS_CONTEXT` or of `nats context select`, over the
        defaults.

    Raises:
        ConfigError: A value is illegal.
    """
    options = dict(given)
    if context is None and "servers" not in given:
        options = _lay_over(options, environment_options())
        context = os.environ.get("NATS_CONTEXT") or selected_context()
    if context is not None:
        found = load_context(context)
        options = _lay_over(options, found.options(without=_replaced(options)))
    # Each value comes from a parser that fits its field, or from the caller.
    return ConnectOptions(**options)  # pyright: ignore[reportArgumentType]


def environment_options() -> dict[str, object]:
    """Return the fields of `ConnectOptions` that the nats CLI's environment variables set.

    Raises:
        ConfigError: A variable has an illegal value.
    """
    if os.environ.get("NATS_SOCKS_PROXY"):
        raise _no_proxy("NATS_SOCKS_PROXY")
    options: dict[str, object] = {}
    for name, source in option_sources().items():
        text = os.environ.get(source.env, "") if source.env else ""
        if not text:
            continue
        try:
            options[name] = _seconds(text) if name == "request_timeout" else _read_value(name, text)
        except ConfigError as error:
            raise ConfigError(f"{source.env}: {error.message}", hint=error.hint) from None
    if "user" in options and "password" not in options:
        # As in the CLI, a user without a password is a token.
        _ = options.setdefault("token", options.pop("user"))
    return options


def _lay_over(upper: Mapping[str, object], lower: Mapping[str, object]) -> dict[str, object]:
    replaced = _replaced(upper)
    kept = {name: value for name, value in lower.items() if name not in replaced}
    if replaced & set(CREDENTIALS) and "servers" in kept and "servers" not in upper:
        kept["servers"] = [_without_sign_in(url) for url in _urls(kept["servers"])]
    return {**kept, **upper}


def _replaced(upper: Mapping[str, object]) -> frozenset[str]:
    """Return the fields that a lower layer must not set."""
    given = set(upper) - _COMPLETING
    if any(_signs_in(url) for url in _urls(upper.get("servers"))):
        given.add("user")
    groups = (group for group in _GROUPS if group & given)
    return frozenset(upper).union(*groups)


def _signs_in(url: str) -> bool:
    try:
        return url_sign_in(url) is not None
    except ValueError:
        return False  # ConnectOptions raises the error.


def _without_sign_in(url: str) -> str:
    scheme, separator, rest = url.rpartition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"


def _urls(value: object) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return split_servers(value)
    # A sequence of texts from the caller, or anything from a file.
    return [url.strip() for url in cast("list[object]", value) if isinstance(url, str)]


def _read_value(name: str, value: object) -> object:
    if name == "tls_first":
        if value is not True:
            raise ConfigError("tls_first is neither true nor false")
        return True
    if not isinstance(value, str):
        raise ConfigError(f"{name} is not a text")
    if name == "servers":
        return _urls(value)
    if name in _PATHS or name in _SECRETS:
        return _follow(name, value)
    return value


def _follow(name: str, reference: str) -> str:
    """Return a path or a secret, also by `env://`, `file://` or `data:`."""
    try:
        scheme = urlsplit(reference).scheme
    except ValueError:
        scheme = ""
    if scheme in _ASK_TOOL and reference.lower().startswith(f"{scheme}://"):
        raise ConfigError(
            f"{name} refers to {scheme}://, which is not supported", hint=_ASK_TOOL[scheme]
        )
    rest = reference.partition("://")[2]
    if scheme == "file" and name in _PATHS:
        return _expand(rest, name)
    if name in ("ca", "cert", "key"):
        return _expand(reference, name)
    if scheme == "file":
        try:
            return Path(_expand(rest, name)).read_text(encoding="utf-8").strip()
        except (OSError, ValueError):  # Also no text, or a path with half of a surrogate pair.
            raise ConfigError(f"{name}: the file {rest} cannot be read") from None
    if scheme == "env" and rest:
        try:
            found = os.environ.get(rest, "")
        except UnicodeEncodeError:  # No variable has half of a surrogate pair in its name.
            found = ""
        if not found:
            raise ConfigError(f"{name}: the environment variable {rest} is not set")
        return found
    if scheme == "data":
        return _decode(name, reference)
    return _expand(reference, name) if name in _PATHS else reference


def _decode(name: str, reference: str) -> str:
    head, comma, body = reference.partition(",")
    try:
        if not comma or "base64" not in head.split(";"):
            raise ValueError
        return base64.b64decode(body, validate=True).decode().strip()
    except (binascii.Error, ValueError):
        raise ConfigError(f"{name}: the data: reference is not base64") from None


def _expand(path: str, name: str) -> str:
    try:
        variables = os.path.expandvars(path)
    except ValueError:  # Half of a surrogate pair in the name of a variable.
        raise _no_path(name) from None
    return _home(variables, name)


def _home(path: str, name: str) -> str:
    """Return a path with the home folder in the place of `~`."""
    try:
        return os.path.expanduser(path)
    except ValueError:  # A null character in the name of a user.
        raise _no_path(name) from None


def _no_path(name: str) -> ConfigError:
    return ConfigError(f"{name} is not a valid path")


def _seconds(text: str) -> float:
    """Return the seconds of a duration as Go writes it, such as `5s`, `1m30s` or `500ms`."""
    if "".join(found.group() for found in _DURATION_PART.finditer(text)) != text:
        raise ConfigError(f"{text!r} is not a duration", hint="write it like 5s, 1m30s or 500ms")
    return sum(float(count) * _UNITS_S[unit] for count, unit in _DURATION_PART.findall(text))


def _no_proxy(where: str) -> ConfigError:
    return ConfigError(
        f"{where} sets a SOCKS proxy, which natsstream does not support",
        hint="unset it, and connect directly or through a forwarded port",
    )


def _folder() -> Path:
    root = os.environ.get("XDG_CONFIG_HOME") or _home("~/.config", "the home folder")
    return Path(root) / "nats"


def _is_name(text: str) -> bool:
    return bool(text) and ".." not in text and not set(text) & set("/\\\0")


def _unknown_context(asked: str | Path) -> ConfigError:
    if isinstance(asked, Path):
        return ConfigError(f"context file {asked} does not exist")
    names = context_names()
    close = difflib.get_close_matches(asked, names, n=1)
    ask = f"did you mean {close[0]}? " if close else ""
    where = _folder() / "context"
    listed = f"known: {', '.join(names)}" if names else f"no contexts were found in {where}"
    message = f"there is no context {asked!r}"
    if asked == selected_context():
        message = f"the selected context {asked!r} does not exist"
        listed += "; choose another with: nats context select"
    return ConfigError(message, hint=f"{ask}{listed}")
