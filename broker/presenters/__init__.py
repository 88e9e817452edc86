"""Programs that draw for a person: each runs as a child of the broker and speaks the presenter protocol."""
