"""The table of options on the page about connecting says what the code does."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from natsstream.options import ConnectOptions, option_sources

PAGE = Path(__file__).parents[2] / "docs" / "pages" / "guides" / "connect.md"
ROW = re.compile(r"\| `(\w+)` \| (?:`(\w+)` )?\| (?:`(\w+)` )?\| (.*) \|")
DEFAULT = re.compile(r"Default `?([^`]+?)`?\.$")


def test_table_has_each_option_with_its_variable_and_its_key() -> None:
    rows = ROW.findall(PAGE.read_text())

    assert [(name, (env, context)) for name, env, context, _ in rows] == list(
        option_sources().items()
    )


def test_defaults_of_the_table_are_the_code_s() -> None:
    shown = {
        name: found[1]
        for name, _, _, meaning in ROW.findall(PAGE.read_text())
        if (found := DEFAULT.search(meaning)) and name not in ("ca", "api_prefix")
    }
    options = ConnectOptions()
    wanted: dict[str, str] = {}
    for field in dataclasses.fields(ConnectOptions):
        value: object = getattr(options, field.name)
        if field.name == "servers":
            wanted["servers"] = options.servers[0]
        elif value is not None:
            wanted[field.name] = f"{value:g}" if isinstance(value, float) else str(value).lower()
    wanted["inbox_prefix"] = options.inbox_prefix

    assert shown == wanted
