"""`python -m broker.daemon [--presenter KIND] [--config FILE]`: run the broker until SIGTERM or SIGINT.

Exit status: 0 after an orderly end, 2 when the start was refused (one line on standard error says why), 4 when
the store was lost.
"""

from __future__ import annotations

import argparse
import gc
import resource
import signal
import sys
from collections.abc import Callable, Sequence

import trio

from broker.daemon.app import Setup, open_broker
from broker.daemon.committer import StoreLost
from broker.daemon.config import load_config
from broker.daemon.errors import StartRefused
from broker.daemon.store import StoreDisagrees, StoreTooNew
from broker.origin import OriginMismatch
from broker.paths import find_paths

EXIT_REFUSED = 2
EXIT_STORE_LOST = 4
_DESCRIPTORS = 8192


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the broker; the exit status of the process."""
    parser = argparse.ArgumentParser(prog="companion serve", description="Run the broker.")
    parser.add_argument("--presenter", help="terminal, none or exec:COMMAND")
    parser.add_argument("--config", help="the configuration file")
    options = parser.parse_args(arguments)
    status = 0
    _raise_descriptor_limit()
    try:
        paths = find_paths(config=options.config)
        setup = Setup(load_config(paths, options.presenter), paths)
        trio.run(serve, setup)
    except* (StartRefused, StoreTooNew, OriginMismatch) as refused:
        sys.stderr.write(f"companion: {_first(refused)}\n")
        status = EXIT_REFUSED
    except* (StoreLost, StoreDisagrees):
        sys.stderr.write("companion: the store can be neither written nor trusted; nothing more was told\n")
        status = EXIT_STORE_LOST
    return status


async def serve(setup: Setup) -> None:
    """Run until a signal or the control protocol asks for the end; a signal during the start gives that up.

    Signals are taken before there are sockets: whoever can reach the broker can also end it in good order.
    """
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:
            end: Callable[[], None] = nursery.cancel_scope.cancel

            async def end_on_signal() -> None:
                async for _ in signals:
                    end()

            nursery.start_soon(end_on_signal)
            async with open_broker(setup) as broker:
                end = broker.stop
                gc.collect()
                gc.freeze()  # what is alive now lives as long as the process: the collector can leave it out
                await broker.wait_stopping()
            nursery.cancel_scope.cancel()


def _raise_descriptor_limit() -> None:
    """As many descriptors as the system allows: each connection and each watched process takes one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group


if __name__ == "__main__":
    sys.exit(main())
