"""In which line a key stands, for every way in which TOML lets one write it."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.daemon.config_lines import KeyPath, key_lines, line_of

TEXT = '''\
# a comment with lease.grace = 1
[access]
enabled = true   # [limits]

[lease]
note = """
[limits]
maxWaits = 1
"""
min_seconds = 1
list = [
  1,
  # grace_seconds = 2
  2,
]
grace_seconds = 3

[apps."org.example.App"]
name = "a.b = 1"
'literal.key' = 1
[apps]
"org.example.Other" = { name = "x", inner = { deep = 1 } }
org.dotted.key = 1
[[list]]
one = 1
[[list]]
two = 2
[ autoquit . apps . "\\u0061" ]
idle_minutes = 1'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("access",), 2),
        (("access", "enabled"), 3),
        (("lease", "note"), 6),
        (("lease", "min_seconds"), 10),
        (("lease", "list"), 11),
        (("lease", "grace_seconds"), 16),
        (("apps", "org.example.App"), 18),
        (("apps", "org.example.App", "name"), 19),
        (("apps", "org.example.App", "literal.key"), 20),
        (("apps", "org.example.Other", "name"), 22),
        (("apps", "org.example.Other", "inner", "deep"), 22),
        (("apps", "org"), 23),
        (("apps", "org", "dotted", "key"), 23),
        (("list",), 24),
        (("list", "one"), 25),
        (("list", "two"), 27),
        (("autoquit", "apps", "a", "idle_minutes"), 29),
    ],
)
def test_a_key_is_found_in_its_line(path: KeyPath, line: int) -> None:
    assert key_lines(TEXT)[path] == line


def test_a_missing_key_is_looked_for_in_its_table() -> None:
    assert line_of(("apps", "org.example.App", "executable"), TEXT) == 18
    assert line_of(("access", "enabled"), TEXT) == 3
    assert line_of(("nowhere",), TEXT) is None


def test_what_only_looks_like_a_key_is_none() -> None:
    lines = key_lines(TEXT)
    assert ("limits",) not in lines
    assert ("lease", "maxWaits") not in lines


@pytest.mark.parametrize("break_", ["\n", "\r\n"])
def test_either_line_break_counts_once_and_nothing_else_does(break_: str) -> None:
    assert key_lines(break_.join(['a = "\u2028\u0085"', "", "b = 1"]))[("b",)] == 3


def test_an_empty_text_has_no_keys() -> None:
    assert key_lines("") == {}


KEYS = st.sampled_from(["a", "b-1", '"q.q"', "'l l'", '"\\""'])
VALUES = st.sampled_from(["1", '"[x]"', "[1,\n2]", '"""\n[y]\n"""', "'''\n'''", "{ c = 1 }"])


@given(
    st.lists(st.tuples(KEYS, VALUES, st.sampled_from(["", "\n", "# c\n"])), unique_by=lambda entry: entry[0])
)
def test_cutting_a_text_at_a_keys_line_leaves_a_text_without_it(entries: list[tuple[str, str, str]]) -> None:
    text = "".join(f"{key} = {value}\n{gap}" for key, value, gap in entries)
    found = key_lines(text)
    assert {path[0] for path in found} == set(tomllib.loads(text))
    for path, line in found.items():
        before = tomllib.loads("\n".join(text.split("\n")[: line - 1]))
        assert path[0] not in before
