"""The method data.clear of the control protocol: ask the person whether all records shall go."""

from __future__ import annotations

from typing import Literal

import attrs

from protocols.structure import absent


@attrs.frozen(kw_only=True)
class ClearData:
    """`data.clear`: put the question to the person, and answer when it has been decided.

    Nothing is cleared without the person's own click (wire.md, Control protocol).  The asker's disconnect takes
    the question back.
    """


@attrs.frozen(kw_only=True)
class ClearResult:
    """What the person decided, or why nobody did.

    `cleared`: the records are gone from the store.  `kept`: the person wants them kept.  `dismissed`: the person
    closed the question.  `expired`: nobody answered in time.  `unavailable`: the person could not be asked, or not
    any more; `reason` is that of RUNTIME_UNAVAILABLE or that of the question's end.
    """

    status: Literal["cleared", "kept", "dismissed", "expired", "unavailable"]
    reason: str | None = absent()
