"""Blocking connections: one thread, one socket, every wait with a deadline."""
