"""How this implementation names itself, on both sides of every socket (CP-7.1: not the protocol's version)."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
