"""Message classes: how the attributes of a frozen attrs class are declared and named on the wire.

A message is an `@attrs.frozen(kw_only=True)` class. Its attributes are snake_case, its members on the wire
camelCase; metadata `{"wire": "name"}` overrides the name. What the type cannot say is declared with a field
helper:

    title: str = text(1, 160)                                      required, 1..160 code points
    detail: str | None = text(0, 2000, absent=True)                may be left out; None stands for "left out"
    fraction: float | None = number(0, 1, default=None)            may be left out or null
    options: tuple[Option, ...] = array(2, 5)
    tone: Tone = Tone.INFORMATION                                  no bounds: a plain default

`protocols.structure` reads and writes such classes, `protocols.json_schema` describes them, both from
`members`. Types: str, int, float, bool, Literal, Enum, tuple[X, ...], dict[str, X], other messages, JSON,
JSONObject, and any of them or None. Annotations are looked up by name in the class's module, so their names
(JSON too) are imported there at run time. Use `kw_only`: mypy takes every helper for a default, and
complains about the order otherwise.
"""

from __future__ import annotations

import functools
import types
import typing
from typing import Any, Literal, TypeAlias, Union

import attrs

from protocols.errors import OurError

Unknown: TypeAlias = Literal["refuse", "ignore"]
"""What happens to members that the class does not have."""


class AnyJSON:
    """Stands at run time for the alias JSON in an annotation: the value is passed through."""


@attrs.frozen
class Bounds:
    """Inclusive bounds of a text's code points, of a number, or of an array's length; `each`: of its
    items."""

    low: int
    high: int
    each: Bounds | None = None


@attrs.frozen
class Member:
    """One member of a message: where it is in the class and on the wire, and which values it takes."""

    name: str
    argument: str
    wire: str
    type: object
    required: bool
    absent: bool
    default: object
    bounds: Bounds | None


def text(low: int, high: int, *, default: Any = attrs.NOTHING, absent: bool = False, wire: str = "") -> Any:
    """A string of `low` to `high` code points."""
    return _field(Bounds(low, high), default, absent, wire)


def integer(
    low: int, high: int, *, default: Any = attrs.NOTHING, absent: bool = False, wire: str = ""
) -> Any:
    """An integer from `low` to `high`."""
    return _field(Bounds(low, high), default, absent, wire)


def number(low: int, high: int, *, default: Any = attrs.NOTHING, absent: bool = False, wire: str = "") -> Any:
    """A number from `low` to `high`; integers are taken and become floats."""
    return _field(Bounds(low, high), default, absent, wire)


def array(
    low: int,
    high: int,
    *,
    each: tuple[int, int] | None = None,
    default: Any = attrs.NOTHING,
    absent: bool = False,
    wire: str = "",
) -> Any:
    """An array of `low` to `high` items; `each` bounds every item (a text's length, a number)."""
    return _field(Bounds(low, high, Bounds(*each) if each else None), default, absent, wire)


def absent(*, wire: str = "") -> Any:
    """A member that is left out when it is None, and never null."""
    return _field(None, attrs.NOTHING, True, wire)


def _field(bounds: Bounds | None, default: object, left_out: bool, wire: str) -> Any:
    metadata = {"bounds": bounds, "absent": left_out, "wire": wire}
    return attrs.field(default=None if left_out else default, metadata=metadata)


@functools.cache
def members(message: type) -> tuple[Member, ...]:
    """The members of a message class in their order; raises OurError for a class that cannot be one."""
    if not attrs.has(message):
        raise OurError(f"not a message class: {message.__name__}")
    hints = typing.get_type_hints(message, localns={"JSON": AnyJSON, "JSONObject": dict[str, AnyJSON]})
    found = tuple(_member(attribute, hints[attribute.name]) for attribute in attrs.fields(message))
    if len({member.wire for member in found}) < len(found):
        raise OurError(f"two members of one name: {message.__name__}")
    return found


def _member(attribute: attrs.Attribute[Any], hint: object) -> Member:
    left_out = bool(attribute.metadata.get("absent"))
    return Member(
        name=attribute.name,
        argument=attribute.alias or attribute.name,
        wire=attribute.metadata.get("wire") or _camel_case(attribute.name),
        type=split_optional(hint)[0] if left_out else hint,
        required=attribute.default is attrs.NOTHING,
        absent=left_out,
        default=attribute.default,
        bounds=attribute.metadata.get("bounds"),
    )


def _camel_case(name: str) -> str:
    first, *rest = name.strip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


def split_optional(hint: object) -> tuple[object, bool]:
    """`X | None` as (X, True), any other type as (itself, False)."""
    if typing.get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    choices = typing.get_args(hint)
    others = tuple(choice for choice in choices if choice is not types.NoneType)
    if len(others) == len(choices):
        return hint, False
    return Union[others], True  # noqa: UP007  (the choices are known at run time only)
