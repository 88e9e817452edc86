"""The command line, a client like any other: blocking sockets, no trio (companion.md, CLI; CP-6)."""
