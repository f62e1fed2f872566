"""Reading through any replica (ADR-31): fast, spread over the cluster, and possibly stale."""
