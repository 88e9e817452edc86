"""JSON values for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from protocols.json_values import JSON
from protocols.strict_json import MAX_INTEGER, MIN_INTEGER

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
integers = st.integers(MIN_INTEGER, MAX_INTEGER)
numbers = st.floats(allow_nan=False, allow_infinity=False)
scalars: st.SearchStrategy[JSON] = st.none() | st.booleans() | integers | numbers | texts


def containers(items: st.SearchStrategy[JSON]) -> st.SearchStrategy[JSON]:
    """An array or an object of the items."""
    return st.lists(items, max_size=4) | st.dictionaries(texts, items, max_size=4)


json_values: st.SearchStrategy[JSON] = st.recursive(scalars, containers, max_leaves=12)
json_objects = st.dictionaries(texts, json_values, max_size=4)
