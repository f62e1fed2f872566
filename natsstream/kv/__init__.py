"""Key-value buckets: a stream with conventions that every NATS client knows (ADR-8)."""
