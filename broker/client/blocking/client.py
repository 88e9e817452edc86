"""The companion, for a program that blocks.

    with Companion.open(profile="my-agent") as companion:
        if companion.ask("Deploy?", {"ship": "Ship it", "wait": "Wait"}) == "ship":
            ...

Threads may share a `Companion`: each call under way has a connection of its own.  A process that forks may not.
What the calls mean is `broker.client.asking` and `broker.client.progress`; this is only their blocking form.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Unpack

from broker.client import asking
from broker.client.asking import Asking, Question, RequestOptions, Tone
from broker.client.blocking.paired import PairedClient
from broker.client.errors import ClientError
from broker.client.outcomes import completed
from broker.client.plan import RECONNECT_SECONDS, T
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
    def open(
        cls,
        profile: str | None = None,
        *,
        path: Path | None = None,
        credential: Credential | None = None,
        program: Implementation = PROGRAM,
        patience: float = RECONNECT_SECONDS,
    ) -> Companion:
        """Connect as a paired client.

        `profile` names a credential profile (`companion pair`); none: the only one there is.  `path` is another
        socket than that of the user's own broker, `credential` takes the place of a profile, `program` is what the
        program calls itself.  Raises CredentialError, NotConnected, CallFailed.
        """
        target = find_target(profile, path, credential)
        client = PairedClient(target.path, program, target.credential, patience)
        return cls(client, client.connect())

    def close(self) -> None:
        """End the connection; what was asked goes on without it."""
        self._client.close()

    def __enter__(self) -> Companion:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- questions --------------------------------------------------------------------------------------------

    def ask(
        self,
        title: str,
        options: Mapping[str, str],
        *,
        withdraw: bool = True,
        **how: Unpack[RequestOptions],
    ) -> str:
        """Let the person choose; the id of the option that was chosen.

        `options` gives the label of each of two to five ids.  Raises NotCompleted when nobody has answered: there is
        no default.  An interrupted call (KeyboardInterrupt, an error) takes the question from the screen, unless
        `withdraw` is false: then the same `key` finds it again.
        """
        return self._answer(asking.choice(title, options, how), withdraw)

    def confirm(
        self,
        title: str,
        *,
        yes: str = "Yes",
        no: str = "No",
        withdraw: bool = True,
        **how: Unpack[RequestOptions],
    ) -> bool:
        """Let the person say yes or no; both only by a click of theirs.  Raises as `ask` does."""
        return self._answer(asking.confirmation(title, yes, no, how), withdraw)

    def input(
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
        return self._answer(asking.text(title, placeholder, multiline, max_length, how), withdraw)

    def _answer(self, question: Question[T], withdraw: bool) -> T:
        one = Asking(self._client.calls, question.request)
        with self._taken_back(one) if withdraw else contextlib.nullcontext():
            return self._client.run(one.answer(question))

    @contextlib.contextmanager
    def _taken_back(self, one: Asking | Tracking) -> Iterator[None]:
        """What the block leaves unfinished is withdrawn."""
        try:
            yield
        except BaseException:
            with contextlib.suppress(ClientError):
                self._client.run(one.withdraw(), asking.WITHDRAW_SECONDS)
            raise

    # -- what is only shown -----------------------------------------------------------------------------------

    def notify(
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
        return self._made(asking.notice(text, title, tone, seconds, how))

    def play(self, expression: str, **how: Unpack[RequestOptions]) -> Snapshot:
        """Let the character play one of its expressions; returns and raises as `notify` does."""
        return self._made(asking.animation(expression, how))

    def _made(self, request: CreateRequest) -> Snapshot:
        return self._client.run(Asking(self._client.calls, request).made())

    @contextlib.contextmanager
    def progress(
        self,
        title: str,
        *,
        fraction: float | None = None,
        detail: str = "",
        tone: Tone = "information",
        **how: Unpack[RequestOptions],
    ) -> Iterator[Progress]:
        """Show how far the work of the block has come: finished at its end, taken away when it raises.

        That it cannot be shown never stops the work; see `Progress.ended`.
        """
        request = asking.progress(title, fraction, detail, tone, how)
        tracking = Tracking(self._client.calls, request)
        with self._taken_back(tracking):
            self._client.run(tracking.start())
            yield Progress(self._client, tracking)
            self._client.run(tracking.finish())

    # -- requests ---------------------------------------------------------------------------------------------

    def create(self, capability: str, params: JSONObject, **how: Unpack[RequestOptions]) -> Snapshot:
        """Make any request; its snapshot says that it was accepted, nothing more.  `timeout` is 60 s by default."""
        request = asking.request(capability, params, asking.NOTICE_SECONDS, how)
        return self._client.create(request).value

    def get(self, request_id: str) -> Snapshot:
        """The request as it stands."""
        return self._client.get(request_id).value

    def wait(
        self, request_id: str, *, after_revision: int | None = None, seconds: float | None = None
    ) -> Snapshot:
        """The request once it has ended, or has another revision than the one named; after `seconds` as it stands."""
        if after_revision is not None:
            return self._client.wait(request_id, after_revision, seconds).value.request
        return self._client.run(self._client.calls.end_of(self.get(request_id), seconds))

    def outcome(self, request_id: str) -> Snapshot:
        """The request once it is completed; raises the NotCompleted that it ended as."""
        return completed(self.wait(request_id))

    def update(self, request_id: str, expected_revision: int, params: JSONObject) -> Snapshot:
        """Change what the capability lets change, if the request still has this revision (REVISION_CONFLICT)."""
        return self._client.run(self._client.calls.update(request_id, expected_revision, params)).value

    def cancel(self, request_id: str) -> Snapshot:
        """Take a request back; one that has ended stays as it is."""
        return self._client.cancel(request_id).value

    def describe(self) -> RuntimeDescription:
        """What the broker is, allows and has at the screen."""
        return self._client.describe().value

    def characters(self) -> CharacterList:
        """Every character, what each can do, and which is the person's own."""
        return self._client.run(self._client.calls.characters())

    def capabilities(self) -> CapabilityList:
        """Everything that this program may ask for."""
        return self._client.run(self._client.calls.capabilities())

    def capability(self, id: str) -> CapabilityDescription:
        """The full contract of one capability."""
        return self._client.run(self._client.calls.capability(id)).value

    def styles(self) -> StyleList:
        """Every style, and the capabilities that each applies to."""
        return self._client.run(self._client.calls.styles())


class Progress:
    """A bubble that shows how far the work has come; threads may share it."""

    def __init__(self, client: PairedClient, tracking: Tracking) -> None:
        self._client = client
        self._tracking = tracking

    def update(self, **changes: Unpack[ProgressChanges]) -> None:
        """Show what has changed; comes to nothing when `ended` says so.  Raises CallFailed for a value that is no
        good."""
        self._client.run(self._tracking.update(changes))

    @property
    def ended(self) -> ClientError | None:
        """Why nothing is shown (any more): mostly a NotCompleted, such as Dismissed or Hidden; None: it is shown."""
        return self._tracking.ended
