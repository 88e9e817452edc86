"""The sample presenter that follows a script, as a process, with the broker's engine at the other end."""

from __future__ import annotations

import ast
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from protocols.companion.capabilities import Kind
from protocols.presenter.engine import PresenterEngine
from protocols.presenter.messages import (
    Answer,
    Dismiss,
    Dismissed,
    Finished,
    PairingDecision,
    Ping,
    Pong,
    Presented,
    Ready,
    Update,
    rejected,
)
from protocols.session import Deliver, Send
from tests.support.table import PAIRING, bubble, presented, progress, question, text_question, updated

SCRIPTED = Path(__file__).parents[2] / "fixtures" / "presenters" / "scripted.py"
SECONDS = 10.0
ARMING_MS = 100


class Stand:
    """The broker's end."""

    def __init__(self, broker: socket.socket) -> None:
        self._broker = broker
        self._engine = PresenterEngine()
        self._number = 0

    def push(self, message: object) -> None:
        self._engine.push(message)
        self._flush()

    def _flush(self) -> None:
        while isinstance(output := self._engine.take_output(), Send):
            self._broker.sendall(output.data)

    def next(self) -> Any:
        """The next message of the presenter."""
        until = time.monotonic() + SECONDS
        while not isinstance(output := self._engine.next_output(), Deliver):
            assert output is None, output
            assert select.select([self._broker.fileno()], [], [], until - time.monotonic())[0]
            data = self._broker.recv(65536)
            assert data, "the presenter has gone"
            self._engine.receive(data)
        self._number = output.number
        return output.message

    def reply(self, body: object) -> None:
        """Answer the last message."""
        self._engine.reply(self._number, body)
        self._flush()

    def says_no_more(self) -> bool:
        """Whether nothing but the answer to a ping comes, long after an answer would have."""
        select.select([self._broker.fileno()], [], [], ARMING_MS * 3 / 1000)
        self.push(Ping())
        return isinstance(self.next(), Pong)


@contextmanager
def following(script: dict[str, Any], *arguments: str) -> Iterator[Stand]:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            environment = {
                **os.environ,
                "COMPANION_PRESENTER_FD": str(theirs.fileno()),
                "COMPANION_SCRIPT": json.dumps({"arming_ms": ARMING_MS, **script}),
            }
            process = subprocess.Popen(
                [sys.executable, str(SCRIPTED), *arguments], pass_fds=[theirs.fileno()], env=environment
            )
        stand = Stand(ours)
        assert isinstance(stand.next(), Ready)
        yield stand
        ours.shutdown(socket.SHUT_RDWR)
        assert process.wait(SECONDS) == 0


def test_it_uses_the_standard_library_only() -> None:
    tree = ast.parse(SCRIPTED.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules = {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported | modules} <= sys.stdlib_module_names


def test_it_reports_at_once_and_answers_by_rule_after_arming() -> None:
    rule = {"title": "*file*", "do": "choose", "option": "no"}
    with following({"prompts": [rule]}) as stand:
        shown = question("r1")
        stand.push(shown)
        assert stand.next() == Presented(request_id="r1", revision=2, digest=shown.digest)
        reported = time.monotonic()
        answer = stand.next()
        assert isinstance(answer, Answer)
        assert answer.result == {"selectedId": "no"}
        assert time.monotonic() - reported >= ARMING_MS / 1000 / 2


@pytest.mark.requirement("CP-3.5")
@pytest.mark.parametrize(
    "rules",
    [
        [],
        [{"title": "Other*", "do": "choose", "option": "no"}],
        [{"do": "ignore"}, {"do": "choose", "option": "no"}],
        [{"do": "choose", "option": "maybe"}],
        [{"do": "choose"}],
        [{"do": "text", "text": "no"}],
        [{"do": "choose", "option": "no", "times": 0}],
    ],
)
def test_it_never_answers_what_the_script_does_not_name(rules: list[dict[str, Any]]) -> None:
    with following({"prompts": rules}) as stand:
        stand.push(question("r1"))
        stand.push(PAIRING)
        assert [type(stand.next()), type(stand.next())] == [Presented, Presented]
        assert stand.says_no_more()


def test_rules_are_used_in_order_and_as_often_as_they_say() -> None:
    rules = [{"do": "choose", "option": "yes", "times": 1}, {"do": "dismiss"}]
    with following({"prompts": rules}) as stand:
        for id, kind in (("r1", Answer), ("r2", Dismissed)):
            stand.push(question(id))
            assert isinstance(stand.next(), Presented)
            assert isinstance(stand.next(), kind)


def test_it_answers_a_text() -> None:
    with following({"prompts": [{"do": "text", "text": "Rex"}]}) as stand:
        stand.push(text_question("r1"))
        stand.next()
        assert stand.next().result == {"text": "Rex"}


@pytest.mark.parametrize(
    ("rule", "approved", "scopes"),
    [
        ({"do": "approve"}, True, ("discover", "interact")),
        ({"do": "approve", "scopes": ["discover"], "name": "Ag*"}, True, ("discover",)),
        ({"do": "deny"}, False, ()),
    ],
)
def test_a_pairing_is_decided_by_rule(rule: dict[str, Any], approved: bool, scopes: tuple[str, ...]) -> None:
    with following({"pairing": [rule]}) as stand:
        stand.push(PAIRING)
        assert stand.next() == Presented(pairing_id="p1", digest=PAIRING.digest)
        decision = stand.next()
        assert isinstance(decision, PairingDecision)
        assert (decision.approved, decision.scopes) == (approved, scopes)


def test_what_is_withdrawn_is_not_answered() -> None:
    with following({"prompts": [{"do": "choose", "option": "no"}]}) as stand:
        stand.push(question("r1"))
        stand.next()
        stand.push(Dismiss(request_id="r1", reason="deadline"))
        assert stand.says_no_more()


def test_an_update_is_reported_and_answered_in_its_own_revision() -> None:
    with following({"prompts": [{"do": "dismiss", "times": 1}]}) as stand:
        shown = question("r1")
        stand.push(shown)
        stand.next()
        stand.push(Update(**attrs.asdict(attrs.evolve(shown, revision=3), recurse=False)))
        assert stand.next().revision == 3
        assert stand.next().revision == 3
        assert stand.says_no_more()


@pytest.mark.requirement("CP-3.6")
def test_an_animation_is_finished_without_a_rule() -> None:
    with following({}) as stand:
        stand.push(shown := bubble("a1", Kind.ANIMATION, title=None, expression="happy"))
        assert stand.next() == presented(shown)
        assert stand.next() == Finished(request_id="a1")


def test_an_animation_that_a_rule_ignores_is_not_finished() -> None:
    with following({"prompts": [{"do": "ignore"}]}) as stand:
        stand.push(bubble("a1", Kind.ANIMATION, title=None, expression="happy"))
        stand.next()
        assert stand.says_no_more()


def test_a_progress_is_closed_however_often_it_changes() -> None:
    with following({"prompts": [{"do": "dismiss"}]}) as stand:
        stand.push(shown := progress("g1", 0.0))
        while isinstance(said := stand.next(), Presented):
            stand.push(shown := updated(shown, fraction=shown.revision % 100 / 100))
        assert isinstance(said, Dismissed)


@pytest.mark.requirement("G13")
def test_what_was_too_early_for_the_broker_is_done_again() -> None:
    with following({"prompts": [{"do": "choose", "option": "no"}]}) as stand:
        stand.push(question("r1"))
        stand.next()
        assert isinstance(stand.next(), Answer)
        stand.reply(rejected("not_armed"))
        assert isinstance(stand.next(), Answer)
        stand.reply(rejected("stale"))
        assert stand.says_no_more()


def test_what_is_set_aside_and_comes_back_has_used_its_rule_once() -> None:
    with following({"prompts": [{"do": "dismiss", "times": 1, "after_ms": 200}]}) as stand:
        stand.push(question("r1"))
        stand.next()
        stand.push(Dismiss(request_id="r1", reason="set_aside"))
        assert stand.says_no_more()
        stand.push(question("r1"))
        assert isinstance(stand.next(), Presented)
        assert isinstance(stand.next(), Dismissed)


def test_the_script_may_be_a_file(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"arming_ms": 0, "prompts": [{"do": "dismiss"}]}))
    with following({}, str(script)) as stand:
        stand.push(question("r1"))
        stand.next()
        assert isinstance(stand.next(), Dismissed)


@pytest.mark.parametrize("script", ["[]", "{", '{"prompts": [{"do": "guess"}]}', '{"arming_ms": "soon"}'])
def test_a_script_that_cannot_be_followed_ends_it_at_once(script: str) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPTED)],
        env={**os.environ, "COMPANION_SCRIPT": script, "COMPANION_PRESENTER_FD": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(b"scripted presenter: ")
