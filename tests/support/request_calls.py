"""A call of every companion method that names a request, made from the table of methods.

A method that joins the table joins `CALLS`: whatever its params declare is made from their schema, and `TELLING`
adds calls that an owner would be answered differently.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import attrs

from protocols.companion.methods import METHODS
from protocols.json_values import JSON, JSONObject
from protocols.structure import json_schema

NEVER = "0" * 32
"""As long as an id of a request, and never one."""

METHODS_OF_A_REQUEST = tuple(
    name
    for name, method in METHODS.items()
    if "request_id" in {field.name for field in attrs.fields(method.params)}
)

TELLING: dict[str, list[JSONObject]] = {
    "requests.wait": [
        {"afterRevision": 0, "waitMs": 60_000},
        {"afterRevision": 1, "waitMs": 60_000},
        {"afterRevision": 99, "waitMs": 0},
        {"afterRevision": 0, "waitMs": 60_001},
    ],
    "requests.update": [
        {"expectedRevision": 1, "params": {"fraction": 0.5}},
        {"expectedRevision": 99, "params": {"title": "no such field"}},
    ],
}


def line(method: str, params: JSONObject) -> bytes:
    """The call as a line; every one has the same id."""
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).encode() + b"\n"


def _smallest(schema: Any) -> JSON:
    """A value that the schema accepts, with as little in it as can be."""
    least: dict[str, JSON] = {
        "array": [_smallest(schema["items"]) for _ in range(schema.get("minItems", 0))],
        "integer": schema.get("minimum", 0),
        "number": schema.get("minimum", 0),
        "string": schema.get("enum", ["x" * schema.get("minLength", 0)])[0],
        "boolean": False,
    }
    return _smallest_object(schema) if schema["type"] == "object" else least[schema["type"]]


def _smallest_object(schema: Any) -> JSONObject:
    return {name: _smallest(schema["properties"][name]) for name in schema.get("required", ())}


def _calls() -> Iterator[tuple[str, JSONObject]]:
    for name in METHODS_OF_A_REQUEST:
        for params in (_smallest_object(json_schema(METHODS[name].params)), *TELLING.get(name, ())):
            yield name, params


CALLS = tuple(_calls())
"""Method and params; the requestId is for the test to put in."""
