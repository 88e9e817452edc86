"""The codec between JSON values and message classes (`protocols.members` says how those are declared).

`structure` is strict: no value is coerced (`true` and `60000.0` are not integers), no member is unknown
unless the caller says so, every bound holds. The first wrong member, in the class's order and then the
unknown ones, is told by an `InvalidValue`: its dotted path, a few fixed words, the bound that was crossed;
never the value.

A cattrs converter finds and keeps the hook of each type, so a class is looked at once. Hooks know no path:
each object or array that an error passes on its way out puts its own name in front. A class may add checks
across members by raising InvalidValue from `__attrs_post_init__`.

Values are taken to come from a `Document` without a flaw. `json_schema` (from `protocols.json_schema`)
accepts exactly the same values, but for one difference: to JSON Schema 1.0 is an integer, here it is not.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable
from enum import Enum
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar

import attrs
import cattrs

from protocols.errors import InvalidValue, OurError
from protocols.json_schema import json_schema
from protocols.json_values import JSON, JSONObject
from protocols.members import (
    AnyJSON,
    Bounds,
    Member,
    Unknown,
    absent,
    array,
    integer,
    members,
    number,
    split_optional,
    text,
)

__all__ = ["absent", "array", "integer", "json_schema", "number", "structure", "text", "unstructure"]

T = TypeVar("T")
Hook: TypeAlias = Callable[[Any, Any], Any]  # as cattrs calls them: (value, type) -> what it stands for


def structure(cls: type[T], value: JSON, *, unknown: Unknown = "refuse") -> T:
    """Read a message; `unknown` members are refused or ignored, at every depth. Raises InvalidValue."""
    message: T = _CONVERTERS[unknown].structure(value, cls)
    return message


def unstructure(message: object) -> JSON:
    """Write a message: members in the class's order, absent ones left out, other None as null."""
    if message is None or type(message) in (str, int, bool, float):
        return typing.cast(JSON, message)
    if isinstance(message, Enum):
        return unstructure(message.value)
    if isinstance(message, list | tuple):
        return [unstructure(item) for item in message]
    if isinstance(message, dict):
        return {name: unstructure(value) for name, value in message.items()}
    return _unstructure_members(message)


def _unstructure_members(message: object) -> JSONObject:
    kind: type = type(message)
    written: JSONObject = {}
    for member in members(kind):
        value = getattr(message, member.name)
        if value is not None or not member.absent:
            written[member.wire] = unstructure(value)
    return written


def _object_hook(converter: cattrs.Converter, unknown: Unknown) -> Callable[[type], Hook]:
    def factory(message: type) -> Hook:
        plan = [
            (member.wire, member.argument, member.required, _member_hook(converter, member))
            for member in members(message)
        ]
        names = {wire for wire, *_ in plan}

        def structure_object(value: Any, _type: Any) -> Any:
            if type(value) is not dict:
                raise InvalidValue("", "not an object")
            arguments = {}
            for wire, argument, required, hook in plan:
                if wire in value:
                    arguments[argument] = _within(wire, hook, value[wire])
                elif required:
                    raise InvalidValue(wire, "missing")
            if unknown == "refuse" and len(arguments) < len(value):
                _refuse_unknown(value, names)
            return message(**arguments)

        return structure_object

    return factory


def _within(name: str | int, hook: Callable[[Any], Any], value: Any) -> Any:
    try:
        return hook(value)
    except InvalidValue as error:
        outer = error.under(name)
    raise outer


def _refuse_unknown(value: dict[str, Any], known: set[str]) -> NoReturn:
    name = next(name for name in value if name not in known)
    raise InvalidValue("", "unknown member").under(name)


def _member_hook(converter: cattrs.Converter, member: Member) -> Callable[[Any], Any]:
    inner, nullable = split_optional(member.type)
    check = _bounded(_hook_of(converter, inner), inner, member.bounds)
    if not nullable:
        return check
    return lambda value: None if value is None else check(value)


def _hook_of(converter: cattrs.Converter, kind: Any) -> Callable[[Any], Any]:
    """Plain classes bypass cattrs: it has lenient hooks for some and would take a str enum for a str."""
    plain = isinstance(kind, type) and not attrs.has(kind)
    hook = _plain_hook(kind) if plain else converter.get_structure_hook(kind)
    return lambda value: hook(value, kind)


# -- bounds ----------------------------------------------------------------------------------------


def _bounded(hook: Callable[[Any], Any], kind: object, bounds: Bounds | None) -> Callable[[Any], Any]:
    if bounds is None:
        return hook
    if kind is str:
        return _between(hook, len, bounds, "too short", "too long")
    if kind is int or kind is float:
        return _between(hook, lambda value: value, bounds, "too small", "too large")
    if typing.get_origin(kind) is tuple:
        return _between(_each_bounded(hook, kind, bounds.each), len, bounds, "too few", "too many")
    raise OurError(f"bounds on a type without a size: {kind}")


def _between(
    hook: Callable[[Any], Any], measure: Callable[[Any], float], bounds: Bounds, below: str, above: str
) -> Callable[[Any], Any]:
    low, high = bounds.low, bounds.high

    def check(value: Any) -> Any:
        result = hook(value)
        size = measure(result)
        if size < low:
            raise InvalidValue("", below, low)
        if size > high:
            raise InvalidValue("", above, high)
        return result

    return check


def _each_bounded(hook: Callable[[Any], Any], kind: object, each: Bounds | None) -> Callable[[Any], Any]:
    if each is None:
        return hook
    check = _bounded(lambda item: item, typing.get_args(kind)[0], each)

    def check_items(value: Any) -> Any:
        result = hook(value)
        for index, item in enumerate(result):
            _within(index, check, item)
        return result

    return check_items


# -- hooks of the types ----------------------------------------------------------------------------


def _scalar_hook(kind: type, reason: str) -> Hook:
    def structure_scalar(value: Any, _type: Any) -> Any:
        if type(value) is not kind:
            raise InvalidValue("", reason)
        return value

    return structure_scalar


def _plain_hook(kind: type) -> Hook:
    if issubclass(kind, Enum):
        return _one_of({member.value: member for member in kind})
    return _PLAIN_HOOKS.get(kind) or _refuse_type(kind)


def _structure_number(value: Any, _type: Any) -> float:
    if type(value) is not float and type(value) is not int:
        raise InvalidValue("", "not a number")
    if not math.isfinite(value):
        raise InvalidValue("", "number is not finite")
    return float(value)


def _one_of(choices: dict[JSON, Any]) -> Hook:
    by_type = {(type(value), value): meaning for value, meaning in choices.items()}  # true is not 1

    def structure_choice(value: Any, _type: Any) -> Any:
        if isinstance(value, list | dict) or (type(value), value) not in by_type:
            raise InvalidValue("", "unknown value")
        return by_type[type(value), value]

    return structure_choice


def _literal_hook(kind: Any) -> Hook:
    return _one_of({value: value for value in typing.get_args(kind)})


def _optional_hook(converter: cattrs.Converter) -> Callable[[Any], Hook]:
    def factory(kind: Any) -> Hook:
        inner, nullable = split_optional(kind)
        if not nullable:
            raise OurError(f"only unions with None can be told apart: {kind}")
        hook = _hook_of(converter, inner)
        return lambda value, _type: None if value is None else hook(value)

    return factory


def _array_hook(converter: cattrs.Converter) -> Callable[[Any], Hook]:
    def factory(kind: Any) -> Hook:
        item_kind, *rest = typing.get_args(kind)
        if rest != [Ellipsis]:
            raise OurError(f"only tuple[X, ...] stands for an array: {kind}")
        hook = _hook_of(converter, item_kind)

        def structure_array(value: Any, _type: Any) -> tuple[Any, ...]:
            if type(value) is not list:
                raise InvalidValue("", "not an array")
            return tuple(_within(index, hook, item) for index, item in enumerate(value))

        return structure_array

    return factory


def _map_hook(converter: cattrs.Converter) -> Callable[[Any], Hook]:
    def factory(kind: Any) -> Hook:
        hook = _hook_of(converter, typing.get_args(kind)[1])

        def structure_map(value: Any, _type: Any) -> dict[str, Any]:
            if type(value) is not dict:
                raise InvalidValue("", "not an object")
            return {name: _within(name, hook, item) for name, item in value.items()}

        return structure_map

    return factory


def _refuse_type(kind: Any) -> NoReturn:
    raise OurError(f"not a type of a message's member: {kind}")


def _converter(unknown: Unknown) -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=False)
    factories: list[tuple[Callable[[Any], bool], Callable[[Any], Hook]]] = [
        (lambda _kind: True, _refuse_type),  # the last resort: nothing reaches the lenient hooks of cattrs
        (attrs.has, _object_hook(converter, unknown)),
        (lambda kind: typing.get_origin(kind) is Literal, _literal_hook),
        (lambda kind: typing.get_origin(kind) in (typing.Union, types.UnionType), _optional_hook(converter)),
        (lambda kind: typing.get_origin(kind) is tuple, _array_hook(converter)),
        (lambda kind: typing.get_origin(kind) is dict, _map_hook(converter)),
    ]
    for applies, factory in factories:
        converter.register_structure_hook_factory(applies, factory)
    return converter


_PLAIN_HOOKS: dict[type, Hook] = {
    str: _scalar_hook(str, "not a string"),
    int: _scalar_hook(int, "not an integer"),
    bool: _scalar_hook(bool, "not true or false"),
    float: _structure_number,
    AnyJSON: lambda value, _type: value,
}
_CONVERTERS = {"refuse": _converter("refuse"), "ignore": _converter("ignore")}
