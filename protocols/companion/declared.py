"""Params that a character pack declares: a small part of JSON Schema, checked by jsonschema.

    {"type": "object",
     "properties": {"height": {"type": "integer", "minimum": 1, "maximum": 5, "default": 2},
                    "side": {"type": "string", "enum": ["left", "right"]}},
     "required": ["side"],
     "additionalProperties": false}

The message classes below are the allow-list of its keywords.  Every value is bounded, and a text is one of a few
words that the pack itself has written down: so no text of a client reaches the screen by a way that the digest of a
picture does not cover, and no value needs neutralizing.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import attrs

from protocols.errors import InvalidValue, dotted_path
from protocols.json_values import JSON, JSONObject
from protocols.members import absent, array, number, text
from protocols.structure import unstructure

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

MAX_PROPERTIES = 16
MAX_NUMBER = 2**53
"""What every JSON reader holds exactly."""

_NAME = re.compile(r"[a-z][A-Za-z0-9]{0,63}")


@attrs.frozen(kw_only=True)
class Property:
    """One member: a number within bounds, a word of a list, or true or false.

    `default` is what leaving it out means.
    """

    type: Literal["integer", "number", "string", "boolean"]
    description: str | None = text(1, 160, absent=True)
    enum: tuple[str, ...] | None = array(1, 16, each=(1, 64), absent=True)
    minimum: float | None = number(-MAX_NUMBER, MAX_NUMBER, absent=True)
    maximum: float | None = number(-MAX_NUMBER, MAX_NUMBER, absent=True)
    default: JSON = absent()

    def __attrs_post_init__(self) -> None:
        counts = self.type in ("integer", "number")
        for keyword, value in (("minimum", self.minimum), ("maximum", self.maximum)):
            if (value is not None) != counts:
                raise InvalidValue(keyword, "missing" if counts else "not with this type")
        if (self.enum is not None) != (self.type == "string"):
            raise InvalidValue("enum", "missing" if self.type == "string" else "not with this type")
        if self.enum is not None and len(set(self.enum)) < len(self.enum):
            raise InvalidValue("enum", "a word stands twice")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise InvalidValue("maximum", "under the minimum")


@attrs.frozen(kw_only=True)
class InputSchema:
    """The schema of a capability's params; none at all is said by no properties."""

    type: Literal["object"]
    properties: dict[str, Property]
    required: tuple[str, ...] = array(0, MAX_PROPERTIES)
    additional_properties: Literal[False]

    def __attrs_post_init__(self) -> None:
        if len(self.properties) > MAX_PROPERTIES:
            raise InvalidValue("properties", "too many", MAX_PROPERTIES)
        for name in self.properties:
            if not _NAME.fullmatch(name):
                raise InvalidValue("", "not a name").under(name).under("properties")
        if len(set(self.required)) < len(self.required):
            raise InvalidValue("required", "a name stands twice")
        for name in self.required:
            if name not in self.properties or self.properties[name].default is not None:
                raise InvalidValue("required", "no such property without a default")


class DeclaredParams:
    """What checks the params of a declared capability.  Raises InvalidValue for a default outside its own bounds."""

    def __init__(self, declared: InputSchema) -> None:
        self.schema = _as_written(declared)
        self._defaults: JSONObject = {
            name: one.default for name, one in declared.properties.items() if one.default is not None
        }
        self._validator = _validator(self.schema)
        try:
            _check(self._defaults, _validator({**self.schema, "required": []}))
        except InvalidValue as error:
            wrong = error
        else:
            return
        raise InvalidValue(f"properties.{wrong.field}.default", wrong.reason, wrong.limit)

    def normalize(self, params: JSONObject) -> JSONObject:
        """The params with every default filled in; raises InvalidValue, its field counted from these params."""
        _check(params, self._validator)
        return {**self._defaults, **params}


def _check(params: JSONObject, validator: Draft202012Validator) -> None:
    errors = [_told(error) for error in validator.iter_errors(params)]
    if errors:
        raise min(errors, key=lambda error: error.field)


def _as_written(declared: InputSchema) -> JSONObject:
    """The schema as its author wrote it: bounds of integers without a fraction."""
    schema = unstructure(declared)
    assert isinstance(schema, dict)
    return {**schema, "properties": {name: _property(one) for name, one in declared.properties.items()}}


def _property(one: Property) -> JSONObject:
    written = unstructure(one)
    assert isinstance(written, dict)
    for keyword in ("minimum", "maximum"):
        bound = written.get(keyword)
        if isinstance(bound, float) and bound.is_integer():
            written[keyword] = int(bound)
    return written


def _validator(schema: JSONObject) -> Draft202012Validator:
    made: Draft202012Validator = _strict()(schema)
    return made


@cache
def _strict() -> Any:
    """A kind of validator that takes 1.0 for no integer, as the rest of the protocol does (wire.md, strict JSON)."""
    from jsonschema import Draft202012Validator, validators

    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _checker, value: type(value) is int)
    return validators.extend(Draft202012Validator, type_checker=types)  # type: ignore[no-untyped-call]


def _told(error: Any) -> InvalidValue:
    """An error of jsonschema's in our words; its own text would quote the value."""
    path: list[str | int] = list(error.absolute_path)
    bound: JSON = error.validator_value
    match error.validator:
        case "required":
            path.append(next(name for name in error.validator_value if name not in error.instance))
            reason = "missing"
        case "additionalProperties":
            path.append(next(name for name in error.instance if name not in error.schema["properties"]))
            reason = "unknown member"
        case "minimum":
            reason = "too small"
        case "maximum":
            reason = "too large"
        case "enum":
            reason = "unknown value"
        case _:
            reason = "not of its type"
    return InvalidValue(dotted_path(path), reason, bound if type(bound) is int else None)
