"""The idempotent producer: exactly once, fenced by the server, across any crash."""
