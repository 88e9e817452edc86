"""Pictures of a pack are still drawings and nothing else (CP-1.4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.companion.pack_pictures import MAX_PICTURE_BYTES, MAX_PIXELS, check_picture
from protocols.companion.packs import BadPack
from tests.support.packs import PIP, SVG

pytestmark = pytest.mark.requirement("CP-1.4")


def svg(inside: str, attributes: str = "") -> bytes:
    return f'<svg xmlns="http://www.w3.org/2000/svg" {attributes}>{inside}</svg>'.encode()


def png(width: int, height: int) -> bytes:
    sides = width.to_bytes(4) + height.to_bytes(4)
    return b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + sides + b"\x08\x06\x00\x00\x00"


def is_taken(name: str, content: bytes) -> bool:
    try:
        check_picture(name, content)
    except BadPack:
        return False
    return True


def test_the_published_drawings_are_taken() -> None:
    drawings = sorted(PIP.glob("*.svg"))
    assert len(drawings) == 3
    for path in drawings:
        assert is_taken(path.name, path.read_bytes())


def test_gradients_of_the_drawings_own_and_comments_are_taken() -> None:
    gradient = '<defs><linearGradient id="g1"><stop offset="0"/></linearGradient></defs>'
    drawing = svg(gradient + '<path fill="url(#g1)" d="M0 0"/>')
    assert is_taken("a.svg", b'<?xml version="1.0"?><!-- mine -->' + drawing)


@pytest.mark.parametrize(
    "inside",
    [
        "<script>1</script>",
        "<style>*{}</style>",
        "<text>Approved</text>",
        "<title>Approve</title>",
        '<a href="#x"><path/></a>',
        '<image href="x.png"/>',
        '<use href="#x"/>',
        "<foreignObject/>",
        '<animate attributeName="x"/>',
        "<svg/>",
        '<path onclick="x"/>',
        '<path style="fill:red"/>',
        '<path class="x"/>',
        '<path fill="url(https://example.org/x)"/>',
        '<path fill="URL(x.svg#y)"/>',
        '<path fill="url(#a) url(x)"/>',
        '<path xmlns:xlink="http://www.w3.org/1999/xlink" xlink:href="#x"/>',
        '<path xmlns="http://www.w3.org/1999/xhtml"/>',
        '<path fill="&#92;75rl(x)"/>',
        "<?xml-stylesheet href='x'?>",
        "&unknown;",
        "<g>" * 40 + "</g>" * 40,
        "<path/>" * 5_000,
        "<g>",
    ],
)
def test_what_is_no_still_drawing_is_refused(inside: str) -> None:
    assert not is_taken("a.svg", svg(inside))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<",
        b'<html xmlns="http://www.w3.org/1999/xhtml"/>',
        b"<svg/>",
        b'<!DOCTYPE svg SYSTEM "x">' + SVG,
        b'<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + SVG,
        SVG + b"\xff",
        b'<?xml version="1.0" encoding="utf-16"?>' + SVG,
        SVG.decode().encode("utf-16"),
        SVG + b" " * MAX_PICTURE_BYTES,
    ],
)
def test_what_is_no_svg_document_is_refused(content: bytes) -> None:
    assert not is_taken("a.svg", content)


def test_a_png_has_a_sane_size_and_is_what_its_name_says() -> None:
    assert is_taken("a.png", png(64, 64))
    assert not is_taken("a.svg", png(64, 64))
    for content in (b"", SVG, png(0, 64), png(64, MAX_PIXELS + 1), png(64, 64)[:20]):
        assert not is_taken("a.png", content)


@given(st.binary(max_size=200) | st.binary(max_size=80).map(lambda junk: SVG[:60] + junk + SVG[60:]))
def test_whatever_the_bytes_are_the_answer_is_yes_or_no(content: bytes) -> None:
    is_taken("a.svg", content)
    is_taken("a.png", content)
