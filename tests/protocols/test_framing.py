"""wire.md, frame and size: lines out of bytes, in any fragmentation, within the limit."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.errors import FrameTooLong, OurError
from protocols.framing import FrameSplitter, frame

LIMIT = 20
lines = st.binary(min_size=1, max_size=LIMIT).filter(lambda line: line.strip(b" \t\r") and b"\n" not in line)
breaks = st.sampled_from([b"\n", b"\r\n", b"\n\n", b"\n\r\n \t\r\n"])


def split(*chunks: bytes, limit: int = LIMIT, ended: bool = True) -> list[bytes]:
    """All frames of a stream that arrives in these chunks."""
    splitter = FrameSplitter(limit)
    frames = []
    for chunk in chunks:
        splitter.feed(chunk)
        frames += drain(splitter)
    if ended:
        splitter.finish()
    return frames + drain(splitter)


def drain(splitter: FrameSplitter) -> list[bytes]:
    return list(iter(splitter.next_frame, None))


@given(st.lists(st.tuples(lines.filter(lambda line: not line.endswith(b"\r")), breaks)), st.data())
@pytest.mark.requirement("G02")
def test_fragmentation_changes_nothing(written: list[tuple[bytes, bytes]], data: st.DataObject) -> None:
    stream = b"".join(line + end for line, end in written)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert split(*chunks) == [line for line, _ in written]


@pytest.mark.requirement("G02")
def test_a_character_cut_in_two_stays_whole() -> None:
    payload = '{"prompt":"猫🐈‍⬛ né?"}'.encode()
    assert split(*(bytes([byte]) for byte in frame(payload)), limit=99) == [payload]


@pytest.mark.requirement("G02")
def test_one_write_may_hold_several_lines_and_a_part() -> None:
    assert split(b"one\ntwo\r\nthr", ended=False) == [b"one", b"two"]


@pytest.mark.requirement("G04")
def test_unterminated_bytes_at_the_end_are_a_line() -> None:
    assert split(b"one\ntw", b"o") == [b"one", b"two"]
    assert split(b"one\n  ") == [b"one"]


def test_blank_lines_are_no_frames() -> None:
    assert split(b"\n\r\n \t\r\none\n\n\n") == [b"one"]


def test_only_one_carriage_return_belongs_to_the_line_break() -> None:
    assert split(b"a\r\r\n") == [b"a\r"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
@pytest.mark.requirement("G03")
def test_the_line_break_is_not_counted(end: bytes) -> None:
    assert split(b"x" * LIMIT + end) == [b"x" * LIMIT]
    with pytest.raises(FrameTooLong):
        split(b"x" * (LIMIT + 1) + end)


@pytest.mark.requirement("G03")
def test_a_line_is_too_long_as_soon_as_that_is_known() -> None:
    splitter = FrameSplitter(4)
    splitter.feed(b"1234\r")
    assert splitter.next_frame() is None  # the line break may have begun
    splitter.feed(b"5")
    for _ in range(2):
        with pytest.raises(FrameTooLong) as caught:
            splitter.next_frame()
        assert caught.value.limit_bytes == 4


@pytest.mark.requirement("G03")
def test_lines_before_the_long_one_are_still_given() -> None:
    splitter = FrameSplitter(4)
    splitter.feed(b"one\nfar too long\ntwo\n")
    assert splitter.next_frame() == b"one"
    with pytest.raises(FrameTooLong):
        splitter.next_frame()


@pytest.mark.requirement("CP-5.7")
def test_the_limit_may_rise_between_two_frames_of_one_write() -> None:
    splitter = FrameSplitter(5)
    splitter.feed(b"hello\nlonger than five\n")
    assert splitter.next_frame() == b"hello"
    splitter.limit = 99
    assert splitter.next_frame() == b"longer than five"


def test_nothing_comes_after_the_end() -> None:
    splitter = FrameSplitter(5)
    splitter.finish()
    with pytest.raises(OurError):
        splitter.feed(b"x")


def test_a_long_line_byte_by_byte_takes_linear_time() -> None:
    def seconds(size: int) -> float:
        splitter = FrameSplitter(size)
        started = time.process_time()
        for _ in range(size):
            splitter.feed(b"x")
            splitter.next_frame()
        return time.process_time() - started

    fast = min(seconds(20_000) for _ in range(3))
    assert min(seconds(160_000) for _ in range(2)) < 3 * 8 * fast  # quadratic time would be 64 times as long
