"""The three packages come from one place, or nothing starts."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from broker.origin import OriginMismatch, check_origin


def package(name: str, folder: Path | None) -> ModuleType:
    """A package as `import` leaves it: with a file, or as a stray folder without one."""
    module = ModuleType(name)
    module.__file__ = str(folder / name / "__init__.py") if folder else None
    return module


def test_our_own_packages_come_from_one_place() -> None:
    check_origin()


def test_a_package_from_another_place_is_named(tmp_path: Path) -> None:
    home = package("broker", tmp_path / "ours")
    ours = package("protocols", tmp_path / "ours")
    foreign = package("handlers", tmp_path / "theirs")
    with pytest.raises(OriginMismatch) as caught:
        check_origin(home, [foreign, ours])
    assert caught.value.strangers == ("handlers",)


def test_a_stray_folder_without_code_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OriginMismatch):
        check_origin(package("broker", tmp_path), [package("handlers", None)])


def test_two_stray_folders_are_not_one_place() -> None:
    with pytest.raises(OriginMismatch):
        check_origin(package("broker", None), [package("handlers", None)])


def test_the_same_place_by_another_name_is_the_same_place(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    check_origin(package("broker", tmp_path / "real"), [package("handlers", tmp_path / "link")])


def test_the_error_holds_no_path(tmp_path: Path) -> None:
    with pytest.raises(OriginMismatch) as caught:
        check_origin(package("broker", tmp_path), [package("handlers", tmp_path / "elsewhere")])
    assert str(tmp_path) not in str(caught.value)
