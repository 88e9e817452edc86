"""The decisions: pure functions of a view, an event and a time, without I/O."""
