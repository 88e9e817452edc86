"""Clients of the broker: transports over the sans-I/O engines of `protocols`.

`blocking/` uses nothing but the standard library's sockets, so a short command starts fast; it never imports trio.
What can go wrong is the same for every transport: `broker.client.errors`.
"""
