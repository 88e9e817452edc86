"""The decoder against JSONTestSuite (fixtures/corpora/JSONTestSuite)."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocols.errors import ParseError
from protocols.strict_json import decode

SUITE = Path(__file__).parents[2] / "fixtures" / "corpora" / "JSONTestSuite" / "test_parsing"
DUPLICATE_NAMES = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}

pytestmark = pytest.mark.requirement("CP-6.3")


def samples(prefix: str) -> list[Path]:
    return sorted(SUITE.glob(f"{prefix}_*.json"))


def refused(sample: Path) -> bool:
    try:
        decode(sample.read_bytes())
    except ParseError:
        return True
    return False


def test_the_suite_is_whole() -> None:
    assert [len(samples(prefix)) for prefix in "yni"] == [95, 188, 35]


def test_everything_that_is_no_json_is_refused() -> None:
    assert [sample.name for sample in samples("n") if not refused(sample)] == []


def test_everything_that_is_json_is_taken_but_duplicate_names() -> None:
    assert {sample.name for sample in samples("y") if refused(sample)} == DUPLICATE_NAMES


def test_nothing_that_must_be_taken_is_flawed() -> None:
    taken = [sample for sample in samples("y") if sample.name not in DUPLICATE_NAMES]
    assert [sample.name for sample in taken if decode(sample.read_bytes()).flaw] == []


def test_what_is_left_open_is_refused_flawed_or_taken_but_never_fails() -> None:
    outcomes = {"refused": 0, "flawed": 0, "taken": 0}
    for sample in samples("i"):
        if refused(sample):
            outcomes["refused"] += 1
        else:
            outcomes["flawed" if decode(sample.read_bytes()).flaw else "taken"] += 1
    assert outcomes == {"refused": 15, "flawed": 18, "taken": 2}
