"""What an import of the client library costs, and what it leaves alone."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

from broker.client import aio, blocking

PACKAGES = ["broker.client", "broker.client.blocking", "broker.client.aio"]


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter has after a statement."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return set(ended.stdout.split())


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there(package: str) -> None:
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name).__name__ == name
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name  # noqa: B018


def test_both_flavours_have_the_same_names_which_take_the_same_arguments() -> None:
    assert blocking.__all__ == aio.__all__
    assert arguments(blocking.Companion) == arguments(aio.Companion)
    assert arguments(blocking.Progress) == arguments(aio.Progress)
    assert arguments(blocking.Holder) == arguments(aio.Holder)
    assert list(inspect.signature(blocking.lease).parameters) == list(inspect.signature(aio.lease).parameters)


def arguments(kind: type) -> dict[str, list[str]]:
    """The parameters of each public method that both flavours have."""
    methods = {name: member for name, member in vars(kind).items() if inspect.isfunction(member)}
    return {
        name: [str(one) for one in inspect.signature(member).parameters.values()]
        for name, member in methods.items()
        if not name.startswith("_") and name != "close"
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_package_imports_nothing_else(package: str) -> None:
    others = {name for name in loaded_by(f"import {package}") if name.startswith(("broker.", "protocols"))}
    assert others == {"broker.client", "broker.client.lazy", package}


def test_a_blocking_client_is_used_without_trio() -> None:
    names = "; ".join(f"blocking.{name}" for name in importlib.import_module(PACKAGES[1]).__all__)
    modules = loaded_by(f"from broker.client import blocking; {names}; import broker.client.blocking.control")
    assert "broker.client.blocking.client" in modules
    assert not {name for name in modules if name.split(".")[0] in ("trio", "keyring", "structlog", "asyncio")}
