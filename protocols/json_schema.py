"""JSON Schema 2020-12 of message classes, made from the same members that `protocols.structure` reads by
(CP-2.2)."""

from __future__ import annotations

import typing
from collections.abc import Iterable
from enum import Enum
from typing import Literal

import attrs

from protocols.errors import OurError
from protocols.json_values import JSON, JSONObject
from protocols.members import AnyJSON, Bounds, Member, Unknown, members, split_optional

_SCALARS: dict[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def json_schema(cls: type, *, unknown: Unknown = "refuse") -> JSONObject:
    """The schema of a message class, nested ones written out in place; `unknown` as in `structure`.

    It names no `$schema`, so that it can stand inside other documents.
    """
    found = members(cls)
    schema: JSONObject = {
        "type": "object",
        "properties": {member.wire: _member_schema(member, unknown) for member in found},
        "required": [member.wire for member in found if member.required],
    }
    if unknown == "refuse":
        schema["additionalProperties"] = False
    return schema


def _member_schema(member: Member, unknown: Unknown) -> JSONObject:
    schema = _type_schema(member.type, member.bounds, unknown)
    default = member.default.value if isinstance(member.default, Enum) else member.default
    if not member.required and not member.absent and isinstance(default, str | bool | int | float):
        schema["default"] = default
    return schema


def _type_schema(kind: object, bounds: Bounds | None, unknown: Unknown) -> JSONObject:
    inner, nullable = split_optional(kind)
    schema = _bare_schema(inner, bounds, unknown)
    return _or_null(schema) if nullable else schema


def _bare_schema(kind: object, bounds: Bounds | None, unknown: Unknown) -> JSONObject:
    if kind is AnyJSON:
        return {}
    if kind in _SCALARS:
        return {"type": _SCALARS[kind], **_scalar_bounds(kind, bounds)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _choice(member.value for member in kind)
    if isinstance(kind, type) and attrs.has(kind):
        return json_schema(kind, unknown=unknown)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return _choice(arguments)
    if origin is tuple:
        items = _type_schema(arguments[0], bounds.each if bounds else None, unknown)
        return {"type": "array", "items": items, **_bounds("minItems", "maxItems", bounds)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type_schema(arguments[1], None, unknown)}
    raise OurError(f"not a type of a message's member: {kind}")


def _scalar_bounds(kind: object, bounds: Bounds | None) -> JSONObject:
    if kind is str:
        return _bounds("minLength", "maxLength", bounds)
    return _bounds("minimum", "maximum", bounds)


def _bounds(low: str, high: str, bounds: Bounds | None) -> JSONObject:
    return {low: bounds.low, high: bounds.high} if bounds else {}


def _choice(values: Iterable[JSON]) -> JSONObject:
    choices = list(values)
    return {"const": choices[0]} if len(choices) == 1 else {"enum": choices}


def _or_null(schema: JSONObject) -> JSONObject:
    """Other keywords than these two do not apply to null."""
    if "const" in schema:
        return {"enum": [schema["const"], None]}
    if "enum" in schema and isinstance(schema["enum"], list):
        return {"enum": [*schema["enum"], None]}
    return {**schema, "type": [schema["type"], "null"]} if "type" in schema else schema
