"""The character packs in the owner's configuration folder: one folder a pack (`protocols.companion.packs`).

    characters/NAME/character.json
    characters/NAME/*.svg, *.png

They are read once, at a start, in the order of their names.  A pack that is broken is left out and reported, and
everything else works.  Whoever can write them decides what the person sees, so they are checked like a configuration:
regular files and folders of the user's, no links, not writable by others, all within bounds.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import attrs

from broker.private_files import (
    WRITABLE_BY_OTHERS,
    NotPrivate,
    check_owner_and_mode,
    read_private_file,
)
from protocols.companion.capabilities import Catalog
from protocols.companion.catalog import CATALOG
from protocols.companion.pack_pictures import MAX_PICTURE_BYTES, check_picture
from protocols.companion.packs import (
    MANIFEST,
    MAX_MANIFEST_BYTES,
    MAX_PACKS,
    BadPack,
    Manifest,
    SkippedPack,
    add_pack,
    read_manifest,
)
from protocols.text import neutralize

MAX_PACK_BYTES = 1_048_576
"""Of all pictures of one pack together."""
_MAX_ENTRIES = 64
"""How many things in the folder are looked at."""
_MAX_NAME = 64


@attrs.frozen
class Packs:
    """What can be asked for with the packs, the names of their folders, and which could not be taken in."""

    catalog: Catalog = CATALOG
    loaded: tuple[str, ...] = ()
    skipped: tuple[SkippedPack, ...] = ()


def load_packs(folder: Path | None) -> Packs:
    """Every pack in the folder; None or a folder that is not there: none.  Raises nothing."""
    if folder is None:
        return Packs()
    try:
        _check_folder(folder)
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except FileNotFoundError:
        return Packs()
    except (OSError, NotPrivate) as error:
        return Packs(skipped=(SkippedPack(folder.name, _reason(error)),))
    packs = Packs()
    for name in names[:_MAX_ENTRIES]:
        packs = _with(packs, folder / name)
    if len(names) > _MAX_ENTRIES:
        rest = SkippedPack(folder.name, "holds too many entries, the last ones were not looked at")
        packs = attrs.evolve(packs, skipped=(*packs.skipped, rest))
    return packs


def _with(packs: Packs, folder: Path) -> Packs:
    try:
        if len(packs.loaded) == MAX_PACKS:
            raise BadPack("too many packs")
        catalog = add_pack(packs.catalog, _read(folder))
    except (BadPack, OSError, NotPrivate) as error:
        skipped = SkippedPack(_shown_name(folder.name), _reason(error))
        return attrs.evolve(packs, skipped=(*packs.skipped, skipped))
    return Packs(catalog, (*packs.loaded, _shown_name(folder.name)), packs.skipped)


def _read(folder: Path) -> Manifest:
    """The manifest of a pack whose pictures are all there and harmless."""
    _check_folder(folder)
    manifest = read_manifest(_file(folder, MANIFEST, MAX_MANIFEST_BYTES))
    left = MAX_PACK_BYTES
    for name in manifest.pictures:
        content = _file(folder, name, MAX_PICTURE_BYTES)
        check_picture(name, content)
        left -= len(content)
        if left < 0:
            raise BadPack("the pictures are too long")
    return manifest


def _check_folder(folder: Path) -> None:
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise NotPrivate("is not a folder")
    check_owner_and_mode(info, WRITABLE_BY_OTHERS)


def _file(folder: Path, name: str, max_bytes: int) -> bytes:
    try:
        return read_private_file(folder / name, WRITABLE_BY_OTHERS, max_bytes)
    except NotPrivate as error:
        raise BadPack(f"{name}: {error}") from None
    except OSError as error:
        raise BadPack(f"{name}: {_reason(error)}") from None


def _shown_name(name: str) -> str:
    """The name of a folder as it may stand in a log: readable and short."""
    return neutralize(name.encode(errors="replace").decode(), multiline=False)[:_MAX_NAME]


def _reason(error: Exception) -> str:
    """Why, without a path."""
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    return str(error)
