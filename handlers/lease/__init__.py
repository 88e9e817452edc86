"""What is decided about leases: who holds which app open, and when an app may be closed (lease.md)."""
