"""What stays the same while a broker runs: handlers read it from `draft.environment`."""

from __future__ import annotations

import attrs

from handlers.policy import Policy
from protocols.implementation import VERSION


@attrs.frozen
class Environment:
    """The policies of the configuration and the identity of this run."""

    policy: Policy
    runtime_instance_id: str
    boot_id: str
    implementation_name: str = "companion-broker"
    implementation_version: str = VERSION
