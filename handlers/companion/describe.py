"""runtime.describe (CP-2.3): what this broker is, what holds here, and what the caller may do."""

from __future__ import annotations

from handlers.companion.calls import client_of
from handlers.companion.rows import Client
from handlers.companion.settings import access_enabled, settings
from handlers.events import Call, Reply
from handlers.presenter.rows import LINK, LINK_KEY
from handlers.rule import Draft, Now
from protocols.companion.messages import (
    PROTOCOL_VERSION,
    Access,
    Authorization,
    DescribeRuntime,
    Implementation,
    PresenterState,
    RetentionTimes,
    RuntimeDescription,
)


def describe_runtime(draft: Draft, call: Call[DescribeRuntime], now: Now) -> None:
    """Answered before authentication as well; the authorization then says that there is none."""
    environment = draft.environment
    policy = environment.policy
    description = RuntimeDescription(
        implementation=Implementation(
            name=environment.implementation_name, version=environment.implementation_version
        ),
        protocol_version=PROTOCOL_VERSION,
        protocol_versions=(PROTOCOL_VERSION,),
        runtime_instance_id=environment.runtime_instance_id,
        catalog_revision=environment.catalog.revision,
        authorization=_authorization(client_of(draft, call)),
        access=Access(enabled=access_enabled(draft)),
        presenter=_presenter(draft),
        limits=policy.limits.published(),
        retention=RetentionTimes(
            hours=policy.retention.hours, tombstone_days=policy.retention.tombstone_days
        ),
    )
    draft.effect(Reply(call.ref, description))


def _authorization(client: Client | None) -> Authorization:
    if client is None:
        return Authorization(authenticated=False, client_id=None, scopes=())
    return Authorization(authenticated=True, client_id=client.id, scopes=client.scopes)


def _presenter(draft: Draft) -> PresenterState:
    """The kind is the configured one: what a presenter calls itself is its own affair."""
    kind, link = draft.environment.presenter, draft.get(LINK, LINK_KEY)
    if link is None:
        return PresenterState(kind=kind, person=False, state="none" if kind == "none" else "away")
    said = settings(draft)
    state = "hidden" if said.hidden else "paused" if said.paused else "visible"
    return PresenterState(kind=kind, person=link.person, state=state)
