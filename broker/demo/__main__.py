"""`python -m broker.demo`: sets the stage, lets the agent play, and asks as the owner whether the app may be closed.

Exit status 0 when everything was shown; nothing is left behind either way, also after Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from types import FrameType

from broker.client.blocking.control import ControlConnection
from broker.client.blocking.stream import Deadline
from broker.demo.stage import APP_KEY, Stage, StageFailed, running, scripted_presenter, stage
from broker.demo.transcript import ToldStream, say, say_heading
from protocols.control.client import ControlClient
from protocols.control.leases import LeaseList, ListLeases, MayClose, MayCloseResult, QuitDone, Reason

_PERSON_SECONDS = 600.0
_LEASE_SECONDS = 20.0
_CLOSE_CHECK_SECONDS = 10.0
_LOOK_AGAIN_SECONDS = 0.1
_INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGENT = (sys.executable, "-P", "-m", "broker.demo.agent", APP_KEY)


class _OwnerStream(ToldStream):
    who = "owner"


class _Owner:
    """Looks at leases without a word, and asks for the close aloud."""

    def __init__(self, on_stage: Stage, agent: subprocess.Popen[bytes]) -> None:
        self._stage = on_stage
        self._agent = agent

    def wait_until_expired(self, seconds: float) -> None:
        """Until the agent's lease and its grace are over."""
        deadline = Deadline.after(seconds)
        with ControlConnection.open(self._stage.control_socket) as quiet:
            while not deadline.passed:
                if self._agent.poll() is not None:
                    raise StageFailed("the agent left too early")
                found = quiet.call("leases.list", ListLeases()).result
                if isinstance(found, LeaseList) and [one.state for one in found.leases] == ["expired"]:
                    return
                deadline.pause(_LOOK_AGAIN_SECONDS)
        raise StageFailed("no lease ran out in time")

    def ask(self, *, reserve: bool) -> MayCloseResult:
        """May the app be closed?"""
        with self._aloud() as connection:
            while True:
                params = MayClose(app_key=APP_KEY, reserve=reserve)
                answer = connection.call("leases.may_close", params, _CLOSE_CHECK_SECONDS).result
                assert isinstance(answer, MayCloseResult)
                if answer.reason is not Reason.COOLDOWN:
                    return answer
                time.sleep(answer.retry_after_seconds or _LOOK_AGAIN_SECONDS)

    def close_app(self, ticket: str) -> None:
        """Quit the app and say so."""
        self._stage.app.terminate()
        self._stage.app.wait()
        with self._aloud() as connection:
            connection.call("leases.quit_done", QuitDone(ticket=ticket))

    def _aloud(self) -> ControlConnection:
        stream = _OwnerStream.connect(self._stage.control_socket, Deadline.after(_LEASE_SECONDS))
        return ControlConnection(stream, ControlClient())


def main() -> int:
    """Show the demo; its exit status."""
    for number in _INTERRUPTIONS:
        signal.signal(number, _leave)
    try:
        _show()
    except StageFailed as error:
        say(f"The demo failed: {error}")
        return 1
    except BrokenPipeError:  # nobody reads on; keep the interpreter from writing into the pipe when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def _show() -> None:
    person = _somebody_is_there()
    say("Companion Broker: an agent asks a person, and keeps an app open")
    say(
        f"   presenter  {'the terminal: you answer' if person else 'nobody is at a terminal, so a script answers'}"
    )
    with stage("terminal" if person else scripted_presenter()) as on_stage:
        say(f"   broker     process {on_stage.broker.pid}, its sockets and state in a private folder")
        say(f"   app        process {on_stage.app.pid}, known as {APP_KEY}")
        with running(_AGENT, on_stage.environment) as agent:
            say(f"   agent      process {agent.pid}")
            _play_owner(_Owner(on_stage, agent))
            if agent.wait(_LEASE_SECONDS) != 0:
                raise StageFailed("the agent failed")
    say_heading("Done. The broker, the app, the agent and the private folder are gone.")


def _play_owner(owner: _Owner) -> None:
    owner.wait_until_expired(_PERSON_SECONDS)
    say_heading("5. The lease has run out: the owner asks, the broker asks the agent, the agent extends")
    if owner.ask(reserve=False).allowed:
        raise StageFailed("the app was given up although the agent extended its lease")
    owner.wait_until_expired(_LEASE_SECONDS)
    say_heading("6. It has run out again: this time the agent allows the close")
    answer = owner.ask(reserve=True)
    if not answer.allowed or answer.ticket is None:
        raise StageFailed(f"the close was not allowed ({answer.reason.value})")
    owner.close_app(answer.ticket)


def _somebody_is_there() -> bool:
    """Whether a person sees this output and can type."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return sys.stdin.isatty() and sys.stdout.isatty()


def _leave(number: int, _frame: FrameType | None) -> None:
    """End like an error would, so that everything is cleared away, and let nothing interrupt that."""
    for interruption in _INTERRUPTIONS:
        signal.signal(interruption, signal.SIG_IGN)
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
