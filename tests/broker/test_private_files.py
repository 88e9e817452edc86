"""Folders and files that are the user's alone: what is refused, and that a write is all or nothing."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from broker.daemon.errors import StartRefused
from broker.daemon.runtime_dir import private_folder
from broker.private_files import (
    WRITABLE_BY_OTHERS,
    NotPrivate,
    make_private_directory,
    read_private_file,
    write_private_file,
)

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
NOBODY = 65534


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.requirement("CP-5.7")
def test_a_folder_is_made_closed_to_others_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        make_private_directory(tmp_path / "a" / "b")
    finally:
        os.umask(old)
    assert mode(tmp_path / "a" / "b") == 0o700
    make_private_directory(tmp_path / "a")  # as a state folder whose run/ was made first


def test_a_private_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    make_private_directory(tmp_path / "a")
    (tmp_path / "a" / "kept").touch()
    make_private_directory(tmp_path / "a")
    assert (tmp_path / "a" / "kept").exists()


@pytest.mark.requirement("CP-5.7")
@pytest.mark.parametrize("open_mode", [0o701, 0o710, 0o704, 0o770, 0o755, 0o777])
def test_a_folder_with_any_bit_for_others_is_refused_and_left_alone(tmp_path: Path, open_mode: int) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    folder.chmod(open_mode)
    with pytest.raises(NotPrivate, match=f"open to other users .mode 0{open_mode:o}"):
        make_private_directory(folder)
    assert mode(folder) == open_mode


def test_a_folder_that_its_owner_cannot_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o500)
    with pytest.raises(NotPrivate, match="cannot be used"):
        make_private_directory(tmp_path / "a")


@pytest.mark.parametrize("target", ["there", "nowhere"])
def test_a_link_is_refused_even_to_a_private_folder(tmp_path: Path, target: str) -> None:
    (tmp_path / "there").mkdir(mode=0o700)
    (tmp_path / "a").symlink_to(tmp_path / target)
    with pytest.raises(NotPrivate, match="link"):
        make_private_directory(tmp_path / "a")


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("kept", encoding="ascii")
    with pytest.raises(NotPrivate, match="not a directory"):
        make_private_directory(tmp_path / "a")
    assert (tmp_path / "a").read_text(encoding="ascii") == "kept"


@root_only
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o700)
    os.chown(tmp_path / "a", NOBODY, NOBODY)
    with pytest.raises(NotPrivate, match="another user"):
        make_private_directory(tmp_path / "a")


def test_the_parents_are_not_checked(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    make_private_directory(tmp_path / "a")


@pytest.mark.parametrize("name", ["link", "file/below"])
def test_a_refused_start_names_the_setting_and_no_path(tmp_path: Path, name: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(StartRefused, match="COMPANION_STATE_DIR: the folder") as refused:
        private_folder(tmp_path / name, "COMPANION_STATE_DIR")
    assert "/" not in str(refused.value)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    write_private_file(tmp_path / "f", b"one")
    write_private_file(tmp_path / "f", b"two")
    assert read_private_file(tmp_path / "f") == b"two"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


@pytest.mark.requirement("CP-5.2")
def test_a_file_is_written_for_its_owner_only_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        write_private_file(tmp_path / "f", b"x")
    finally:
        os.umask(old)
    assert mode(tmp_path / "f") == 0o600


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_private_file(tmp_path / "f", b"old")

    def full(fd: int) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_private_file(tmp_path / "f", b"new")
    assert read_private_file(tmp_path / "f") == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_the_file_is_on_disk_before_its_name_and_the_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    real_fsync, real_replace = os.fsync, os.replace

    def fsync(fd: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")
        real_fsync(fd)

    def replace(source: Path, target: Path) -> None:
        done.append("rename")
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    write_private_file(tmp_path / "f", b"x")
    assert done == ["file", "rename", "folder"]


def test_a_link_in_the_files_place_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("kept", encoding="ascii")
    (tmp_path / "f").symlink_to(tmp_path / "other")
    write_private_file(tmp_path / "f", b"x")
    assert (tmp_path / "other").read_text(encoding="ascii") == "kept"
    assert not (tmp_path / "f").is_symlink()


def test_a_link_is_not_read(tmp_path: Path) -> None:
    write_private_file(tmp_path / "other", b"x")
    (tmp_path / "f").symlink_to(tmp_path / "other")
    with pytest.raises(NotPrivate, match="link"):
        read_private_file(tmp_path / "f")


@pytest.mark.parametrize("open_mode", [0o640, 0o604, 0o620, 0o666, 0o601])
def test_a_file_with_any_bit_for_others_is_not_read(tmp_path: Path, open_mode: int) -> None:
    write_private_file(tmp_path / "f", b"x")
    (tmp_path / "f").chmod(open_mode)
    with pytest.raises(NotPrivate, match="open to other users"):
        read_private_file(tmp_path / "f")


@pytest.mark.parametrize(("open_mode", "fine"), [(0o644, True), (0o664, False), (0o646, False)])
def test_a_file_may_be_readable_where_only_writing_is_forbidden(
    tmp_path: Path, open_mode: int, fine: bool
) -> None:
    write_private_file(tmp_path / "f", b"x")
    (tmp_path / "f").chmod(open_mode)
    try:
        assert read_private_file(tmp_path / "f", WRITABLE_BY_OTHERS) == b"x"
        assert fine
    except NotPrivate:
        assert not fine


@root_only
def test_a_file_of_another_user_is_not_read(tmp_path: Path) -> None:
    write_private_file(tmp_path / "f", b"x")
    os.chown(tmp_path / "f", NOBODY, NOBODY)
    with pytest.raises(NotPrivate, match="another user"):
        read_private_file(tmp_path / "f")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_only_a_regular_file_is_read_and_nothing_is_waited_for(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "f", 0o600)
    with pytest.raises(NotPrivate, match="regular"):
        read_private_file(tmp_path / "f")


def test_a_file_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    write_private_file(tmp_path / "f", b"12345")
    assert read_private_file(tmp_path / "f", max_bytes=5) == b"12345"
    with pytest.raises(NotPrivate, match="longer than 4 bytes"):
        read_private_file(tmp_path / "f", max_bytes=4)


def test_a_file_that_is_not_there_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_private_file(tmp_path / "f")
