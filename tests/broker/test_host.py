"""The host entry of a real broker in this process: real store, real sockets, a scripted person (CP-1.3, CP-7.5)."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from broker.daemon.app import Broker, Setup, open_broker
from broker.daemon.committer import StoreLost
from broker.daemon.config import Config
from broker.daemon.errors import StartRefused
from broker.daemon.host import HostCutOff, HostRefused
from broker.paths import Paths
from handlers.companion.rows import REQUESTS, WAITS
from handlers.connections import CONNECTIONS
from handlers.policy import Policy
from handlers.presenter.rows import LINK
from protocols.companion.states import State
from protocols.json_values import JSONObject
from protocols.refusal import ErrorCode
from protocols.strict_json import encode

SCRIPTED = Path(__file__).parents[2] / "fixtures" / "presenters" / "scripted.py"
SCRIPT = {
    "arming_ms": 10,
    "prompts": [
        {"title": "*deploy*", "do": "choose", "option": "yes"},
        {"do": "ignore"},
    ],
}
GIVE_UP_SECONDS = 20
QUESTION: JSONObject = {
    "capability": "interaction.choose",
    "params": {"title": "wait", "options": [{"id": "yes", "label": "Yes"}, {"id": "no", "label": "No"}]},
    "timeoutMs": 600_000,
}
DEPLOY: JSONObject = {**QUESTION, "params": {**QUESTION["params"], "title": "deploy?"}}  # type: ignore[dict-item]


def setup_in(folder: Path, *, person: bool = True, **more: Any) -> Setup:
    script = folder / "script.json"
    script.write_text(json.dumps(SCRIPT))
    run = folder / "run"
    paths = Paths(
        runtime=run,
        state=folder / "state",
        config_file=folder / "config.toml",
        credentials=folder / "credentials",
        lease_socket=run / "ai-protection.sock",
    )
    kind = f"exec:{sys.executable} {SCRIPTED} {script}" if person else "none"
    return Setup(Config(policy=Policy(arming_ms=0)), paths, presenter=kind, **more)


@asynccontextmanager
async def broker_in(folder: Path, **more: Any) -> AsyncIterator[Broker]:
    """A running broker whose presenter, if it is to have one, is there."""
    with trio.fail_after(GIVE_UP_SECONDS):
        async with open_broker(setup_in(folder, **more)) as broker:
            await until(lambda: rows(broker, LINK) or not more.get("person", True))
            yield broker


async def until(fact: Callable[[], object]) -> None:
    """Wait for what the broker shows by its rows alone."""
    while not fact():  # noqa: ASYNC110  # the broker has no event for its tests
        await trio.sleep(0.01)


def rows(broker: Broker, table: Any) -> list[Any]:
    return list(broker.ledger.rows.all(table))


def refused(code: ErrorCode, **details: object) -> pytest.RaisesExc[HostRefused]:
    """Expect this refusal with these details among others."""
    return pytest.RaisesExc(
        HostRefused, check=lambda no: no.code is code and details.items() <= no.details.items()
    )


# -- calls -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-1.3", "CP-3.3")
async def test_the_host_asks_and_a_person_answers(short_path: Path) -> None:
    async with broker_in(short_path) as broker:
        seen = await broker.host.create(DEPLOY)
        while seen.ended_at is None:
            wait: JSONObject = {
                "requestId": seen.request_id,
                "afterRevision": seen.revision,
                "waitMs": 10_000,
            }
            seen = (await broker.host.wait(wait)).request
        assert (seen.state.value, seen.reason, seen.result) == (
            "completed",
            "answered",
            {"selectedId": "yes"},
        )
        assert await broker.host.get({"requestId": seen.request_id}) == seen
        assert await broker.host.cancel({"requestId": seen.request_id}) == seen


@pytest.mark.requirement("CP-1.3", "CP-3.11")
async def test_the_host_changes_what_it_shows(short_path: Path) -> None:
    async with broker_in(short_path) as broker:
        made = await broker.host.create(
            {"capability": "progress.track", "params": {"title": "copying"}, "timeoutMs": 60_000}
        )
        await until(lambda: rows(broker, REQUESTS)[0].displayed_at is not None)
        shown = await broker.host.get({"requestId": made.request_id})
        changed = await broker.host.update(
            {"requestId": shown.request_id, "expectedRevision": shown.revision, "params": {"fraction": 0.5}}
        )
        assert changed.revision == shown.revision + 1
        with refused(ErrorCode.REVISION_CONFLICT):
            await broker.host.update(
                {"requestId": shown.request_id, "expectedRevision": 1, "params": {"fraction": 1}}
            )


NOT_PARAMS: dict[str, tuple[Any, dict[str, object]]] = {
    "no number": ({**QUESTION, "timeoutMs": float("nan")}, {}),
    "no text": ({**QUESTION, "taskId": "\ud800"}, {}),
    "over 64 bits": ({**QUESTION, "timeoutMs": 2**63}, {"field": "timeoutMs"}),
    "not JSON": ({**QUESTION, "params": {"title": object()}}, {}),
    "too long": ({**QUESTION, "taskId": "x" * 70_000}, {"reason": "too long", "limit": 65_536}),
    "missing": ({"capability": "notice.show"}, {"field": "params", "reason": "missing"}),
    "unknown": ({**QUESTION, "clientId": "host"}, {"field": "clientId", "reason": "unknown member"}),
    "no integer": ({**QUESTION, "timeoutMs": 60_000.0}, {"field": "timeoutMs"}),
    "no object": ([], {"reason": "not an object"}),
    "deep inside": ({**QUESTION, "params": {"title": 7, "options": []}}, {"field": "params.title"}),
}


@pytest.mark.requirement("CP-1.3", "CP-1.4")
@pytest.mark.parametrize("case", NOT_PARAMS)
async def test_what_no_client_could_have_sent_the_host_cannot_either(short_path: Path, case: str) -> None:
    params, details = NOT_PARAMS[case]
    async with broker_in(short_path, person=False) as broker:
        with refused(ErrorCode.INVALID_PARAMS, **details):
            await broker.host.create(params)
        assert rows(broker, REQUESTS) == []


async def test_too_deep_params_are_refused(short_path: Path) -> None:
    deep: Any = {}
    for _ in range(40):
        deep = {"x": deep}
    async with broker_in(short_path, person=False) as broker:
        with refused(ErrorCode.INVALID_PARAMS):
            await broker.host.create({**QUESTION, "params": deep})


async def test_the_caller_may_go_on_using_its_values(short_path: Path) -> None:
    """Nothing that the host still holds is what the broker keeps."""
    async with broker_in(short_path) as broker:
        params: Any = json.loads(encode(QUESTION))
        made = await broker.host.create({**params, "idempotencyKey": "k"})
        params["params"]["options"].clear()
        again = await broker.host.create({**QUESTION, "idempotencyKey": "k"})
        assert again.request_id == made.request_id


async def test_a_refusal_says_whether_to_try_again_and_nothing_of_the_content(short_path: Path) -> None:
    async with broker_in(short_path, person=False) as broker:
        with pytest.raises(HostRefused) as no:
            await broker.host.create(DEPLOY)
    assert (no.value.code, no.value.details) == (ErrorCode.RUNTIME_UNAVAILABLE, {"reason": "no_presenter"})
    assert no.value.retryable
    assert "deploy" not in str(no.value)


# -- cancellation, faults and the end --------------------------------------------------------------------------


async def open_wait(broker: Broker, failed: Callable[[BaseException], None] = lambda error: None) -> None:
    asked = await broker.host.create(QUESTION)
    await until(lambda: rows(broker, REQUESTS)[0].state is State.AWAITING_USER)
    seen = await broker.host.get({"requestId": asked.request_id})
    try:
        await broker.host.wait(
            {"requestId": seen.request_id, "afterRevision": seen.revision, "waitMs": 60_000}
        )
    except (HostRefused, HostCutOff) as error:
        failed(error)


@pytest.mark.requirement("CP-3.9", "CP-4.5")
async def test_a_cancelled_wait_leaves_nothing_behind_and_the_request_goes_on(short_path: Path) -> None:
    async with broker_in(short_path) as broker:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(open_wait, broker)
            await until(lambda: rows(broker, WAITS))
            nursery.cancel_scope.cancel()
        assert rows(broker, WAITS) == []
        assert broker.host._pending == {}
        (request,) = rows(broker, REQUESTS)
        ended = await broker.host.cancel({"requestId": request.id})
        assert ended.reason == "cancelled_by_client"


async def test_a_create_that_is_cancelled_before_it_begins_makes_nothing(short_path: Path) -> None:
    async with broker_in(short_path) as broker:
        with trio.CancelScope() as scope:
            scope.cancel()
            await broker.host.create(QUESTION)
        assert scope.cancelled_caught
        assert rows(broker, REQUESTS) == []


async def test_a_create_that_is_cancelled_while_it_is_stored_still_tells_its_id(short_path: Path) -> None:
    async with broker_in(short_path) as broker:
        told = []
        async with trio.open_nursery() as nursery:

            async def create() -> None:
                told.append(await broker.host.create(QUESTION))

            nursery.start_soon(create)
            while not rows(broker, REQUESTS):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        assert [one.request_id for one in told] == [row.id for row in rows(broker, REQUESTS)]


@pytest.mark.parametrize("ask_for_the_end", [True, False])
async def test_the_end_of_the_broker_answers_a_wait(short_path: Path, ask_for_the_end: bool) -> None:
    errors: list[Any] = []
    async with trio.open_nursery() as nursery, broker_in(short_path) as broker:
        nursery.start_soon(open_wait, broker, errors.append)
        await until(lambda: rows(broker, WAITS))
        if ask_for_the_end:  # while the block goes on: nothing in it may have to wait for the wait
            broker.stop()
            await until(lambda: errors)
            with refused(ErrorCode.RUNTIME_UNAVAILABLE, reason="stopping"):
                await broker.host.wait({"requestId": "x", "afterRevision": 0, "waitMs": 0})
            assert rows(broker, WAITS) == []
            assert len(rows(broker, REQUESTS)) == 1
    (error,) = errors
    assert (error.code, error.details) == (ErrorCode.RUNTIME_UNAVAILABLE, {"reason": "stopping"})
    with refused(ErrorCode.RUNTIME_UNAVAILABLE, reason="stopping"):
        await broker.host.create(QUESTION)


@attrs.define
class Disk:
    """The store's fault hook: raises before the calls that it is told, with the code of `error`."""

    error: int = sqlite3.SQLITE_IOERR
    fails: tuple[str, ...] = ()

    def __call__(self, name: str) -> None:
        if name in self.fails:
            failure = sqlite3.OperationalError("by the test")
            failure.sqlite_errorcode = self.error
            raise failure


@pytest.mark.requirement("CP-4.12")
async def test_what_could_not_be_stored_is_not_acknowledged_to_the_host(short_path: Path) -> None:
    disk = Disk()
    async with broker_in(short_path, fault=disk) as broker:
        disk.fails = ("before write requests",)
        with refused(ErrorCode.RUNTIME_UNAVAILABLE, reason="not_saved"):
            await broker.host.create(QUESTION)
        disk.fails = ()
        assert rows(broker, REQUESTS) == []
        assert (await broker.host.create(QUESTION)).revision == 1


@pytest.mark.requirement("CP-4.12")
async def test_when_the_store_is_lost_the_host_is_told_nothing_and_does_not_hang(short_path: Path) -> None:
    disk, errors = Disk(), list[BaseException]()

    async def lose_the_store(outside: trio.Nursery) -> None:
        async with broker_in(short_path, fault=disk) as broker:
            outside.start_soon(open_wait, broker, errors.append)
            await until(lambda: rows(broker, WAITS))
            disk.fails = ("before begin",)
            await broker.host.create(QUESTION)

    async with trio.open_nursery() as outside:
        with pytest.raises(BaseExceptionGroup) as lost:
            await lose_the_store(outside)
    assert lost.group_contains(StoreLost)
    assert lost.group_contains(HostCutOff)
    assert [type(error) for error in errors] == [HostCutOff]


async def test_a_broker_that_is_cancelled_leaves_no_call_waiting(short_path: Path) -> None:
    """Not even one in a clean-up that is shielded from the cancellation."""
    with trio.CancelScope() as scope:
        async with broker_in(short_path) as broker:
            try:
                scope.cancel()
                await trio.lowlevel.checkpoint()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(0.1)
                    with pytest.raises(HostCutOff):
                        await broker.host.create(QUESTION)
    assert scope.cancelled_caught


# -- its identity ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("CP-1.3", "CP-4.4")
@pytest.mark.parametrize("label", ["", "a\nb", "x" * 65, "\u200b"])
async def test_a_label_that_nobody_can_read_is_refused_at_the_start(short_path: Path, label: str) -> None:
    with pytest.raises(StartRefused, match="host_label"):
        async with open_broker(setup_in(short_path, host_label=label)):
            pass
    assert not (short_path / "run").exists()


@pytest.mark.requirement("CP-1.3", "CP-7.5", "CP-5.10")
async def test_no_socket_leads_to_the_hosts_connection(short_path: Path) -> None:
    async with broker_in(short_path, person=False) as broker:
        asked = [row for row in rows(broker, CONNECTIONS) if row.protocol == "host"]
        assert [(row.number, row.process, row.client_id) for row in asked] == [(0, None, None)]
        for name in ("companion.sock", "control.sock", "ai-protection.sock"):
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(os.fspath(short_path / "run" / name))
                await until(lambda: len(rows(broker, CONNECTIONS)) > 1)
                assert [row.number for row in rows(broker, CONNECTIONS) if row.protocol == "host"] == [0]
            await until(lambda: len(rows(broker, CONNECTIONS)) == 1)
