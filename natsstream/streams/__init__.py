"""Streams: configuration, publishing, and ordered bulk reads over a JetStream server."""
