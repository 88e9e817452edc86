"""A whole broker in a terminal: a program pairs and asks, and a person at the keys decides (CP-5.6)."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.broker_process import CONFIG, ROOT, START_SECONDS
from tests.support.hands import SECONDS, Hands
from tests.support.lines import Rpc

LOG_IN = "import os, sys; os.login_tty(0); os.execv(sys.argv[1], sys.argv[1:])"
"""Makes its standard input the terminal of what it then becomes."""


@contextmanager
def broker_in_a_terminal(folder: Path) -> Iterator[Hands]:
    config = folder / "config.toml"
    config.write_text(CONFIG)
    config.chmod(0o600)
    master, slave = pty.openpty()
    environment = {
        **os.environ,
        "COMPANION_RUNTIME_DIR": str(folder / "run"),
        "COMPANION_STATE_DIR": str(folder / "state"),
        "COMPANION_CONFIG": str(config),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", LOG_IN, sys.executable, "-m", "broker.daemon", "--presenter", "terminal"],
        cwd=ROOT,
        env=environment,
        stdin=slave,
    )
    try:
        yield Hands(master)
    finally:
        process.terminate()
        process.wait(SECONDS)
        os.close(master)
        os.close(slave)


def connect(folder: Path) -> Rpc:
    path = folder / "run" / "companion.sock"
    until = time.monotonic() + START_SECONDS
    while not path.exists():
        assert time.monotonic() < until
        select.select([], [], [], 0.02)
    client = Rpc.connect(path)
    assert isinstance(client, Rpc)
    client.call("session.hello", protocolVersions=["0.1"], client={"name": "test", "version": "1"})
    return client


class Agent:
    """A paired program before the broker that the person's terminal belongs to."""

    def __init__(self, folder: Path, hands: Hands, *scopes: str) -> None:
        self.client = connect(folder)
        self.hands = hands
        self.pairing = self.client.call("pairing.request", clientName="Agent", scopes=list(scopes))
        hands.see(f"Code: {self.pairing['verificationCode']}")
        hands.see("> ")

    def authenticate(self) -> Any:
        """What the person has decided, used."""
        outcome = self.client.call("pairing.wait", pairingId=self.pairing["pairingId"], waitMs=10_000)
        self.hands.see("Done.")
        self.client.call("session.authenticate", clientId=outcome["clientId"], key=outcome["key"])
        return outcome

    def create(self, capability: str, timeout_ms: int = 60_000, **params: Any) -> Any:
        return self.client.call("requests.create", capability=capability, params=params, timeoutMs=timeout_ms)

    def choose(self, title: str, timeout_ms: int = 60_000) -> Any:
        options = [{"id": "yes", "label": "Allow"}, {"id": "no", "label": "Deny"}]
        return self.create("interaction.choose", timeout_ms, title=title, options=options)

    def get(self, request: Any) -> Any:
        return self.client.call("requests.get", requestId=request["requestId"])

    def wait_for(self, request: Any, instant: str) -> Any:
        """The request once it has been displayed, or has ended (`displayedAt`, `endedAt`)."""
        while request[instant] is None:
            waited = self.client.call(
                "requests.wait",
                requestId=request["requestId"],
                afterRevision=request["revision"],
                waitMs=10_000,
            )
            request = waited["request"]
        return request

    def end_of(self, request: Any) -> tuple[str, str, Any]:
        """How the request has ended."""
        ended = self.wait_for(request, "endedAt")
        return ended["state"], ended["reason"], ended["result"]


@pytest.fixture(scope="module")
def at_the_terminal() -> Iterator[tuple[Hands, Agent]]:
    """A person before a terminal with a broker in it, and a paired agent."""
    with (
        tempfile.TemporaryDirectory(prefix="cb-") as name,
        broker_in_a_terminal(Path(name)) as hands,
    ):
        hands.see("access for programs is on")
        agent = Agent(Path(name), hands, "discover", "notify", "interact", "animate")
        hands.type(f"approve {agent.pairing['verificationCode']}\r")
        agent.authenticate()
        yield hands, agent
        agent.client.close()


@pytest.mark.requirement("CP-5.6", "CP-3.5", "CP-5.1")
def test_a_person_at_a_terminal_pairs_and_answers(tmp_path: Path) -> None:
    with broker_in_a_terminal(tmp_path) as hands:
        hands.see("access for programs is on")
        agent = Agent(tmp_path, hands, "discover", "interact")
        hands.type(f"approve {agent.pairing['verificationCode']} interact\r")
        outcome = agent.authenticate()
        assert (outcome["status"], outcome["scopes"]) == ("approved", ["interact"])
        request = agent.choose("Read file?")
        hands.see("| Agent")
        hands.see("| Read file?")
        hands.see("> ")
        hands.type("2\r")
        assert agent.end_of(request) == ("completed", "answered", {"selectedId": "no"})
        assert outcome["key"] not in hands.screen
        agent.client.close()


@pytest.mark.requirement("G03")
def test_a_text_of_the_greatest_length_is_delivered_whole_and_a_longer_paste_refused(
    at_the_terminal: tuple[Hands, Agent],
) -> None:
    hands, agent = at_the_terminal
    request = agent.create("interaction.ask_text", title="Paste it", maxLength=4_000)
    hands.see("0/4000 > ")
    hands.type("猫" * 100_000 + "\r")
    hands.see("At most 4000 characters are possible")
    hands.see("4000/4000 > ")
    assert agent.get(request)["state"] == "awaiting_user"
    hands.type("\r")
    assert agent.end_of(request) == ("completed", "answered", {"text": "猫" * 4_000})


@pytest.mark.requirement("G13")
def test_a_second_enter_and_one_held_down_answer_no_other_question(
    at_the_terminal: tuple[Hands, Agent],
) -> None:
    hands, agent = at_the_terminal
    first, second = agent.choose("Read file?"), agent.choose("Delete folder?")
    hands.see("| Read file?")
    hands.see("> ")
    hands.type("1\r")
    time.sleep(0.15)
    hands.type("1\r")
    hands.see("| Delete folder?")
    for _ in range(30):
        hands.type("1\r")
        time.sleep(0.03)
    assert agent.end_of(first) == ("completed", "answered", {"selectedId": "yes"})
    assert agent.get(second)["state"] == "awaiting_user"
    hands.see("> ")
    hands.type("2\r")
    assert agent.end_of(second) == ("completed", "answered", {"selectedId": "no"})


@pytest.mark.requirement("G14")
def test_nobody_answering_denying_closing_and_cancelling_are_four_ends_for_both_sides(
    at_the_terminal: tuple[Hands, Agent],
) -> None:
    hands, agent = at_the_terminal
    nobody = agent.choose("Nobody?", timeout_ms=2_000)
    hands.see("The question is gone: its time is over.")
    assert agent.end_of(nobody) == ("expired", "deadline", None)
    denied = agent.choose("Denied?")
    hands.see("| Denied?")
    hands.see("> ")
    hands.type("2\r")
    hands.see("Your answer has been taken.")
    assert agent.end_of(denied) == ("completed", "answered", {"selectedId": "no"})
    closed = agent.choose("Closed?")
    hands.see("| Closed?")
    hands.see("> ")
    hands.type("x\r")
    hands.see("Closed, without an answer.")
    assert agent.end_of(closed) == ("cancelled", "dismissed_by_user", None)
    cancelled = agent.choose("Cancelled?")
    hands.see("| Cancelled?")
    agent.client.call("requests.cancel", requestId=cancelled["requestId"])
    hands.see("The question is gone: its program has taken it back.")
    assert agent.end_of(cancelled) == ("cancelled", "cancelled_by_client", None)


@pytest.mark.requirement("G08", "CP-6.3", "CP-2.14")
def test_a_text_that_shows_one_thing_and_means_another_is_seen_through(
    at_the_terminal: tuple[Hands, Agent],
) -> None:
    hands, agent = at_the_terminal
    options = [
        {"id": "y", "label": "Allow"},
        {"id": "n", "label": "Al\u200blow"},
        {"id": "z", "label": "Deny\u001b[2K\rAllow"},
    ]
    title = "Delete report\u202efdp.exe\u202c now?"
    request = agent.create("interaction.choose", title=title, options=options)
    hands.see("| Delete report<U+202E>fdp.exe<U+202C> now?")
    hands.see("1) Allow")
    hands.see("2) Al<U+200B>low")
    hands.see("3) Deny<U+001B>[2K<U+000D>Allow")
    hands.see("> ")
    hands.type("3\r")
    assert agent.end_of(request) == ("completed", "answered", {"selectedId": "z"})
    request = agent.choose("למחוק?")
    hands.see("| למחוק?")
    hands.see("> ")
    hands.type("1\r")
    assert agent.end_of(request)[0] == "completed"
    assert b"\x1b" not in hands.drawn


@pytest.mark.requirement("CP-3.11", "CP-2.11", "CP-3.6")
def test_a_progress_moves_is_closed_and_an_animation_is_finished(
    at_the_terminal: tuple[Hands, Agent],
) -> None:
    hands, agent = at_the_terminal
    progress = agent.create("progress.track", title="Build")
    hands.see("progress ")
    number = hands.see(",")
    hands.see("how much is done is not known")
    progress = agent.wait_for(progress, "displayedAt")
    agent.client.call(
        "requests.update",
        requestId=progress["requestId"],
        expectedRevision=progress["revision"],
        params={"fraction": 0.5, "detail": "half of it"},
    )
    hands.see(f"progress {number}, information: [##########..........] 50% done")
    hands.see("| half of it")
    assert agent.get(progress)["state"] == "running"
    hands.see("> ")
    hands.type(f":close {number}\r")
    hands.see("Closed.")
    assert agent.end_of(progress) == ("cancelled", "dismissed_by_user", None)
    played = agent.create("animation.play", expression="greeting")
    hands.see("| aion: greeting")
    assert agent.end_of(played) == ("completed", "finished", None)


@pytest.mark.requirement("CP-4.9")
def test_the_person_hides_the_companion_while_a_text_is_asked_for(
    at_the_terminal: tuple[Hands, Agent],
) -> None:
    hands, agent = at_the_terminal
    request = agent.create("interaction.ask_text", title="Your name?")
    hands.see("0/1000 > ")
    hands.type(":hide\r")
    hands.see("The question is gone: the companion has been hidden.")
    hands.see("The companion is hidden")
    assert agent.end_of(request) == ("cancelled", "hidden_by_user", None)
    hands.see("> ")
    hands.type(":show\r")
    hands.see("The companion is shown")


@pytest.mark.requirement("CP-4.9")
def test_the_person_mutes_who_asks_without_naming_it(at_the_terminal: tuple[Hands, Agent]) -> None:
    hands, agent = at_the_terminal
    request = agent.choose("May I?")
    hands.see("| May I?")
    hands.see("> ")
    hands.type(":mute 10\r")
    hands.see("The question is gone: its program has been muted.")
    hands.see("This client is muted for 10 min:")
    assert agent.end_of(request) == ("cancelled", "muted_by_user", None)
    refused = agent.client.refused(
        "requests.create", capability="notice.show", params={"text": "!"}, timeoutMs=9_000
    )
    assert refused["reason"] == "muted"
    hands.see("> ")
    hands.type(":unmute Agent\r")
    hands.see("This client may ask again:")
    agent.create("notice.show", text="Thank you.")
    hands.see("| Thank you.")
