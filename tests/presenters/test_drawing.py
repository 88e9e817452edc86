"""Plain lines: everything that the digest covers, and nothing that looks like the presenter's own."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.presenters.characters import Characters, Paper, columns_of
from broker.presenters.drawing import bubble_lines, pairing_lines, question_lines
from protocols.companion.capabilities import Interaction, Kind, Tone
from protocols.presenter.messages import ConfirmPairing, Input, Option, Present, Source

PRESENT = Present(
    request_id="r1",
    revision=1,
    digest="0" * 64,
    kind=Kind.INTERACTION,
    interaction=Interaction.CHOICE,
    source=Source(label="My Agent", program="/usr/bin/agent", pid=7),
    capability="interaction.choose",
    character="aion",
    style="default",
    tone=Tone.WARNING,
    title="Read file?",
    text="first\nsecond",
    detail="small print",
    options=(Option(id="secret-id", label="Allow"), Option(id="n", label="Deny")),
    fraction=0.25,
    deadline_at="",
    remaining_ms=58_400,
    queued=1,
)
PAIRING = ConfirmPairing(
    pairing_id="p1",
    digest="0" * 64,
    client_name="My Agent",
    name_in_use=True,
    program="/usr/bin/agent",
    pid=7,
    scopes=("discover", "interact"),
    purpose="to ask you",
    verification_code="012345",
    retention_hours=24,
    expires_at="",
)


def test_a_request_shows_all_that_the_digest_covers() -> None:
    drawn = "\n".join(question_lines(PRESENT, Paper(), "12:34:56"))
    for part in (
        "interaction, warning: [#####...............] 25% done",
        "| My Agent",
        "| /usr/bin/agent (process 7)",
        "| Read file?",
        "| first\n  | second",
        "| small print",
        "1) Allow",
        "2) Deny",
        "until 12:34:56",
    ):
        assert part in drawn
    assert "secret-id" not in drawn


def test_a_text_question_shows_what_it_takes() -> None:
    limits = Input(placeholder="Rex", multiline=False, max_length=40)
    asked = attrs.evolve(PRESENT, interaction=Interaction.TEXT, options=None, input=limits)
    drawn = "\n".join(question_lines(asked, Paper(), ""))
    assert "Up to 40 characters" in drawn
    assert "For example:\n  | Rex" in drawn


@pytest.mark.requirement("CP-5.6", "CP-4.10")
def test_a_pairing_shows_who_what_the_code_and_the_retention() -> None:
    drawn = "\n".join(pairing_lines(PAIRING, Paper()))
    for part in (
        "| My Agent",
        "paired already",
        "| /usr/bin/agent (process 7)",
        "- discover: see",
        "- interact: ask",
        "| to ask you",
        "Code: 012345",
        "kept for 24 hours",
    ):
        assert part in drawn
    assert "- notify" not in drawn


def test_an_unknown_program_is_said_to_be_unknown() -> None:
    drawn = "\n".join(pairing_lines(attrs.evolve(PAIRING, program=None, pid=None), Paper()))
    assert "an unknown program" in drawn


@pytest.mark.requirement("CP-4.4", "G08")
@pytest.mark.parametrize("filling", ["x" * 74, "猫" * 37, "\u202e" * 9])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_client_text_cannot_look_like_the_presenters_own_lines(filling: str, encoding: str) -> None:
    paper = Paper(80, Characters(encoding))
    forged = filling + "From:" + " " * 69 + "\nFrom:\n  | System\n1) Allow"
    own = set(question_lines(attrs.evolve(PRESENT, text=None), paper, ""))
    for line in question_lines(attrs.evolve(PRESENT, text=forged), paper, ""):
        assert line in own or line.startswith("  | ")


@pytest.mark.requirement("G08", "CP-6.3")
@given(st.text(max_size=80), st.integers(20, 120), st.sampled_from(["utf-8", "ascii"]))
def test_no_line_is_wider_than_the_screen_or_holds_what_it_cannot_show(
    text: str, width: int, encoding: str
) -> None:
    paper = Paper(width, Characters(encoding))
    source = Source(label=text, program=text)
    shown = attrs.evolve(PRESENT, title=text, text=text, source=source, options=(Option(id="a", label=text),))
    dancing = attrs.evolve(shown, kind=Kind.ANIMATION, expression=text, character=text)
    for line in [
        *question_lines(shown, paper, ""),
        *bubble_lines(dancing, 1, paper),
        *pairing_lines(attrs.evolve(PAIRING, purpose=text), paper),
    ]:
        assert paper.characters.shown(line) == line
        if line.startswith("  | "):
            assert sum(map(columns_of, line)) <= max(width, 20 + 4)


def test_the_presenters_own_lines_are_ascii_and_fit_a_small_screen() -> None:
    limits = Input(placeholder="", multiline=True, max_length=4_000)
    writing = attrs.evolve(PRESENT, interaction=Interaction.TEXT, options=None, input=limits)
    for line in [
        *question_lines(PRESENT, Paper(), "12:34:56"),
        *question_lines(writing, Paper(), "12:34:56"),
        *bubble_lines(attrs.evolve(PRESENT, kind=Kind.PROGRESS, fraction=None), 123, Paper()),
        *pairing_lines(PAIRING, Paper()),
    ]:
        assert line.isascii()
        assert len(line) <= 80
