"""Folders of character packs: what is broken is left out and named, and the rest works."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.packs import MAX_PACK_BYTES, load_packs
from protocols.companion.catalog import CATALOG
from protocols.companion.pack_pictures import MAX_PICTURE_BYTES
from protocols.companion.packs import MANIFEST, MAX_MANIFEST_BYTES, MAX_PACKS, SkippedPack
from tests.support.packs import BROKEN, FOLDER, SVG, dot, install


@pytest.fixture
def characters(tmp_path: Path) -> Path:
    folder = tmp_path / "characters"
    folder.mkdir(mode=0o755)
    return folder


def skipped(characters: Path) -> dict[str, str]:
    """Which packs are skipped, and why."""
    return {pack.name: pack.reason for pack in load_packs(characters).skipped}


def test_without_a_folder_there_is_what_is_built_in(tmp_path: Path, characters: Path) -> None:
    for folder in (None, tmp_path / "nowhere", characters):
        packs = load_packs(folder)
        assert (packs.catalog, packs.loaded, packs.skipped) == (CATALOG, (), ())


@pytest.mark.requirement("CP-2.15")
def test_the_published_packs_are_taken_in(characters: Path) -> None:
    published = sorted((FOLDER / "valid").iterdir())
    for source in published:
        install(characters, source.name, source)
    packs = load_packs(characters)
    assert packs.loaded == tuple(source.name for source in published)
    assert packs.skipped == ()
    assert "pip" in packs.catalog.characters


@pytest.mark.requirement("CP-7.3")
def test_of_the_published_broken_ones_none_is_taken_in_and_the_rest_works(characters: Path) -> None:
    published = sorted(BROKEN.iterdir())
    for source in published:
        install(characters, source.name, source)
    install(characters, "pip")
    packs = load_packs(characters)
    assert packs.loaded == ("pip",)
    assert [pack.name for pack in packs.skipped] == [source.name for source in published]
    assert all(pack.reason and str(characters) not in pack.reason for pack in packs.skipped)


def test_what_is_no_pack_is_named_and_hidden_files_are_passed_over(characters: Path) -> None:
    (characters / ".DS_Store").write_bytes(b"")
    (characters / "pip.zip").write_bytes(b"")
    (characters / "empty").mkdir()
    assert skipped(characters) == {
        "pip.zip": "is not a folder",
        "empty": f"{MANIFEST}: cannot be read: No such file or directory",
    }


def a_link(pack: Path) -> None:
    (pack / "dot.svg").rename(pack.parent.parent / "dot.svg")
    (pack / "dot.svg").symlink_to(pack.parent.parent / "dot.svg")


def a_manifest_that_is_a_link(pack: Path) -> None:
    (pack / MANIFEST).rename(pack.parent.parent / MANIFEST)
    (pack / MANIFEST).symlink_to(pack.parent.parent / MANIFEST)


def a_fifo(pack: Path) -> None:
    (pack / "dot.svg").unlink()
    os.mkfifo(pack / "dot.svg", 0o600)


def a_folder_as_picture(pack: Path) -> None:
    (pack / "dot.svg").unlink()
    (pack / "dot.svg").mkdir()


def an_open_picture(pack: Path) -> None:
    (pack / "dot.svg").chmod(0o666)


def an_open_manifest(pack: Path) -> None:
    (pack / MANIFEST).chmod(0o664)


def an_open_folder(pack: Path) -> None:
    pack.chmod(0o777)


def a_long_picture(pack: Path) -> None:
    (pack / "dot.svg").write_bytes(SVG + b" " * MAX_PICTURE_BYTES)


def a_long_manifest(pack: Path) -> None:
    with (pack / MANIFEST).open("ab") as file:
        file.write(b" " * MAX_MANIFEST_BYTES)


def a_pack_that_is_a_link(pack: Path) -> None:
    elsewhere = pack.rename(pack.parent.parent / "elsewhere")
    pack.symlink_to(elsewhere)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (a_link, "dot.svg: is a link"),
        (a_manifest_that_is_a_link, f"{MANIFEST}: is a link"),
        (a_fifo, "dot.svg: is not a regular file"),
        (a_folder_as_picture, "dot.svg: is not a regular file"),
        (an_open_picture, "dot.svg: is open to other users (mode 0666)"),
        (an_open_manifest, f"{MANIFEST}: is open to other users (mode 0664)"),
        (an_open_folder, "is open to other users (mode 0777)"),
        (a_long_picture, f"dot.svg: is longer than {MAX_PICTURE_BYTES} bytes"),
        (a_long_manifest, f"{MANIFEST}: is longer than {MAX_MANIFEST_BYTES} bytes"),
        (a_pack_that_is_a_link, "is not a folder"),
    ],
)
@pytest.mark.requirement("CP-1.4")
def test_only_the_users_own_plain_files_within_bounds_are_read(
    characters: Path, spoil: Callable[[Path], None], reason: str
) -> None:
    spoil(install(characters, "bad", dot(1)))
    install(characters, "good", dot(2))
    packs = load_packs(characters)
    assert packs.skipped == (SkippedPack("bad", reason),)
    assert packs.loaded == ("good",)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give folders away")
def test_a_pack_of_another_user_is_not_read(characters: Path) -> None:
    os.chown(install(characters, "bad", dot()), 65534, 65534)
    assert skipped(characters) == {"bad": "belongs to another user"}


def test_a_folder_that_anybody_may_write_to_gives_nothing(characters: Path) -> None:
    install(characters, "pip")
    characters.chmod(0o777)
    packs = load_packs(characters)
    assert packs.catalog is CATALOG
    assert packs.skipped == (SkippedPack("characters", "is open to other users (mode 0777)"),)


def test_the_pictures_of_a_pack_are_bounded_together(characters: Path) -> None:
    count = MAX_PACK_BYTES // MAX_PICTURE_BYTES + 1
    names = [f"p{number}.svg" for number in range(count)]
    pack = install(characters, "big", dot(expressions={"neutral": {"pictures": names}}))
    for name in names:
        (pack / name).write_bytes(SVG + b" " * (MAX_PICTURE_BYTES - len(SVG)))
    assert skipped(characters) == {"big": "the pictures are too long"}


def test_the_number_of_packs_and_of_what_is_looked_at_is_bounded(characters: Path) -> None:
    for number in range(MAX_PACKS + 1):
        install(characters, f"pack-{number:02}", dot(number))
    assert skipped(characters) == {f"pack-{MAX_PACKS}": "too many packs"}
    for number in range(100):
        (characters / f"x-{number:03}").mkdir()
    told = load_packs(characters)
    assert len(told.loaded) == MAX_PACKS
    assert told.skipped[-1].name == "characters"
    assert len(told.skipped) < 64


def test_of_two_packs_with_one_name_the_first_folder_wins(characters: Path) -> None:
    install(characters, "b")
    install(characters, "a")
    packs = load_packs(characters)
    assert packs.loaded == ("a",)
    assert packs.skipped == (SkippedPack("b", "capabilities.0.id: is taken"),)


@pytest.mark.requirement("CP-4.10")
def test_a_folders_name_is_told_so_that_it_can_be_read(characters: Path) -> None:
    for name in ("a\u202eb", "x" * 200, os.fsdecode(b"\xff")):
        (characters / name).mkdir()
    assert {*skipped(characters)} == {"a<U+202E>b", "x" * 64, "?"}
