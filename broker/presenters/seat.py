"""The person's place at the terminal, as the parts see it that decide what is drawn there and asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from broker.presenters.characters import Paper
from broker.presenters.keyboard import Form


class Seat(Protocol):
    """What the terminal does for `Desk` and `Bubbles`."""

    @property
    def paper(self) -> Paper:
        """What is drawn on, as wide as it is by now."""
        ...

    def say(self, lines: Sequence[str]) -> None:
        """Draw these lines below everything that was drawn before."""
        ...

    def ask(self, form: Form, text: str = "") -> str:
        """From here on this may be typed, once the keys have rested; what had been typed before, which is forgotten.

        `text` stands as if it had been typed.
        """
        ...

    def ring(self) -> None:
        """Make a sound."""
        ...

    def clock_at(self, instant: str) -> str:
        """The time of day of an instant of the protocol (RFC 3339), where the person is."""
        ...

    def clock_in(self, milliseconds: int) -> str:
        """The time of day that is so far away."""
        ...
