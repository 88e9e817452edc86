"""Decisions of the control protocol: the owner's tools may look and tighten, never loosen (wire.md).

Leases have their own part of this protocol in `handlers/lease`.
"""
