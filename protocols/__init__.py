"""The pure ground floor: messages, schemas, error codes, state tables and engines, without I/O."""
