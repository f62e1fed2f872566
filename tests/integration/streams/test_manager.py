"""Integration tests of managing (being written by a helper)."""
