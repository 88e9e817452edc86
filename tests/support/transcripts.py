"""Conformance transcripts: reading the files of fixtures/conformance and playing them against a `Driver`.

The format is described in fixtures/conformance/README.md.  A driver is a broker together with the means
to talk to it; the same conversation runs in virtual time (tests/conformance/test_lease_transcripts.py)
and over real sockets with real processes (tests/conformance/test_lease_over_socket.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import attrs

from handlers.policy import App, LeasePolicy, Limits, wire_name
from protocols.timestamps import rfc3339

FOLDER = Path(__file__).parent.parent.parent / "fixtures" / "conformance"
APPS = {
    "org.example.Editor": App("Editor", "/opt/example/bin/editor"),
    "org.example.Browser": App("Browser", "/opt/example/bin/browser"),
}
RUNNER = "runner"
"""The process that connects where a step names no other."""

_POLICY_MS = {
    "minLeaseSeconds": "min_ms",
    "maxLeaseSeconds": "max_ms",
    "graceSeconds": "grace_ms",
    "closeCheckTimeoutSeconds": "close_check_timeout_ms",
    "closeCheckCooldownSeconds": "close_check_cooldown_ms",
    "startupHoldSeconds": "startup_hold_ms",
}
_POLICY_PLAIN = {
    "enabled": "enabled",
    "closeCheckStrikes": "close_check_strikes",
    "maxLeasesPerHolder": "max_leases_per_holder",
    "maxHolders": "max_holders",
    "maxConnectionsPerHolder": "max_connections_per_holder",
}


class Driver(Protocol):
    """A broker and the means to talk to it.  Connections and processes go by the names of the transcript."""

    tolerance_ms: int
    """How far a time may be from the expected one."""

    async def spawn(self, name: str, parent: str | None) -> int:
        """Start a process; gives its pid."""

    async def connect(self, name: str, protocol: str, process: str) -> None:
        """Open a connection from a process."""

    async def send(self, name: str, data: bytes) -> None: ...

    async def read(self, name: str) -> bytes | None:
        """The next line; None when the connection was closed.  AssertionError when nothing comes."""

    async def is_quiet(self, name: str) -> bool:
        """Whether nothing has come that was not read, the end of the connection included."""

    async def half_close(self, name: str) -> None: ...

    async def disconnect(self, name: str) -> None: ...

    async def kill(self, process: str) -> None:
        """End a process as SIGKILL does, and let the broker find out."""

    async def wait(self, seconds: float) -> None: ...

    async def restart(self) -> None:
        """End the broker and start it again with what it has stored; every connection is gone."""

    def wall_ms(self) -> int: ...


@attrs.frozen
class Transcript:
    """One conversation and what it is about."""

    name: str
    title: str
    why: str
    requirements: tuple[str, ...]
    policy: LeasePolicy
    limits: Limits
    steps: tuple[Mapping[str, Any], ...]


def read_transcripts(protocol: str) -> list[Transcript]:
    """Every transcript of a protocol, by file name."""
    return [_read(path) for path in sorted((FOLDER / protocol).glob("*.jsonl"))]


def _read(path: Path) -> Transcript:
    header, *steps = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    assert header.keys() <= {"title", "why", "requirements", "policy", "limits"}, path.name
    return Transcript(
        name=path.stem,
        title=header["title"],
        why=header["why"],
        requirements=tuple(header["requirements"]),
        policy=_policy(header.get("policy", {})),
        limits=_limits(header.get("limits", {})),
        steps=tuple(steps),
    )


def _policy(members: Mapping[str, Any]) -> LeasePolicy:
    changes: dict[str, Any] = {"startup_hold_ms": 0}
    for name, value in members.items():
        if name in _POLICY_MS:
            changes[_POLICY_MS[name]] = round(value * 1000)
        else:
            changes[_POLICY_PLAIN[name]] = value
    return LeasePolicy(**changes)


def _limits(members: Mapping[str, int]) -> Limits:
    """Published limits, by the names of runtime.describe."""
    names = {wire_name(field.name): field.name for field in attrs.fields(Limits)}
    return Limits(**{names[name]: value for name, value in members.items()})


# -- playing -------------------------------------------------------------------------------------------


class Play:
    """One conversation under way: what was bound, which process has which pid."""

    def __init__(self, driver: Driver, runner_pid: int) -> None:
        self._driver = driver
        self._pids = {RUNNER: runner_pid}
        self._bound: dict[str, Any] = {}
        self._verbs: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
            "process": self._process,
            "connect": self._connect,
            "from": self._from,
            "to": self._to,
            "quiet": self._quiet,
            "half_close": lambda step: driver.half_close(step["half_close"]),
            "disconnect": lambda step: driver.disconnect(step["disconnect"]),
            "kill": lambda step: driver.kill(step["kill"]),
            "wait": lambda step: driver.wait(step["wait"]),
            "restart": lambda step: driver.restart(),
        }

    async def run(self, transcript: Transcript) -> None:
        """Play every step; AssertionError names the first that goes wrong."""
        for number, step in enumerate(transcript.steps, start=2):
            try:
                await self._verbs[next(iter(step))](step)
            except AssertionError as error:
                raise AssertionError(f"{transcript.name}.jsonl, line {number}: {step}\n{error}") from None

    async def _process(self, step: Mapping[str, Any]) -> None:
        self._pids[step["process"]] = await self._driver.spawn(step["process"], step.get("parent"))

    async def _connect(self, step: Mapping[str, Any]) -> None:
        process = step.get("process", RUNNER)
        await self._driver.connect(step["connect"], step.get("protocol", "lease"), process)

    async def _from(self, step: Mapping[str, Any]) -> None:
        if "send" in step:
            data = json.dumps(self._filled(step["send"])).encode() + b"\n"
        else:
            data = step["bytes"].encode("latin-1") * step.get("times", 1)
        await self._driver.send(step["from"], data)

    async def _to(self, step: Mapping[str, Any]) -> None:
        line = await self._driver.read(step["to"])
        if "closed" in step:
            assert line is None, f"not closed: {line!r}"
            return
        assert line is not None, "the connection was closed"
        if "expect_all" in step:
            await self._match_all(step, json.loads(line))
        else:
            self._match(step["expect"], json.loads(line), "message")

    async def _match_all(self, step: Mapping[str, Any], first: Any) -> None:
        """Several messages whose order is not promised; each expected one takes the first that fits."""
        messages = [first]
        for _ in step["expect_all"][1:]:
            line = await self._driver.read(step["to"])
            assert line is not None, "the connection was closed"
            messages.append(json.loads(line))
        for expected in step["expect_all"]:
            fitting = [one for one in messages if self._fits(expected, one)]
            assert fitting, f"none of {messages!r} fits {expected!r}"
            messages.remove(fitting[0])

    def _fits(self, expected: Any, actual: Any) -> bool:
        try:
            self._match(expected, actual, "message")
        except AssertionError:
            return False
        return True

    async def _quiet(self, step: Mapping[str, Any]) -> None:
        for name in step["quiet"]:
            assert await self._driver.is_quiet(name), f"something came on {name}"

    # -- placeholders ----------------------------------------------------------------------------------

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._filled(member) for name, member in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        return self._value(value) if isinstance(value, str) and value.startswith("$") else value

    def _value(self, placeholder: str) -> Any:
        kind, _, name = placeholder[1:].partition(":")
        return self._pids[name] if kind == "pid" else self._bound[kind]

    def _match(self, expected: Any, actual: Any, where: str) -> None:
        if isinstance(expected, dict):
            assert isinstance(actual, dict), f"{where}: not an object: {actual!r}"
            assert expected.keys() == actual.keys(), f"{where}: members {sorted(actual)}, {actual!r}"
            for name, member in expected.items():
                self._match(member, actual[name], f"{where}.{name}")
        elif isinstance(expected, list):
            assert isinstance(actual, list), f"{where}: not an array: {actual!r}"
            assert len(expected) == len(actual), f"{where}: {len(actual)} items: {actual!r}"
            for index, item in enumerate(expected):
                self._match(item, actual[index], f"{where}.{index}")
        elif isinstance(expected, str) and expected.startswith("$"):
            self._match_placeholder(expected, actual, where)
        else:
            same = type(expected) is type(actual) and expected == actual
            assert same, f"{where}: {actual!r} is not {expected!r}"

    def _match_placeholder(self, placeholder: str, actual: Any, where: str) -> None:
        kind, _, argument = placeholder[1:].partition(":")
        match kind:
            case "any":
                return
            case "text":
                assert isinstance(actual, str), f"{where}: {actual!r} is not a text"
                assert actual, f"{where}: an empty text"
            case "bind":
                self._bound[argument] = actual
            case "in":
                self._match_time(float(argument), actual, where)
            case "between":
                low, high = map(float, argument.split(","))
                assert low <= actual <= high, f"{where}: {actual!r} is not between {low} and {high}"
            case _:
                expected = self._value(placeholder)
                assert actual == expected, f"{where}: {actual!r} is not {expected!r}"

    def _match_time(self, seconds: float, actual: Any, where: str) -> None:
        expected = self._driver.wall_ms() + round(seconds * 1000)
        low, high = (rfc3339(expected + sign * self._driver.tolerance_ms) for sign in (-1, 1))
        assert isinstance(actual, str), f"{where}: {actual!r} is not a time"
        assert len(actual) == len(low), f"{where}: {actual!r} is not RFC 3339 UTC with milliseconds"
        assert low <= actual <= high, f"{where}: {actual!r} is not {seconds} s from now"
