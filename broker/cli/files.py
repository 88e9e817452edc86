"""JSON files that a command reads: strict, and of a size that can be meant (CP-6.2, CP-6.3)."""

from __future__ import annotations

import sys

import click

from broker.cli.outcome import invalid
from protocols.errors import InvalidValue
from protocols.json_values import JSON
from protocols.strict_json import decode

_LARGEST_FILE = 1_048_576


def read_json(source: str) -> JSON:
    """The value in a file, `-` for stdin; raises CommandFailed, ParseError or InvalidValue (all of them exit 2)."""
    if source == "-" and sys.stdin is None:
        raise invalid("stdin is closed", field="--file")
    try:
        with click.open_file(source, "rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except (OSError, ValueError) as error:  # a name with a null character is a ValueError
        reason = error.strerror if isinstance(error, OSError) else "no name of a file"
        raise invalid(f"the file cannot be read ({reason})", field="--file") from None
    if len(content) > _LARGEST_FILE:
        raise invalid("the file is too long", field="--file", limit=_LARGEST_FILE)
    document = decode(content)
    if document.flaw is not None:
        raise InvalidValue(document.flaw.dotted, document.flaw.reason)
    return document.value
