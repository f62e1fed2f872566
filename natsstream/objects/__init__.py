"""Object stores: large values as chunks in a stream, as every NATS client stores them (ADR-20)."""
