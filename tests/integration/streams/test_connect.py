"""Integration tests of connecting (being written by a helper)."""
