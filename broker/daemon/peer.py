"""Who is at the other end of a connection, as the kernel knows it (wire.md, peer).

    Linux   SO_PEERCRED: the effective uid and the pid of the process that connected; SO_PEERPIDFD (Linux 6.5)
            tells whether that process still lives, so that a pid given again is not taken for it
    macOS   LOCAL_PEERCRED: the effective uid; LOCAL_PEERPID: the pid

The descriptor may have been passed on since: the answer is always about the process that connected.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import sys
from contextlib import suppress

import attrs

from broker.daemon.processes import identify, program_of
from protocols.process import ProcessId

_UCRED = struct.Struct("=iII")
"""struct ucred of Linux: pid, uid, gid."""
_SO_PEERPIDFD = 77
"""Not in Python's socket module yet; the number of all architectures but PA-RISC and SPARC."""

_SOL_LOCAL = 0
_LOCAL_PEERCRED = 1
_LOCAL_PEERPID = 2
_XUCRED = struct.Struct("=IIh2x16I")
"""struct xucred of macOS (sys/ucred.h): version, uid, number of groups, groups."""
_XUCRED_VERSION = 0
_INT = struct.Struct("=i")


@attrs.frozen
class Peer:
    """The other end: `process` is None when it is dead or not visible (another pid namespace)."""

    uid: int
    """Its effective user id when it connected."""
    process: ProcessId | None
    program: str | None = None
    """The path of its executable, None when that cannot be told."""


def peer_of(sock: socket.socket) -> Peer:
    """The peer of a connected Unix socket.  Raises OSError when the kernel does not tell."""
    uid, process = _darwin_peer(sock) if sys.platform == "darwin" else _linux_peer(sock)
    return Peer(uid, process, None if process is None else program_of(process))


def _linux_peer(sock: socket.socket) -> tuple[int, ProcessId | None]:
    if sys.platform != "linux":
        raise OSError(errno.ENOTSUP, "no way to tell the peer on this platform")
    pid, uid, _ = _UCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    process = identify(pid)
    # In this order: if the peer lives after its pid was looked up, the pid was its own.
    return uid, None if process is None or _has_died(sock) else process


def _has_died(sock: socket.socket) -> bool:
    """Whether the process that connected is surely dead; False also where the kernel is too old to tell."""
    try:
        fd = sock.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD)
    except OSError as error:
        return error.errno == errno.ESRCH
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        return bool(poll.poll(0))
    finally:
        with suppress(OSError):
            os.close(fd)


def _darwin_peer(sock: socket.socket) -> tuple[int, ProcessId | None]:
    uid = parse_xucred(sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED.size))
    (pid,) = _INT.unpack(sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, _INT.size))
    return uid, identify(pid)


def parse_xucred(data: bytes) -> int:
    """The effective uid in a macOS `struct xucred`.  Raises OSError when it is not one."""
    if len(data) != _XUCRED.size:
        raise OSError(errno.EPROTO, "the kernel's answer about the peer has an unknown size")
    version, uid, *_ = _XUCRED.unpack(data)
    if version != _XUCRED_VERSION:
        raise OSError(errno.EPROTO, "the kernel's answer about the peer has an unknown version")
    return int(uid)
