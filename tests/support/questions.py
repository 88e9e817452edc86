"""Questions that tests ask: choices with the two options y and n."""

from __future__ import annotations

from typing import Any

from tests.support.lines import Rpc

OPTIONS = [{"id": "y", "label": "Allow"}, {"id": "n", "label": "Deny"}]


def choice(title: str = "Deploy?", **members: Any) -> dict[str, Any]:
    """Params of requests.create; `members` replaces or adds some."""
    return {
        "capability": "interaction.choose",
        "params": {"title": title, "options": OPTIONS},
        "timeoutMs": 60_000,
        **members,
    }


def ask(client: Rpc, title: str = "Deploy?", **members: Any) -> dict[str, Any]:
    """Create one; its first snapshot."""
    snapshot: dict[str, Any] = client.call("requests.create", **choice(title, **members))
    return snapshot


def withdraw(client: Rpc, request: dict[str, Any]) -> dict[str, Any]:
    """Cancel one; its snapshot."""
    snapshot: dict[str, Any] = client.call("requests.cancel", requestId=request["requestId"])
    return snapshot
