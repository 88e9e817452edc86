"""Decisions about the presenter: what is on the screen, and what the person in front of it has answered."""
