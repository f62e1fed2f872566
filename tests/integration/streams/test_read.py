"""Integration tests of reading (being written by a helper)."""
