"""Reading JetStream's advisories."""
