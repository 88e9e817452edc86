"""Decisions of the companion protocol: sessions, pairings, requests, waits and display places."""
