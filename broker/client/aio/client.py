"""The companion, with trio.

    async with Companion.open(profile="my-agent") as companion:
        if await companion.ask("Deploy?", {"ship": "Ship it", "wait": "Wait"}) == "ship":
            ...

Tasks may share a `Companion`: any number of calls are under way over its one connection.  A call may be cancelled at
any point.  What the calls mean is `broker.client.asking` and `broker.client.progress`; this is only their trio form.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Unpack

import trio

from broker.client import asking
from broker.client.aio.background import background
from broker.client.aio.paired import PairedClient
from broker.client.asking import Asking, Question, RequestOptions, Tone
from broker.client.errors import ClientError
from broker.client.outcomes import completed
from broker.client.plan import RECONNECT_SECONDS, Plan, Result, T
from broker.client.profiles import PROGRAM, find_target
from broker.client.progress import ProgressChanges, Tracking
from protocols.companion.capabilities import CapabilityDescription
from protocols.companion.client import Credential
from protocols.companion.discovery import CapabilityList, CharacterList, StyleList
from protocols.companion.messages import (
    AuthenticateResult,
    CreateRequest,
    Implementation,
    RuntimeDescription,
    Snapshot,
)
from protocols.json_values import JSONObject


class Companion:
    """See the module header.

    Every method raises CallFailed when the broker refuses, and NotConnected when it cannot be reached, or not again
    within `patience` seconds.
    """

    def __init__(self, client: PairedClient, identity: AuthenticateResult) -> None:
        self.identity = identity
        """Who this program is to the broker: client id, label and scopes, as they were paired."""
        self._client = client

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        profile: str | None = None,
        *,
        path: Path | None = None,
        credential: Credential | None = None,
        program: Implementation = PROGRAM,
        patience: float = RECONNECT_SECONDS,
    ) -> AsyncIterator[Companion]:
        """Connect as a paired client, for the block.

        `profile` names a credential profile (`companion pair`); none: the only one there is.  `path` is another
        socket than that of the user's own broker, `credential` takes the place of a profile, `program` is what the
        program calls itself.  Raises CredentialError, NotConnected, CallFailed.
        """
        target = find_target(profile, path, credential)
        async with background() as tasks:
            client = PairedClient(tasks, target.path, program, target.credential, patience)
            try:
                yield cls(client, await client.connect())
            finally:
                client.close()

    # -- questions --------------------------------------------------------------------------------------------

    async def ask(
        self,
        title: str,
        options: Mapping[str, str],
        *,
        withdraw: bool = True,
        **how: Unpack[RequestOptions],
    ) -> str:
        """Let the person choose; the id of the option that was chosen.

        `options` gives the label of each of two to five ids.  Raises NotCompleted when nobody has answered: there is
        no default.  A call that is cancelled, or fails, takes the question from the screen, unless `withdraw` is
        false: then the same `key` finds it again.
        """
        return await self._answer(asking.choice(title, options, how), withdraw)

    async def confirm(
        self,
        title: str,
        *,
        yes: str = "Yes",
        no: str = "No",
        withdraw: bool = True,
        **how: Unpack[RequestOptions],
    ) -> bool:
        """Let the person say yes or no; both only by a click of theirs.  Raises as `ask` does."""
        return await self._answer(asking.confirmation(title, yes, no, how), withdraw)

    async def input(
        self,
        title: str,
        *,
        placeholder: str = "",
        multiline: bool = False,
        max_length: int = 1_000,
        withdraw: bool = True,
        **how: Unpack[RequestOptions],
    ) -> str:
        """Let the person write a text of at most `max_length` characters, never empty.  Raises as `ask` does."""
        return await self._answer(asking.text(title, placeholder, multiline, max_length, how), withdraw)

    async def _answer(self, question: Question[T], withdraw: bool) -> T:
        one = Asking(self._client.calls, question.request)
        async with self._taken_back(one) if withdraw else contextlib.nullcontext():
            return await self._client.run(one.answer(question))

    @contextlib.asynccontextmanager
    async def _taken_back(self, one: Asking | Tracking) -> AsyncIterator[None]:
        """What the block leaves unfinished is withdrawn, also when the block is cancelled."""
        try:
            yield
        except BaseException:
            with trio.CancelScope(shield=True), contextlib.suppress(ClientError):
                await self._client.run(one.withdraw(), asking.WITHDRAW_SECONDS)
            raise

    # -- what is only shown -----------------------------------------------------------------------------------

    async def notify(
        self,
        text: str,
        *,
        title: str | None = None,
        tone: Tone = "information",
        seconds: float = 8.0,
        **how: Unpack[RequestOptions],
    ) -> Snapshot:
        """Show a text for so many seconds; returns once that is accepted (`outcome` waits until it was shown).

        Raises Unavailable when nothing can be shown at present.
        """
        return await self._made(asking.notice(text, title, tone, seconds, how))

    async def play(self, expression: str, **how: Unpack[RequestOptions]) -> Snapshot:
        """Let the character play one of its expressions; returns and raises as `notify` does."""
        return await self._made(asking.animation(expression, how))

    async def _made(self, request: CreateRequest) -> Snapshot:
        return await self._client.run(Asking(self._client.calls, request).made())

    @contextlib.asynccontextmanager
    async def progress(
        self,
        title: str,
        *,
        fraction: float | None = None,
        detail: str = "",
        tone: Tone = "information",
        **how: Unpack[RequestOptions],
    ) -> AsyncIterator[Progress]:
        """Show how far the work of the block has come: finished at its end, taken away when it raises.

        That it cannot be shown never stops the work; see `Progress.ended`.
        """
        request = asking.progress(title, fraction, detail, tone, how)
        tracking = Tracking(self._client.calls, request)
        async with self._taken_back(tracking):
            await self._client.run(tracking.start())
            yield Progress(self._client, tracking)
            await self._client.run(tracking.finish())

    # -- requests ---------------------------------------------------------------------------------------------

    async def create(self, capability: str, params: JSONObject, **how: Unpack[RequestOptions]) -> Snapshot:
        """Make any request; its snapshot says that it was accepted, nothing more.  `timeout` is 60 s by default."""
        request = asking.request(capability, params, asking.NOTICE_SECONDS, how)
        return await self._value(self._client.calls.create(request))

    async def get(self, request_id: str) -> Snapshot:
        """The request as it stands."""
        return await self._value(self._client.calls.get(request_id))

    async def wait(
        self, request_id: str, *, after_revision: int | None = None, seconds: float | None = None
    ) -> Snapshot:
        """The request once it has ended, or has another revision than the one named; after `seconds` as it stands."""
        if after_revision is not None:
            waited = await self._value(self._client.calls.wait(request_id, after_revision, seconds))
            return waited.request
        return await self._client.run(self._client.calls.end_of(await self.get(request_id), seconds))

    async def outcome(self, request_id: str) -> Snapshot:
        """The request once it is completed; raises the NotCompleted that it ended as."""
        return completed(await self.wait(request_id))

    async def update(self, request_id: str, expected_revision: int, params: JSONObject) -> Snapshot:
        """Change what the capability lets change, if the request still has this revision (REVISION_CONFLICT)."""
        return await self._value(self._client.calls.update(request_id, expected_revision, params))

    async def cancel(self, request_id: str) -> Snapshot:
        """Take a request back; one that has ended stays as it is."""
        return await self._value(self._client.calls.cancel(request_id))

    async def describe(self) -> RuntimeDescription:
        """What the broker is, allows and has at the screen."""
        return await self._value(self._client.calls.describe())

    async def characters(self) -> CharacterList:
        """Every character, what each can do, and which is the person's own."""
        return await self._client.run(self._client.calls.characters())

    async def capabilities(self) -> CapabilityList:
        """Everything that this program may ask for."""
        return await self._client.run(self._client.calls.capabilities())

    async def capability(self, id: str) -> CapabilityDescription:
        """The full contract of one capability."""
        return await self._value(self._client.calls.capability(id))

    async def styles(self) -> StyleList:
        """Every style, and the capabilities that each applies to."""
        return await self._client.run(self._client.calls.styles())

    async def _value(self, plan: Plan[Result[T]]) -> T:
        return (await self._client.run(plan)).value


class Progress:
    """A bubble that shows how far the work has come; tasks may share it."""

    def __init__(self, client: PairedClient, tracking: Tracking) -> None:
        self._client = client
        self._tracking = tracking

    async def update(self, **changes: Unpack[ProgressChanges]) -> None:
        """Show what has changed; comes to nothing when `ended` says so.  Raises CallFailed for a value that is no
        good."""
        await self._client.run(self._tracking.update(changes))

    @property
    def ended(self) -> ClientError | None:
        """Why nothing is shown (any more): mostly a NotCompleted, such as Dismissed or Hidden; None: it is shown."""
        return self._tracking.ended
