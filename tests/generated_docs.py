"""The parts of the pages under docs/ that are made from the code: `make docs` writes them, a test compares them.

A page marks such a part by `<!-- generated: NAME -->` and `<!-- end -->`; what stands between is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from broker.cli.help_topics import rows_of
from broker.cli.outcome import MEANINGS, Exit
from handlers.policy import Limits
from protocols.companion.capabilities import CapabilityDescription
from protocols.companion.catalog import CATALOG
from protocols.companion.states import REASONS, TRANSITIONS, State
from protocols.diagrams import state_diagram, state_table
from protocols.json_values import JSON, JSONObject
from protocols.refusal import CODES

DOCS = Path(__file__).parent.parent / "docs"
_PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def current(page: str) -> str:
    """The page with every generated part as the code has it; KeyError for a part of an unknown name."""
    return _PART.sub(lambda found: f"{found[1]}{PARTS[found[2]]()}\n{found[3]}", page)


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = list(header)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (titles, ["---"] * len(titles), *rows))


def _errors() -> str:
    rows = [
        [code.value, str(facts.jsonrpc), "yes" if facts.retryable else "no", str(facts.exit)]
        for code, facts in CODES.items()
    ]
    return _table(("data.code", "JSON-RPC code", "retryable", "exit code of the command line"), rows)


def _capabilities() -> str:
    header = ("id", "params", "timeoutMs", "scope", "completion", "updatable", "characters")
    return _table(header, (_capability(one) for one in CATALOG.descriptions.values()))


def _capability(described: CapabilityDescription) -> list[str]:
    limits = described.limits
    return [
        described.id,
        _params(described.input_schema),
        f"{limits.min_timeout_ms:,}..{limits.max_timeout_ms:,}",
        ", ".join(described.required_scopes),
        described.completion,
        ", ".join(described.updatable_fields) or "none",
        ", ".join(described.characters),
    ]


def _params(schema: JSONObject) -> str:
    members, required = schema.get("properties"), schema.get("required", [])
    assert isinstance(members, dict)
    assert isinstance(required, list)
    named = [_member(name, member, name in required) for name, member in members.items()]
    return "; ".join(named) or "none"


def _member(name: str, schema: JSON, required: bool) -> str:
    assert isinstance(schema, dict)
    low, high = (
        next((schema[key] for key in keys if key in schema), None)
        for keys in (("minLength", "minimum", "minItems"), ("maxLength", "maximum", "maxItems"))
    )
    bounds = "" if high is None else f" {low or 0:,}..{high:,}"
    default = f" ({_default(schema['default'])})" if "default" in schema else ""
    return f"{name}{'' if required else '?'}{bounds}{default}"


def _default(value: JSON) -> str:
    return {None: "null", True: "true", False: "false", "": '""'}.get(value, str(value))  # type: ignore[arg-type]


def _limits() -> str:
    return _table(
        ("limit", "default"), ([name, f"{value:,}"] for name, value in Limits().published().items())
    )


def _states() -> str:
    return f"{state_diagram(TRANSITIONS, State.QUEUED)}\n\n{state_table(TRANSITIONS)}"


def _reasons() -> str:
    return _table(
        ("state", "reasons"), ([state.value, ", ".join(sorted(words))] for state, words in REASONS.items())
    )


def _exit_codes() -> str:
    rows = [
        [
            str(int(exit)),
            MEANINGS[exit],
            ", ".join(f"{row.code}{' (retryable)' if row.retryable else ''}" for row in rows_of(exit)),
        ]
        for exit in Exit
    ]
    return _table(("exit", "means", "codes"), rows)


PARTS: Mapping[str, Callable[[], str]] = {
    "errors": _errors,
    "capabilities": _capabilities,
    "limits": _limits,
    "states": _states,
    "reasons": _reasons,
    "exit_codes": _exit_codes,
}


def main() -> None:
    """Write every page anew whose generated parts are not current."""
    for page in sorted(DOCS.glob("*.md")):
        written = page.read_text()
        if (made := current(written)) != written:
            page.write_text(made)


if __name__ == "__main__":
    main()
