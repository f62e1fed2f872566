"""Plain NATS over the same connection; no stream is involved."""
