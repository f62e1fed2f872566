"""Listening to what JetStream tells of by itself."""
