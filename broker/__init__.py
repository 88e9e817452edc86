"""The part that touches the world: daemon, client library, command line and presenters."""
