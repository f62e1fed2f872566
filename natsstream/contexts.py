"""The nats CLI's context files (ADR-21)."""
