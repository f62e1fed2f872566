"""What holds for the package as a whole; who may import whom is checked by scripts/check."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import natsstream
from natsstream import errors

# Each is a file of its own, so that its source and `help` read like a reference page.
ONE_CLASS_ONE_FILE = (
    natsstream.CachedKeyValue,
    natsstream.Consumer,
    natsstream.Election,
    natsstream.KeyValue,
    natsstream.Lock,
    natsstream.ObjectStore,
    natsstream.Publisher,
    natsstream.Stream,
    natsstream.Watch,
)

TREE_LINE = re.compile(r"(?P<indent>[│├└─ ]*)(?P<name>[A-Z]\w+Error)(?P<notes>.*)")
INDENT_COLUMNS = 4

NO_REQUESTS = {
    "EVENTS",
    "advisory_max_deliveries",
    "advisory_terminated",
    "is_command",
    "is_same_request",
    "is_snapshot_ack",
    "settle_message",
}

# Each takes 0.1 to 0.7 s to import, which every program and every Spark worker would pay.
TOUCH_EVERY_NAME = """
import sys
import natsstream
for name in natsstream.__all__:
    getattr(natsstream, name)
print(*sorted({"nats", "numpy", "pandas", "pyarrow", "pyspark", "msgpack"} & sys.modules.keys()))
"""

IMPORT_CONNECTOR = """
import sys
sys.modules["nats"] = sys.modules["pyarrow"] = sys.modules["natsstream._wire.client"] = None
import pyspark_natsstream
print(pyspark_natsstream.DefaultSource.name())
"""


def test_importing_natsstream_and_each_public_name_loads_nothing_heavy() -> None:
    assert run_python(TOUCH_EVERY_NAME) == "\n"


def test_connector_is_found_where_nats_py_and_pyarrow_are_broken() -> None:
    # One `pyspark_*` package that fails to import hides every Python source from Spark.
    assert run_python(IMPORT_CONNECTOR) == "nats\n"


def test_public_names_are_sorted_and_resolve() -> None:
    names = list(natsstream.__all__)

    # As ruff sorts them: constants first.
    assert names == sorted(set(names), key=lambda name: (not name.isupper(), name))
    assert [name for name in names if not hasattr(natsstream, name)] == []


def test_error_tree_in_the_docstring_equals_the_classes() -> None:
    assert parents_in_docstring() == classes_of_errors()


def test_errors_noted_as_builtins_in_the_tree_are_builtins() -> None:
    noted = dict(re.findall(r"(\w+Error) \(also (\w+)\)", errors.__doc__ or ""))
    inherited = {
        name: base.__name__
        for name in classes_of_errors()
        for base in getattr(errors, name).__bases__
        if base is not Exception and base.__module__ == "builtins"
    }

    assert noted == inherited


def test_every_error_says_in_a_docstring_when_it_is_raised() -> None:
    assert [name for name in classes_of_errors() if not getattr(errors, name).__doc__] == []


@pytest.mark.parametrize("public", ONE_CLASS_ONE_FILE)
def test_public_class_is_one_class_in_one_file(public: type[object]) -> None:
    members = {
        name: inspect.unwrap(getattr(value, "fget", None) or getattr(value, "func", None) or value)
        for name, value in inspect.getmembers_static(public)
        if not name.startswith("_")
    }
    functions = {name: each for name, each in members.items() if inspect.isfunction(each)}
    elsewhere = {
        name: function.__qualname__
        for name, function in functions.items()
        if (function.__module__, function.__qualname__)
        != (public.__module__, f"{public.__name__}.{name}")
    }

    assert functions
    assert elsewhere == {}
    assert [name for name, each in functions.items() if not each.__doc__] == []


def test_only_api_and_the_wire_spell_requests_of_jetstream() -> None:
    """From `_wire/subjects.py` other rooms take events, acks and comparisons alone."""
    package = Path(natsstream.__file__).parent
    spelled: dict[str, set[str]] = {}
    for path in sorted(package.rglob("*.py")):
        room = path.relative_to(package).parts[0]
        if room in ("api", "_wire"):
            continue
        found = subjects_of_the_wire(ast.parse(path.read_text("utf-8")))
        if found - NO_REQUESTS:
            spelled[str(path.relative_to(package))] = found - NO_REQUESTS

    assert spelled == {}


def subjects_of_the_wire(tree: ast.Module) -> set[str]:
    """Return the names that a file takes from `_wire/subjects.py`, however it imports it."""
    found, modules = set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "natsstream._wire.subjects":
            found |= {each.name for each in node.names}
        if isinstance(node, ast.ImportFrom) and node.module == "natsstream._wire":
            modules |= {each.asname or each.name for each in node.names if each.name == "subjects"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found |= {node.attr} if node.value.id in modules else set()
    return found


def classes_of_errors() -> dict[str, str]:
    """Return the parent of each error class; the root's is empty."""
    classes = [
        item
        for _, item in inspect.getmembers(errors, inspect.isclass)
        if issubclass(item, BaseException)
    ]
    return {
        item.__name__: "".join(base.__name__ for base in item.__bases__ if base in classes)
        for item in classes
    }


def parents_in_docstring() -> dict[str, str]:
    """Return the parent of each error drawn in the docstring's tree; the root's is empty."""
    tree = re.findall(r"```\n(.*?)```", errors.__doc__ or "", re.DOTALL)[0]
    path: list[str] = []
    parents: dict[str, str] = {}
    for line in tree.splitlines():
        found = TREE_LINE.fullmatch(line)
        assert found, f"not a line of a tree: {line!r}"
        depth = len(found["indent"]) // INDENT_COLUMNS
        parents[found["name"]] = path[depth - 1] if depth else ""
        path[depth:] = [found["name"]]
    return parents


def run_python(program: str) -> str:
    """Return what a program prints in a Python process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
