"""Values that a schema of ours accepts, and values that it just misses: drawn from the schema itself."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from protocols.json_values import JSON, JSONObject

_LETTERS = "ab\N{CAT FACE}"


def accepted(schema: Any) -> st.SearchStrategy[JSON]:
    """Values that the schema accepts, bounds included."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return st.one_of([_of_kind(kind, schema) for kind in kinds])


def accepted_object(schema: Any) -> st.SearchStrategy[JSONObject]:
    """Objects that the schema accepts: every required member, and some of the others."""
    members = {name: accepted(member) for name, member in schema["properties"].items()}
    required = {name: members.pop(name) for name in schema["required"]}
    return st.fixed_dictionaries(required, optional=members)


def _of_kind(kind: str, schema: Any) -> st.SearchStrategy[JSON]:
    if kind == "object":
        return accepted_object(schema)
    if kind == "array":
        low, high = schema["minItems"], schema["maxItems"]
        return st.lists(accepted(schema["items"]), min_size=low, max_size=high)
    if kind == "string":
        lengths = st.sampled_from([schema["minLength"], schema["minLength"] + 1, schema["maxLength"]])
        return st.builds(lambda length, letter: letter * length, lengths, st.sampled_from(_LETTERS))
    if kind == "integer":
        return _between(schema, st.integers(schema["minimum"], schema["maximum"]))
    if kind == "number":
        return _between(schema, st.floats(schema["minimum"], schema["maximum"]))
    return st.booleans() if kind == "boolean" else st.none()


def _between(schema: Any, inside: st.SearchStrategy[JSON]) -> st.SearchStrategy[JSON]:
    return st.sampled_from([schema["minimum"], schema["maximum"]]) | inside


def nearly(schema: Any, data: st.DataObject) -> JSONObject:
    """An object that the schema accepts but for one change somewhere, which it may accept as well."""
    value = data.draw(accepted_object(schema))
    return _changed_object(schema, value, data)


def _changed_object(schema: Any, value: JSONObject, data: st.DataObject) -> JSONObject:
    how = data.draw(st.sampled_from(["member", "member", "unknown", "missing"]))
    if how == "unknown" or not value:
        return {**value, data.draw(st.sampled_from(["source", "clientId", "style"])): "system"}
    name = data.draw(st.sampled_from(sorted(value)))
    if how == "missing":
        return {other: member for other, member in value.items() if other != name}
    return {**value, name: _changed(schema["properties"][name], value[name], data)}


def _changed(schema: Any, value: JSON, data: st.DataObject) -> JSON:
    if isinstance(value, dict):
        return _changed_object(schema, value, data)
    if isinstance(value, list):
        first: JSON = _changed(schema["items"], value[0], data)
        return data.draw(st.sampled_from([[], value[:1], value * 4, [first, *value[1:]]]))
    beyond: list[JSON] = [None, True, "", "x", [], {}, 0.5, -1, 2**40]
    if "maxLength" in schema:
        beyond += ["x" * (schema["maxLength"] + 1), "x" * (schema["minLength"] - 1)]
    if "maximum" in schema:
        beyond += [schema["maximum"] + 1, schema["minimum"] - 1]
    return data.draw(st.sampled_from(beyond))
