"""The types of the blocking door against the async classes that they stand for."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import natsstream
from natsstream import blocking

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "generate_blocking_types"
STUB = ROOT / "natsstream" / "blocking" / "__init__.pyi"

RENAMED = {
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
}


def stub_classes() -> dict[str, ast.ClassDef]:
    tree = ast.parse(STUB.read_text())
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def async_class(name: str) -> type[object]:
    """Return what a class of the types is the proxy of."""
    homes: dict[str, str] = vars(blocking)["_HOMES"]
    home = homes.get(name)
    found: type[object] = getattr(importlib.import_module(home) if home else natsstream, name)
    return found


ASYNC_CLASSES = {name: async_class(name) for name in stub_classes()}


def test_types_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_check_fails_and_writes_nothing_when_the_file_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    generator = load_script()
    old = tmp_path / "__init__.pyi"
    old.write_text("class JetStream: ...\n")
    monkeypatch.setattr(generator, "OUTPUT", old)

    code = generator.main(["--check"])

    assert code == 1
    assert "run scripts/generate_blocking_types" in capsys.readouterr().err
    assert old.read_text() == "class JetStream: ...\n"


def test_every_public_async_class_is_in_the_types() -> None:
    # Those that natsstream itself exports, whatever way the generator finds them.
    exported = {
        name
        for name in natsstream.__all__
        if inspect.isclass(kind := getattr(natsstream, name)) and has_coroutines(kind)
    }

    assert exported - stub_classes().keys() == set()


@pytest.mark.parametrize("name", ASYNC_CLASSES)
def test_every_public_method_has_its_twin(name: str) -> None:
    public = {
        RENAMED.get(member, member)
        for member in vars(ASYNC_CLASSES[name])
        if not member.startswith("_") or member in RENAMED
    }

    assert public - members(stub_classes()[name]) == set()


def test_nothing_is_async_in_the_types() -> None:
    nodes = list(ast.walk(ast.parse(STUB.read_text())))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}

    assert [node for node in nodes if isinstance(node, ast.AsyncFunctionDef)] == []
    assert sorted(name for name in names if "Async" in name or name in ("Future", "asyncio")) == []


@pytest.mark.parametrize("name", ASYNC_CLASSES)
def test_each_class_of_the_types_exists_at_run_time(name: str) -> None:
    kind = getattr(blocking, name)

    assert inspect.isclass(kind)
    assert (kind.__module__, kind.__name__) == ("natsstream.blocking", name)


def test_connect_has_the_signature_of_the_async_one() -> None:
    assert inspect.signature(blocking.connect) == inspect.signature(natsstream.connect)


def test_generator_refuses_what_it_can_not_translate() -> None:
    # An awaitable that is no handler: the caller would have to write async code.
    generator = load_script()
    source = "def run(self, done: Awaitable[None]) -> None: ..."
    module = generator.load("natsstream._wire.attach")

    with pytest.raises(generator.NoRuleError, match=r"Worker\.run: Awaitable"):
        generator.write_function(generator.Types(), module, ast.parse(source).body[0], "Worker.run")


@pytest.mark.parametrize(
    ("annotation", "proxy"),
    [
        ("Callable[[bytes], Awaitable[None]]", "Callable[[bytes], None]"),
        ("Callable[[int], Awaitable[str]] | None", "Callable[[int], str] | None"),
    ],
)
def test_handler_that_is_awaited_is_a_plain_function_in_the_types(
    annotation: str, proxy: str
) -> None:
    generator = load_script()
    source = ast.parse(f"def run(self, handler: {annotation}) -> None: ...").body[0]
    module = generator.load("natsstream._wire.attach")

    made = generator.write_function(
        generator.Types(), module, source, "Worker.run", handlers=frozenset({"handler"})
    )

    assert ast.unparse(made.args.args[1].annotation) == proxy


def test_every_public_name_but_attach_is_there_in_the_types_and_at_run_time() -> None:
    named = stub_names()
    wanted = set(natsstream.__all__) - {"attach"}

    assert wanted - named == set()
    assert wanted - set(dir(blocking)) == set()
    for name in wanted - {"connect"} - stub_classes().keys():
        assert getattr(blocking, name) is getattr(natsstream, name)
    assert not hasattr(blocking, "attach")


def has_coroutines(kind: type[object]) -> bool:
    return any(
        inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member)
        for member in vars(kind).values()
    )


def stub_names() -> set[str]:
    """Return what the types define, and what they import to be imported from there."""
    tree = ast.parse(STUB.read_text())
    aliases = [
        each for node in tree.body if isinstance(node, ast.ImportFrom) for each in node.names
    ]
    defined = {n.name for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef)}
    return defined | {each.name for each in aliases if each.name == each.asname}


def members(node: ast.ClassDef) -> set[str]:
    return {each.name for each in node.body if isinstance(each, ast.FunctionDef)}


def load_script() -> ModuleType:
    loader = SourceFileLoader("generate_blocking_types", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[loader.name] = module
    loader.exec_module(module)
    return module
