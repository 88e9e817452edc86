"""What the checkout must not hold: package hosts, paths of a machine, files that grew too long.

The forbidden names are put together from parts, so that this file does not hold them either.
"""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LONGEST = 400  # lines
MAY_BE_LONG = ("tests/", "fixtures/", "docs/")

PACKAGE_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("yarnpkg", "com"),
        ("debian", "org"),
        ("crates", "io"),
        ("golang", "org"),
        ("rubygems", "org"),
        ("maven", "org"),
    )
]
# This checkout's own place and home, and where build machines usually keep theirs.
MACHINE_PLACES = {str(ROOT), str(Path.home()), "/" + "root", "/" + "work", "/" + "builds"}


def tracked_files() -> list[Path]:
    """Files that git tracks, or would with the next `git add`; deleted ones left out."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout: nothing says which files are tracked")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def files_that_match(pattern: str) -> list[str]:
    expression = re.compile(pattern.encode(), re.IGNORECASE)
    return [str(path.relative_to(ROOT)) for path in tracked_files() if expression.search(path.read_bytes())]


def test_no_file_names_the_host_of_a_package_registry() -> None:
    assert files_that_match("|".join(map(re.escape, PACKAGE_HOSTS))) == []


def test_no_file_holds_a_path_of_a_machine() -> None:
    places = "|".join(re.escape(place) for place in MACHINE_PLACES if place != "/")
    assert files_that_match(rf"(?<![\w.~-])(?:{places})/") == []


def test_no_file_outgrew_its_one_idea() -> None:
    sources = [path for path in tracked_files() if not str(path.relative_to(ROOT)).startswith(MAY_BE_LONG)]
    lengths = {str(path.relative_to(ROOT)): path.read_bytes().count(b"\n") for path in sources}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}


def test_ci_can_be_run() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_every_named_dependency_is_pinned_within_its_range() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = map(Requirement, project["dependencies"] + project["optional-dependencies"]["dev"])
    pinned = map(Requirement, (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines())
    pins = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pinned}
    assert [
        str(one) for one in named if not one.specifier.contains(pins.get(canonicalize_name(one.name), "0"))
    ] == []
