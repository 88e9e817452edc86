"""Character packs for tests: the published ones, and folders that a test may write to as it likes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from protocols.companion.capabilities import Catalog
from protocols.companion.catalog import CATALOG
from protocols.companion.packs import Manifest, add_pack, read_manifest

FOLDER = Path(__file__).parents[2] / "fixtures" / "characters"
PIP = FOLDER / "valid" / "pip"
BROKEN = FOLDER / "broken"
HOP = "vendor.org.example.hop"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><circle cx="4" cy="4" r="3"/></svg>'


def pip() -> dict[str, Any]:
    """The manifest of the published sample pack."""
    manifest: dict[str, Any] = json.loads((PIP / "character.json").read_text(encoding="utf-8"))
    return manifest


def parsed(manifest: dict[str, Any]) -> Manifest:
    return read_manifest(json.dumps(manifest).encode())


def catalog_with(*manifests: dict[str, Any]) -> Catalog:
    """The core's catalog with these packs."""
    catalog = CATALOG
    for manifest in manifests:
        catalog = add_pack(catalog, parsed(manifest))
    return catalog


def dot(number: int = 0, **members: Any) -> dict[str, Any]:
    """The manifest of a small pack; `members` are its character's."""
    character = {
        "id": f"dot-{number}",
        "name": f"Dot {number}",
        "capabilities": ["animation.play"],
        "expressions": {"neutral": {"pictures": ["dot.svg"]}},
        **members,
    }
    return {"formatVersion": 1, "characters": [character]}


def install(characters: Path, name: str, source: Path | dict[str, Any] = PIP) -> Path:
    """Put a pack into a folder of characters, as private as it has to be; a manifest comes with one picture."""
    folder = characters / name
    if isinstance(source, Path):
        shutil.copytree(source, folder)
    else:
        folder.mkdir(parents=True)
        (folder / "character.json").write_text(json.dumps(source))
        (folder / "dot.svg").write_bytes(SVG)
    for path in (characters, folder, *folder.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder
