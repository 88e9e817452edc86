"""The daemon: sockets, peers, clocks, storage and processes, put together in `app.py`."""
