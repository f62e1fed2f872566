"""Integration tests of publishing (being written by a helper)."""
