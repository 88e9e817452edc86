"""Which pictures of a pack are harmless: still drawings that hold no script, no link and nothing that is fetched.

An SVG file may only use the elements and attributes below, PNG files have sane dimensions.  What a presenter makes of
them is its own affair; this keeps what is no drawing away from it.
"""

from __future__ import annotations

import re
from xml.parsers import expat

from protocols.companion.packs import BadPack

MAX_PICTURE_BYTES = 262_144
MAX_PIXELS = 4_096
"""On either side."""
_MAX_DEPTH = 32
_MAX_ELEMENTS = 4_096

_SVG = "http://www.w3.org/2000/svg"
_SHAPES = "path circle ellipse line polyline polygon rect"
_PAINTS = "linearGradient radialGradient stop"
_ELEMENTS = frozenset(f"svg g defs {_SHAPES} {_PAINTS}".split())
_GEOMETRY = "x y x1 y1 x2 y2 cx cy r rx ry fx fy d points transform width height viewBox preserveAspectRatio"
_STROKE = "dasharray dashoffset linecap linejoin miterlimit opacity width"
_GRADIENT = "offset stop-color stop-opacity gradientUnits gradientTransform spreadMethod"
_ATTRIBUTES = frozenset(
    [
        *f"id version opacity fill fill-opacity fill-rule stroke {_GEOMETRY} {_GRADIENT}".split(),
        *(f"stroke-{name}" for name in _STROKE.split()),
    ]
)
_VALUE = re.compile(r"(?!.*url\()[^\\&<]*|url\(#[A-Za-z0-9_-]+\)", re.DOTALL | re.IGNORECASE)
_PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"


def check_picture(name: str, content: bytes) -> None:
    """Raise BadPack unless the content is a harmless picture of the kind that the name's ending says."""
    if len(content) > MAX_PICTURE_BYTES:
        raise BadPack(f"{name}: too long")
    if name.endswith(".png"):
        _check_png(name, content)
    else:
        _check_svg(name, content)


def _check_png(name: str, content: bytes) -> None:
    sides = [int.from_bytes(content[at : at + 4]) for at in (16, 20)]
    if not content.startswith(_PNG) or not all(1 <= side <= MAX_PIXELS for side in sides):
        raise BadPack(f"{name}: not a PNG picture of a sane size")


def _check_svg(name: str, content: bytes) -> None:
    drawing = _Drawing(name)
    parser = expat.ParserCreate("utf-8", namespace_separator=" ")
    parser.StartElementHandler = drawing.start
    parser.EndElementHandler = drawing.end
    parser.StartDoctypeDeclHandler = drawing.refuse
    parser.ProcessingInstructionHandler = drawing.refuse
    parser.XmlDeclHandler = drawing.declare
    try:
        content.decode()  # expat would follow a byte order mark into another encoding
        parser.Parse(content, True)
    except (expat.ExpatError, UnicodeDecodeError):
        raise BadPack(f"{name}: not XML in UTF-8") from None


class _Drawing:
    """The elements as they come."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._depth = 0
        self._elements = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        namespace, _, element = tag.rpartition(" ")
        is_root = self._elements == 1
        if namespace != _SVG or element not in _ELEMENTS or is_root != (element == "svg"):
            raise BadPack(f"{self._name}: an element that is no part of a still drawing")
        if self._depth > _MAX_DEPTH or self._elements > _MAX_ELEMENTS:
            raise BadPack(f"{self._name}: too many elements")
        for attribute, value in attributes.items():
            if attribute not in _ATTRIBUTES or not _VALUE.fullmatch(value):
                raise BadPack(f"{self._name}: an attribute that is no part of a still drawing")

    def end(self, tag: str) -> None:
        self._depth -= 1

    def declare(self, version: str, encoding: str | None, standalone: int) -> None:
        if encoding is not None and encoding.lower() != "utf-8":  # another reader might believe it
            raise BadPack(f"{self._name}: not XML in UTF-8")

    def refuse(self, *_: object) -> None:
        raise BadPack(f"{self._name}: a declaration or instruction")
