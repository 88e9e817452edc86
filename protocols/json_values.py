"""The types of a JSON value, for every place that handles JSON whose members are not (yet) known.

Arrays are lists, objects are dicts in the order of the wire, integers are `int`, other numbers are `float`.
`protocols.structure` recognizes these names in the annotations of a message class and passes such members
through.
"""

from __future__ import annotations

from typing import TypeAlias

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
JSONObject: TypeAlias = "dict[str, JSON]"
