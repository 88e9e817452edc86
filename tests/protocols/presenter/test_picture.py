"""What is on the screen: neutralized once, and covered by the digest."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.canonical_json import canonical
from protocols.companion.capabilities import Interaction, Kind, Tone
from protocols.json_values import JSONObject
from protocols.presenter import picture
from protocols.presenter.messages import Input, Option, Present, Source
from protocols.presenter.picture import Picture
from protocols.structure import unstructure

CHOICE: JSONObject = {
    "title": "Delete report\u202efdp.exe\u202c now?",
    "options": [
        {"id": "y", "label": "Allow"},
        {"id": "n", "label": "Al\u200blow"},
        {"id": "z", "label": "Deny\u001b[2K\rAllow"},
    ],
}


def choice(params: JSONObject = CHOICE, label: str = "Agent") -> Picture:
    return picture.of_request(Kind.INTERACTION, Interaction.CHOICE, label, "/usr/bin/agent", params)


@pytest.mark.requirement("G08")
def test_text_that_repaints_is_made_visible() -> None:
    shown = choice()
    assert shown.title == "Delete report<U+202E>fdp.exe<U+202C> now?"
    assert [option.label for option in shown.options or ()] == [
        "Allow",
        "Al<U+200B>low",
        "Deny<U+001B>[2K<U+000D>Allow",
    ]


@pytest.mark.requirement("G08")
def test_the_answer_is_still_the_options_id() -> None:
    params: JSONObject = {"title": "?", "options": [{"id": "a\u200bb", "label": "x"}]}
    assert choice(params).options == (Option(id="a\u200bb", label="x"),)


@pytest.mark.requirement("G08")
def test_ordinary_right_to_left_text_stays() -> None:
    assert choice({"title": "למחוק?", "options": []}).title == "למחוק?"


@pytest.mark.requirement("CP-4.4", "G08")
def test_a_source_label_cannot_repaint_either() -> None:
    assert choice(label="Agent\u202e\n").source_label == "Agent<U+202E><U+000A>"


def test_line_feeds_stay_in_text_and_detail_only() -> None:
    params: JSONObject = {"title": "a\nb", "text": "a\nb", "detail": "a\nb"}
    shown = picture.of_request(Kind.NOTICE, Interaction.NONE, "x", None, params)
    assert (shown.title, shown.text, shown.detail) == ("a<U+000A>b", "a\nb", "a\nb")


def test_the_digest_is_that_of_the_canonical_members() -> None:
    shown = picture.of_request(
        Kind.INTERACTION,
        Interaction.TEXT,
        "Agent",
        "/usr/bin/agent",
        {"title": "Name?", "placeholder": "", "multiline": False, "maxLength": 10},
    )
    members = (
        '{"input":{"maxLength":10,"multiline":false,"placeholder":""},"interaction":"text",'
        '"kind":"interaction","program":"/usr/bin/agent","sourceLabel":"Agent","title":"Name?"}'
    )
    assert picture.digest(shown) == hashlib.sha256(members.encode()).hexdigest()


def test_the_pairing_digest_covers_what_is_granted() -> None:
    shown = picture.of_pairing("Agent", False, None, ("discover",), None, "012345", 24)
    members = (
        '{"clientName":"Agent","nameInUse":false,"retentionHours":24,"scopes":["discover"],'
        '"verificationCode":"012345"}'
    )
    assert picture.digest(shown) == hashlib.sha256(members.encode()).hexdigest()


@pytest.mark.requirement("CP-5.4")
def test_the_example_of_the_authentication_profile_is_right() -> None:
    shown = picture.of_pairing(
        "Example Agent",
        False,
        "/usr/bin/agent",
        ("discover", "interact"),
        "asks before it deletes",
        "042917",
        24,
    )
    page = (Path(__file__).parents[3] / "docs" / "authentication.md").read_text(encoding="utf-8")
    written = canonical(unstructure(shown)).decode()
    assert f"\n{written}\n{picture.digest(shown)}\n" in page


CHANGES: list[dict[str, Any]] = [
    {"kind": Kind.NOTICE},
    {"interaction": Interaction.NONE},
    {"source_label": "System"},
    {"program": None},
    {"title": "Delete?"},
    {"text": "more"},
    {"detail": "more"},
    {"options": (Option(id="n", label="Allow"),)},
    {"input": Input(placeholder="", multiline=True, max_length=1)},
    {"tone": Tone.ERROR},
    {"fraction": 0.5},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_every_member_counts_in_the_digest(change: dict[str, Any]) -> None:
    assert set().union(*CHANGES) == {field.name for field in attrs.fields(Picture)}
    shown = choice()
    assert picture.digest(attrs.evolve(shown, **change)) != picture.digest(shown)


def test_an_unknown_fraction_is_absent() -> None:
    shown = picture.of_request(
        Kind.PROGRESS, Interaction.NONE, "x", None, {"title": "t", "fraction": None, "tone": "success"}
    )
    assert (shown.fraction, shown.tone) == (None, Tone.SUCCESS)


@given(st.text(max_size=20), st.text(max_size=20), st.booleans())
def test_a_presenter_that_draws_all_reports_the_brokers_digest(title: str, label: str, program: bool) -> None:
    shown = choice({"title": title, "options": [{"id": "a", "label": label}]}, label)
    message = Present(
        request_id="r",
        revision=1,
        digest=picture.digest(shown),
        kind=shown.kind,
        interaction=shown.interaction,
        source=Source(label=shown.source_label, program=shown.program),
        capability="interaction.choose",
        character="c",
        style="s",
        title=shown.title,
        options=shown.options,
        deadline_at="",
        remaining_ms=0,
        queued=0,
    )
    assert picture.digest(picture.of_present(message)) == message.digest
