"""What stays the same while a broker runs: handlers read it from `draft.environment`."""

from __future__ import annotations

import attrs

from handlers.policy import Policy
from protocols.companion.capabilities import Catalog
from protocols.companion.catalog import CATALOG
from protocols.companion.packs import SkippedPack
from protocols.implementation import VERSION


@attrs.frozen
class Environment:
    """The policies of the configuration, the identity of this run, and what can be asked for in it."""

    policy: Policy
    runtime_instance_id: str
    boot_id: str
    catalog: Catalog = CATALOG
    loaded_packs: tuple[str, ...] = ()
    """The folders of the character packs whose entries are in the catalog."""
    skipped_packs: tuple[SkippedPack, ...] = ()
    presenter: str = "none"
    """The kind of presenter that this run is configured to have: desktop, terminal, exec or none."""
    host_label: str = "Companion"
    """What the person reads as the source of the host's own requests (CP-4.4)."""
    implementation_name: str = "companion-broker"
    implementation_version: str = VERSION
