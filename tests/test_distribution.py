"""What is installed is the three packages with their data, and nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from protocols.implementation import VERSION

ROOT = Path(__file__).parent.parent
PACKAGES = ("broker", "handlers", "protocols")
RUNTIME = {
    *("attrs", "cattrs", "click", "jsonschema", "keyring"),
    *("platformdirs", "psutil", "referencing", "structlog", "trio"),
}
CACHE = re.compile(r"__pycache__|/\.")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """The wheel, built by the real back end from the files of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (path,) = folder.iterdir()
    with zipfile.ZipFile(path) as archive:
        yield archive


def packaged_files() -> set[str]:
    """Every file of the three packages, less what Python and ruff keep there for themselves."""
    return {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.name != "ruff.toml" and not CACHE.search(str(path.relative_to(ROOT)))
    }


def test_the_wheel_holds_exactly_the_three_packages_and_their_data(wheel: zipfile.ZipFile) -> None:
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == packaged_files()


def test_every_package_says_that_it_is_typed(wheel: zipfile.ZipFile) -> None:
    assert {f"{package}/py.typed" for package in PACKAGES} <= set(wheel.namelist())


def test_the_wheel_brings_the_licence_and_the_command(wheel: zipfile.ZipFile) -> None:
    info = "companion_broker-0.1.0.dist-info"
    assert {f"{info}/licenses/LICENSE", f"{info}/entry_points.txt"} <= set(wheel.namelist())
    assert "companion = broker.cli.main:main" in wheel.read(f"{info}/entry_points.txt").decode()


def test_the_bare_broker_needs_no_tool_and_no_screen(wheel: zipfile.ZipFile) -> None:
    metadata = Parser().parsestr(wheel.read("companion_broker-0.1.0.dist-info/METADATA").decode())
    needed = [Requirement(line) for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert {one.name for one in needed} == RUNTIME


def test_the_distribution_has_the_version_that_the_implementation_tells(wheel: zipfile.ZipFile) -> None:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    assert Parser().parsestr(wheel.read(name).decode())["Version"] == VERSION
