"""State diagrams for the docs, drawn from the tables that the code runs on: nothing to keep in step by
hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

State = TypeVar("State", bound=Enum)
Step = TypeVar("Step", bound=Enum)


def state_diagram(transitions: Mapping[State, Mapping[Step, State]], initial: State) -> str:
    """A Mermaid state diagram in a Markdown fence: one arrow from state to state, labelled with its
    events.
    """
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {initial.value}"]
    for state, steps in transitions.items():
        arrows: dict[State, list[str]] = {}
        for step, target in steps.items():
            arrows.setdefault(target, []).append(step.value)
        lines += [
            f"    {state.value} --> {target.value}: {', '.join(names)}" for target, names in arrows.items()
        ]
        if not steps:
            lines.append(f"    {state.value} --> [*]")
    return "\n".join([*lines, "```"])


def state_table(transitions: Mapping[State, Mapping[Step, State]]) -> str:
    """The same as a Markdown table: a row a state, a column an event, `-` where the event is refused."""
    events = list(dict.fromkeys(step for steps in transitions.values() for step in steps))
    header = ["state", *(event.value for event in events)]
    rows = [
        [state.value, *(_cell(steps.get(event)) for event in events)] for state, steps in transitions.items()
    ]
    return "\n".join(_line(cells) for cells in (header, ["---"] * len(header), *rows))


def _cell(state: Enum | None) -> str:
    return "-" if state is None else state.value


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
