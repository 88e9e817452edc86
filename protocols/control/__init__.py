"""The control protocol: JSON-RPC for the owner's own tools, who may look and tighten (wire.md, Control protocol)."""
