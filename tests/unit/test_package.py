"""What a first look at the package shows: its names, its version, the names of other clients."""

from __future__ import annotations

import importlib.metadata
import inspect
import re
import subprocess
import sys
from typing import Any

import pytest

import natsstream as ns
from natsstream import blocking, foreign_names
from natsstream.errors import ConfigError
from natsstream.kv.manager import KeyValueManager
from natsstream.objects.manager import ObjectStoreManager
from natsstream.streams.consumers.manager import ConsumerManager
from natsstream.streams.manager import StreamManager

HOLDERS: dict[str, type[object]] = {
    "consumer": ns.Consumer,
    "js": ns.JetStream,
    "js.core": ns.Core,
    "js.kv": KeyValueManager,
    "js.objects": ObjectStoreManager,
    "js.streams": StreamManager,
    "publisher": ns.Publisher,
    "stream": ns.Stream,
    "stream.consumers": ConsumerManager,
}
# Set in the constructor.
ATTRIBUTES = {"js.core", "js.streams"}


def blocked(module: str, program: str) -> str:
    """Run a program in which a module cannot be imported; return what it prints."""
    head = f"import sys; sys.modules[{module!r}] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", head + program], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.smoke
def test_dir_is_what_the_package_exports() -> None:
    assert dir(ns) == sorted(ns.__all__)


def test_version_is_that_of_the_installed_package() -> None:
    version = importlib.metadata.version("natsstream")

    assert ns.__version__ == blocking.__version__ == version


@pytest.mark.parametrize("name", sorted(foreign_names.JETSTREAM))
def test_name_of_another_client_is_answered_with_names_that_exist(name: str) -> None:
    here = foreign_names.JETSTREAM[name]

    assert not hasattr(ns.JetStream, name)
    pairs = re.findall(r"\b((?:js|stream|consumer|publisher)(?:\.\w+)?)\.(\w+)", here)
    for holder, member in pairs:
        is_known = f"{holder}.{member}" in ATTRIBUTES
        assert is_known or hasattr(HOLDERS[holder], member), here


@pytest.mark.parametrize("name", sorted(foreign_names.CONNECT_OPTIONS))
def test_option_of_another_client_is_answered_with_options_that_exist(name: str) -> None:
    here = foreign_names.CONNECT_OPTIONS[name]
    known = inspect.signature(ns.connect).parameters

    assert name not in known
    assert [option for option in re.findall(r"(\w+)=", here) if option not in known] == []
    options: dict[str, Any] = {name: True}
    with pytest.raises(ConfigError, match=f"no option '{name}'") as caught:
        ns.connect(**options)
    assert here in caught.value.hint


def test_misspelt_option_is_answered_with_the_nearest() -> None:
    options: dict[str, Any] = {"reconect_timeout": 3}
    with pytest.raises(ConfigError) as caught:
        ns.connect(**options)

    assert caught.value.hint == "did you mean reconnect_timeout?"


def test_server_harness_imports_where_files_have_no_locks() -> None:
    """As on Windows, which has no fcntl."""
    program = (
        "from natsstream.testing import NatsServer\n"
        "try: NatsServer().start()\n"
        "except Exception as error: print(error)"
    )

    assert "NatsServer needs Linux or macOS\nhint: use NatsContainer" in blocked("fcntl", program)


def test_connector_without_pyspark_says_what_to_install() -> None:
    printed = blocked("pyspark", "import pyspark_natsstream")

    assert "MissingExtraError" in printed
    assert "pip install 'natsstream[spark]'" in printed
